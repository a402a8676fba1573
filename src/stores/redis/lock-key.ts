import { InvalidOptionError } from "../../core/errors.ts";

/** The node record, the counters of a Cluster and the like: no lock may take their place. */
const ownKeys = "holdfast:";

/** The key of a resource: its name, after the prefix if there is one. */
export function lockKey(prefix: string, resource: string): string {
  const key = prefix + resource;
  if (!key.startsWith(ownKeys)) return key;
  throw new InvalidOptionError("resource", `a name that does not begin with "${ownKeys}"`, key);
}
