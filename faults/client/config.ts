import type { LockName } from "../options.ts";

/** Configuration of a client process, as JSON on its command line. */
export interface ClientConfig {
  readonly who: string;
  readonly lock: LockName;
  readonly seed: number;
  readonly journal: string;
  readonly root: string;
  /** Ports of the client's own links to the nodes. */
  readonly nodePorts: readonly number[];
  readonly connections: "plain" | "tuned";
  readonly registerPort: number;
  readonly postgresUrl: string;
  readonly resources: readonly string[];
  readonly workers: number;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly retryMs: number;
}
