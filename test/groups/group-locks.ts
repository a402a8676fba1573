import { onTestFinished } from "vitest";
import { createLocks, type CreateLocksOptions, type Locks } from "../../src/index.ts";
import { Rendezvous } from "../../src/stores/redis/groups/rendezvous.ts";
import { type GroupsOptions, redlock } from "../../src/stores/redis/index.ts";
import { connect, type RedisBench } from "../support/redis-harness.ts";

/** Leases here live no longer, so neither does the wait for a new layout. */
export const maxTtl = 1_000;

/** A client of each of these servers. */
export function clientsOf(redis: RedisBench, indices: readonly number[]): Promise<object[]> {
  return Promise.all(indices.map((index) => connect(redis.server(index).port)));
}

/** A manager over groups of the bench's servers, closed when the test is over. */
export async function openGroups(
  redis: RedisBench,
  groups: readonly (readonly number[])[],
  options: GroupsOptions = {},
  defaults: CreateLocksOptions = {},
): Promise<Locks> {
  const clients = await Promise.all(groups.map((indices) => clientsOf(redis, indices)));
  // So few cores for so many servers: how soon a node must answer is not what is tested here.
  const all: GroupsOptions = { admission: "off", nodeTimeout: "5s", ...options };
  const locks = createLocks(redlock.groups(clients, all), { ttl: "20s", ...defaults });
  onTestFinished(() => locks.close());
  return locks;
}

/** The first `count` names whose home is group `id` among `ids`. */
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
