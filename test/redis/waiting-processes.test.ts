import { expect, test } from "vitest";
import { collect, shareRedis } from "../support/redis-harness.ts";
import { shareBuild, startChildHolder } from "./child-holder.ts";
import { loadScripts, untilQueued } from "./waiting-scene.ts";

const bench = shareRedis(5);
loadScripts(bench);
const build = shareBuild();
const key = "invoice:42";

test.each([1, 5])("on %i nodes a waiter that is killed does not stop the others", async (nodes) => {
  const servers = bench.servers.slice(0, nodes);
  const ports = servers.map(({ port }) => port);
  const [ours, theirs] = [await bench.locks(nodes), await bench.locks(nodes)];
  const holder = await ours.acquire(key);
  const child = await startChildHolder(build, ports);
  child.order({ kind: "hold", resource: key, ttl: 20_000 });
  const [[first] = []] = await untilQueued(servers, key, 1);
  const attempts = collect(theirs, "attempt");
  const waiting = theirs.acquire(key, { wait: "forever" });
  // It is first in every queue, and never makes another attempt.
  const queues = await untilQueued(servers, key, 2);
  for (const places of queues) expect(places[0]?.id).toBe(first?.id);
  await child.kill();
  const third = ours.acquire(key, { wait: "forever" });
  await holder.release();
  await (await waiting).release();
  await (await third).release();
  expect(attempts.at(-1)?.outcome).toBe("granted");
  await bench.untilFree();
});

test.each([1, 5])(
  "on %i nodes a waiter that was stopped is served after it resumes",
  async (nodes) => {
    const servers = bench.servers.slice(0, nodes);
    const ours = await bench.locks(nodes);
    const holder = await ours.acquire(key);
    const child = await startChildHolder(
      build,
      servers.map(({ port }) => port),
    );
    child.order({ kind: "hold", resource: key, ttl: 1_000 });
    await untilQueued(servers, key, 1);
    child.signal("SIGSTOP");
    const again = ours.acquire(key, { wait: "forever" });
    await holder.release();
    // It has missed its turn, and the next waiter has the lock.
    const lease = await again;
    child.signal("SIGCONT");
    await lease.release();
    expect(await child.answer()).toMatchObject({ holding: true });
    await child.kill();
    await bench.untilFree();
  },
);
