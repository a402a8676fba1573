import { onTestFinished } from "vitest";
import type { RedisClient } from "../../src/clients/redis-client.ts";
import { createLocks, type CreateLocksOptions, type Locks } from "../../src/index.ts";
import { Rendezvous } from "../../src/stores/redis/groups/rendezvous.ts";
import { type GroupsOptions, redlockGroups } from "../../src/stores/redis/index.ts";
import { connect, numbered, type RedisBench } from "../support/redis-harness.ts";

/** Short, because the wait for a new layout is as long as the longest lease. */
export const maxTtl = 1_000;

/** Connects a client to each of these servers. */
export function clientsOf(redis: RedisBench, indices: readonly number[]): Promise<RedisClient[]> {
  return Promise.all(
    indices.map(async (index) => numbered(await connect(redis.server(index).port))),
  );
}

/** Opens a manager over groups of the servers, closed when the test is over. */
export async function openGroups(
  redis: RedisBench,
  groups: readonly (readonly number[])[],
  options: GroupsOptions = {},
  defaults: CreateLocksOptions = {},
): Promise<Locks> {
  const clients = await Promise.all(groups.map((indices) => clientsOf(redis, indices)));
  // Many servers share few cores, and no test measures how soon a node must answer.
  const all: GroupsOptions = { admission: "off", nodeTimeout: "5s", ...options };
  const locks = createLocks(redlockGroups(clients, all), { ttl: "20s", ...defaults });
  onTestFinished(() => locks.close());
  return locks;
}

/** Returns the first `count` names whose home is group `id` among `ids`. */
export function namesOf(id: string, ids: readonly string[], count: number): string[] {
  const rendezvous = new Rendezvous(ids);
  const names: string[] = [];
  for (let n = 0; names.length < count; n += 1) {
    if (ids[rendezvous.homeOf(`name-${n}`)] === id) names.push(`name-${n}`);
  }
  return names;
}

export function nameOf(id: string, ids: readonly string[]): string {
  return namesOf(id, ids, 1)[0] ?? "";
}
