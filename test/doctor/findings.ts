import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";
import type { RedisConnection } from "../../src/clients/contract.ts";
import { connectionOf } from "../../src/clients/recognise.ts";
import type { Finding, Locks } from "../../src/index.ts";
import type { RedisServer } from "../../tools/redis/redis-server.mjs";

/** Returns the finding with this code. Throws unless there is exactly one. */
export function findingOf(findings: readonly Finding[], code: string, node?: string): Finding {
  const found = findings.filter((each) => each.code === code && (!node || each.node === node));
  const [first] = found;
  if (first !== undefined && found.length === 1) return first;
  throw new Error(`expected ${code} once, found ${JSON.stringify(findings, undefined, 2)}`);
}

export async function diagnose(locks: Locks, code: string, node?: string): Promise<Finding> {
  return findingOf(await locks.doctor(), code, node);
}

export async function codesOf(locks: Locks): Promise<string[]> {
  return (await locks.doctor()).map(({ code }) => code);
}

/** Changes the server's configuration until the test is over. */
export async function configure(
  server: RedisServer,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  for (const [name, value] of Object.entries(settings)) {
    const [, before] = (await server.command("CONFIG", "GET", name)) as [string, string];
    await server.command("CONFIG", "SET", name, value);
    onTestFinished(async () => {
      await server.command("CONFIG", "SET", name, before);
    });
  }
}

/** Returns a connection whose replies arrive `delayMs` later. */
export function farAway(client: object, delayMs: number): RedisConnection {
  return changed(client, async (send) => {
    await sleep(delayMs);
    return await send();
  });
}

/** Returns a connection with a changed reply to INFO. */
export function disguised(client: object, change: (info: string) => string): RedisConnection {
  return changed(client, async (send, command) => {
    const reply = await send();
    return command[0] === "INFO" ? change(String(reply)) : reply;
  });
}

function changed(
  client: object,
  send: (send: () => Promise<unknown>, command: readonly string[]) => Promise<unknown>,
): RedisConnection {
  const inner = connectionOf(client);
  if (inner === undefined) throw new Error("the client was not recognised");
  const { library, topology } = inner;
  return {
    library,
    topology,
    send: (key, command) => send(() => inner.send(key, command), command),
  };
}
