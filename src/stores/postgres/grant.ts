import type { Grant } from "../../core/store.ts";

/** A grant of this store. */
export interface PostgresGrant extends Grant {
  fence: bigint;
  /** Number of further fences that the grant may use, one for each hand-over. */
  reserved: number;
  /** Generation of the server that last confirmed the grant. */
  generation: bigint;
}
