import type { Emitter } from "../../../core/events.ts";
import { aboutNode, type NodeFinding } from "./node-finding.ts";
import type { RedisNode } from "./node.ts";

const hourMs = 3_600_000;
/** Limit. A client with admission off that used a node longer ago has probably been corrected. */
const offSeenMsMax = 24 * hourMs;

/** Finding for a client with admission off at a node whose record belongs to admission "strict". */
export const clientIsOff: NodeFinding = {
  level: "warning",
  code: "mixed-admission",
  what: 'its record is that of admission: "strict", and this client\'s option is "off"',
  why:
    "the node binds this client to its maxTtl and its quarantines; but this client also counts " +
    "the vote of a node that has lost its record, and may then be granted what is still held",
  remedy:
    'set admission: "strict" and the same maxTtl for every client of these nodes. If none is ' +
    "strict any more, delete the fields st and max of the key holdfast:node on each node",
};

/**
 * Returns the finding for a strict client if a client with admission off used the node `agoMs` ago.
 * Undefined if that is more than a day.
 */
export function offClientSeen(agoMs: number): NodeFinding | undefined {
  if (!(agoMs < offSeenMsMax)) return undefined;
  const hours = Math.max(1, Math.ceil(agoMs / hourMs));
  return {
    level: "warning",
    code: "mixed-admission",
    what: `a client with admission: "off" used it within the last ${hours + 1} hours`,
    why:
      "it counts the vote of a node that has lost its record, and may then be granted what is " +
      "still held here",
    remedy: 'set admission: "strict" and the same maxTtl for every client of these nodes',
  };
}

/**
 * Warning about a node that was admitted without a copy of the fence counters. Its fences rest on
 * clocks.
 */
export const admittedByClock: NodeFinding = {
  level: "warning",
  code: "admitted-by-clock",
  what: "the node was admitted without a copy of the counters",
  why: "too few admitted nodes were left: until then fences rest on the clients' clocks",
  remedy: "check why so many nodes lost their data; keep appendonly on",
};

/** Warns, once per node, if the record of a node is strict and this client has admission off. */
export class MixedAdmission {
  readonly #events: Emitter;
  readonly #strictNodes = new Set<RedisNode>();

  constructor(events: Emitter) {
    this.#events = events;
  }

  /** Called when a reply shows that the node record is strict: only then the reply has a run id. */
  onStrictRecord(node: RedisNode): void {
    if (this.#strictNodes.has(node)) return;
    this.#strictNodes.add(node);
    this.#events.emit("warning", aboutNode(node.name, clientIsOff));
  }
}
