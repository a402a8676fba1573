import { InvalidOptionError } from "../../core/errors.ts";

/** The node record, the counters of a Cluster and the like: no lock may take their place. */
const ownKeys = "holdfast:";

/** The key of a resource: its name, after the prefix if there is one. */
export function lockKey(prefix: string, resource: string): string {
  const key = prefix + resource;
  if (!key.startsWith(ownKeys)) return key;
  throw new InvalidOptionError("resource", `a name that does not begin with "${ownKeys}"`, key);
}

/** Of all resources of a lock. Mostly there is one, and a list of it costs less than a walk. */
export function lockKeys(prefix: string, resources: readonly string[]): readonly string[] {
  const [only] = resources;
  if (resources.length === 1 && only !== undefined) return [lockKey(prefix, only)];
  return resources.map((resource) => lockKey(prefix, resource));
}
