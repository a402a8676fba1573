import { InvalidOptionError } from "../../../core/errors.ts";

/** Prefix of our own keys (node record, counters of a Cluster, …): no lock may have it. */
const ownKeys = "holdfast:";

/** Returns the key of a resource: prefix and name. Throws if it would be one of our own keys. */
export function lockKey(prefix: string, resource: string): string {
  const key = prefix + resource;
  if (!key.startsWith(ownKeys)) return key;
  throw new InvalidOptionError("resource", `a name that does not begin with "${ownKeys}"`, key);
}

/** Returns the keys of all resources. perf (sequential): mostly there is only one. */
export function lockKeys(prefix: string, resources: readonly string[]): readonly string[] {
  const [only] = resources;
  if (resources.length === 1 && only !== undefined) return [lockKey(prefix, only)];
  return resources.map((resource) => lockKey(prefix, resource));
}
