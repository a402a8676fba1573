import { beforeAll, expect } from "vitest";
import type { Runtime } from "../../src/core/ports.ts";
import { nodeRuntime } from "../../src/runtime/node-runtime.ts";
import { queueKeyOf } from "../../src/stores/redis/commands/keys.ts";
import * as scripts from "../../src/stores/redis/scripts/generated.ts";
import { eventually } from "../support/redis-eventually.ts";
import type { RedisBench } from "../support/redis-harness.ts";
import type { RedisServer } from "../../tools/redis/redis-server.mjs";

/**
 * A runtime whose timers never fire: its waiters never poll, so only a notification explains a
 * grant.
 */
export const withoutTimers: Runtime = {
  ...nodeRuntime,
  clock: {
    monotonicMs: () => nodeRuntime.clock.monotonicMs(),
    wallMs: () => nodeRuntime.clock.wallMs(),
    setTimer: () => () => undefined,
    timerSlackMs: nodeRuntime.clock.timerSlackMs,
  },
};

/** A runtime whose due timers fire only when the test calls `fire`. */
export interface TimersOnDemand extends Runtime {
  fire(): void;
}

export function timersOnDemand(): TimersOnDemand {
  const pending = new Set<() => void>();
  return {
    ...nodeRuntime,
    clock: {
      ...withoutTimers.clock,
      setTimer(_delayMs, _keepAlive, callback) {
        pending.add(callback);
        return () => pending.delete(callback);
      },
    },
    fire() {
      const callbacks = [...pending];
      pending.clear();
      for (const callback of callbacks) callback();
    },
  };
}

export interface Place {
  readonly ticket: number;
  readonly lapseMs: number;
  readonly id: string;
  readonly listened: boolean;
}

/** Returns the queue of `resource` on the server, with expired entries. */
export async function queueOn(server: RedisServer, resource: string): Promise<Place[]> {
  const key = queueKeyOf(resource);
  const members = (await server.command("ZRANGE", key, "0", "-1", "WITHSCORES")) as string[];
  const scores = new Map<string, number>();
  for (let at = 0; at < members.length; at += 2) {
    scores.set(members[at] ?? "", Number(members[at + 1]));
  }
  return [...scores].flatMap(([id, ticket]) => {
    if (ticket < 0) return [];
    const ends = -(scores.get(`~${id}`) ?? 0);
    return [{ ticket, lapseMs: Math.floor(ends / 2), id, listened: ends % 2 === 1 }];
  });
}

/** Resolves with the entries on each server once there are `count` on all of them. */
export async function untilQueued(
  servers: readonly RedisServer[],
  resource: string,
  count: number,
): Promise<Place[][]> {
  return await eventually(async () => {
    const queues = await Promise.all(servers.map((server) => queueOn(server, resource)));
    expect(queues.map(({ length }) => length)).toEqual(servers.map(() => count));
    return queues;
  });
}

/** Notifies a waiter of its turn, as a script would. */
export async function notify(server: RedisServer, id: string): Promise<unknown> {
  const [, base = "", number = ""] = /^(.*)-w(\w+)$/.exec(id) ?? [];
  return await server.command("PUBLISH", `holdfast:wake:${base}`, number);
}

/** Number of the server's connections with subscriptions. */
export async function listenersOf(server: RedisServer): Promise<number> {
  const list = String(await server.command("CLIENT", "LIST", "TYPE", "pubsub")).trim();
  return list === "" ? 0 : list.split("\n").length;
}

/** Number of script calls on each of the first `count` servers. */
export async function scriptCalls(bench: RedisBench, count: number): Promise<number[]> {
  return await Promise.all(
    bench.servers.slice(0, count).map(async (server) => {
      const info = String(await server.command("INFO", "commandstats"));
      return ["eval", "evalsha"]
        .map((name) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(info)?.[1] ?? 0))
        .reduce((sum, calls) => sum + calls, 0);
    }),
  );
}

/**
 * Loads every script into every server before the first test. A node that lacks one gets two
 * requests, or only one if the others have decided meanwhile.
 */
export function loadScripts(bench: RedisBench): void {
  beforeAll(async () => {
    for (const server of bench.servers) {
      for (const { source } of Object.values(scripts)) {
        await server.command("SCRIPT", "LOAD", source);
      }
    }
  });
}
