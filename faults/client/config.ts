import type { LockName } from "../options.ts";

/** All that a client process is told, as JSON on its command line. */
export interface ClientConfig {
  readonly who: string;
  readonly lock: LockName;
  readonly seed: number;
  readonly journal: string;
  readonly root: string;
  /** Ports of its own links to the nodes. */
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
