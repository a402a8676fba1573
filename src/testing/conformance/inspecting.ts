import type { LockEvents } from "../../core/events.ts";
import { conformanceCase } from "./bench.ts";
import { check, present, same, sameList } from "./check.ts";
import type { ConformanceCase } from "./harness.ts";

export const inspecting: readonly ConformanceCase[] = [
  conformanceCase("shows who holds a resource, and for how long", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    const lease = await ours.acquire(resource, { label: "the holder" });
    const seen = await theirs.inspect(resource);
    same(seen.resource, resource, "the resource");
    same(seen.state, "held", "the state");
    same(seen.label, "the holder", "the label");
    same(seen.fence, bench.capabilities.fencing ? lease.fence : undefined, "the fence");
    const remainingMs = present(seen.remainingMs, "the time left");
    check(remainingMs > 0 && remainingMs <= bench.longTtlMs, "it lies within the TTL");
    check(seen.nodes.length > 0, "at least one node is shown");
  }),

  conformanceCase("shows a free resource as free, and leaves it so", async (bench) => {
    const locks = await bench.open();
    const resource = bench.resource();
    const lease = await locks.acquire(resource);
    await lease.release();
    for (const name of [resource, bench.resource("never locked")]) {
      const seen = await locks.inspect(name);
      same(seen.state, "free", "the state");
      same(seen.label, undefined, "the label");
      same(seen.fence, undefined, "the fence");
      same(seen.remainingMs, undefined, "the time left");
      present(await locks.tryAcquire(name), "a lease on it");
    }
  }),

  conformanceCase("shows each of its nodes", async (bench) => {
    const locks = await bench.open();
    const nodes = await locks.nodes();
    check(nodes.length > 0, "a store has at least one node");
    same(new Set(nodes.map(({ node }) => node)).size, nodes.length, "names of their own");
    const { nodes: inspected } = await locks.inspect(bench.resource());
    // A store may have several groups of nodes. The group is then the prefix of a node's name, and
    // an inspection shows the nodes of one group.
    const groupOf = (node: string | undefined) => node?.replace(/[^/]*$/, "");
    const group = groupOf(inspected[0]?.node);
    sameList(
      inspected.map(({ node }) => node).toSorted(),
      nodes.flatMap(({ node }) => (groupOf(node) === group ? [node] : [])).toSorted(),
      "the nodes of an inspection",
    );
  }),

  conformanceCase("reports what happens to a lease as events", async (bench) => {
    const locks = await bench.open();
    const resource = bench.resource();
    const acquired: LockEvents["acquired"][] = [];
    const released: LockEvents["released"][] = [];
    const renewed: LockEvents["renewed"][] = [];
    const stop = [
      locks.on("acquired", (event) => acquired.push(event)),
      locks.on("renewed", (event) => renewed.push(event)),
      locks.on("released", (event) => released.push(event)),
    ];
    const lease = await locks.acquire(resource, { label: "reported" });
    await lease.extend();
    await lease.release();
    for (const events of [acquired, renewed, released]) {
      same(events.length, 1, "the number of events of a kind");
      sameList(events[0]?.resources ?? [], [resource], "their resources");
      same(events[0]?.label, "reported", "their label");
    }
    same(acquired[0]?.attempts, 1, "the attempts");
    same(released[0]?.released, true, "whether it was released");
    for (const end of stop) end();
    await (await locks.acquire(resource)).release();
    same(acquired.length + renewed.length + released.length, 3, "events after the listeners left");
  }),
];
