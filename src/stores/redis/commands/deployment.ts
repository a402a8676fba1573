/**
 * Options that all clients of a node must agree on: scripts compare them with the record of the
 * node.
 */
export interface Deployment {
  readonly admission: "strict" | "off";
  /** Longest TTL that any client may request. */
  readonly ttlMaxMs: number;
  /** Format that a node's record must have for this client to be granted anything there. */
  readonly wireFormat: string;
}
