import { beforeAll, expect } from "vitest";
import type { Runtime } from "../../src/core/ports.ts";
import { nodeRuntime } from "../../src/runtime/node-runtime.ts";
import { queueKeyOf } from "../../src/stores/redis/dialect.ts";
import * as scripts from "../../src/stores/redis/scripts/generated.ts";
import { eventually } from "../support/redis-eventually.ts";
import type { RedisBench } from "../support/redis-harness.ts";
import type { RedisServer } from "../support/redis-server.ts";

/**
 * A runtime whose timers never fire: its waiters never ask by themselves, so that only a message
 * explains a grant.
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

/** A runtime whose timers fire only when the test says so, those that are due by then. */
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

/** The queue of `resource` as the server has it, lapsed places and all. */
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

/** Resolves with the places on each server once there are `count` on all of them. */
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

/** Says to a waiter that it is its turn, as a script would. */
export async function tell(server: RedisServer, id: string): Promise<unknown> {
  const [, base = "", number = ""] = /^(.*)-w(\w+)$/.exec(id) ?? [];
  return await server.command("PUBLISH", `holdfast:wake:${base}`, number);
}

/** Connections of the server that only listen. */
export async function listenersOf(server: RedisServer): Promise<number> {
  const list = String(await server.command("CLIENT", "LIST", "TYPE", "pubsub")).trim();
  return list === "" ? 0 : list.split("\n").length;
}

/** How often each of the first `count` servers was asked to run a script. */
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
 * Every server knows every script before the first test: a node that lacks one is asked twice, and
 * not once more when the others have decided meanwhile.
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
