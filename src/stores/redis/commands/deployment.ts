/**
 * Options that all clients of a node must agree on: scripts compare them with the record of the
 * node.
 */
export interface Deployment {
  readonly admission: "strict" | "off";
  /** Longest TTL that any client may request. */
  readonly ttlMaxMs: number;
  /** Wire format that the node record must have. A node with another format refuses this client. */
  readonly wireFormat: string;
}
