/** Options that all clients of a node must agree on: scripts compare them with its record. */
export interface Deployment {
  readonly admission: "strict" | "off";
  /** Longest TTL that any client may ask for. */
  readonly ttlMaxMs: number;
  /** Format that a node's record must have for this client to be granted anything there. */
  readonly wireFormat: string;
}
