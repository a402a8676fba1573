import type { Keyspace } from "./keyspace.ts";

/** State and functions of the server that a script can use. */
export interface ScriptContext {
  readonly data: Keyspace;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /** Time by this server's clock. It does not change while a script runs. */
  readonly time: { readonly seconds: number; readonly micros: number };
  readonly runId: string;
  readonly uptimeSeconds: number;
  /** Publishes a message and returns the number of subscribers. */
  readonly publish: (channel: string, message: string) => number;
  readonly listeners: (channel: string) => number;
}

/** Entry that an acquire requests in the queues of its locks. */
export interface PlaceAsked {
  readonly ticket: number;
  /** Number of fences that the acquire reserves. */
  readonly block: number;
  readonly id: string;
}

/** Decodes the arguments with which an acquire requests a queue entry. */
export function placeOf([ticket, id = "", block = "1"]: readonly string[]): PlaceAsked {
  return { ticket: Number(ticket), id, block: Number(block) };
}

export type ScriptBody = (context: ScriptContext) => string;

export function atOf({ time }: ScriptContext): string {
  return `${time.seconds} ${time.micros}`;
}

export function nowMsOf({ time }: ScriptContext): number {
  return time.seconds * 1_000 + Math.floor(time.micros / 1_000);
}

/**
 * Returns the greatest fence that a client may suggest: the server's time in µs plus one minute. A
 * greater suggestion is reduced to this limit.
 */
export function proposalMaxOf({ time }: ScriptContext): number {
  return (time.seconds + 60) * 1_000_000;
}

/** Converts a text to a number, and undefined to 0. */
export function numberOr0(text: string | undefined): number {
  return text === undefined ? 0 : Number(text);
}

/** Splits a lock's value "owner|fence". A value of another format is returned as the owner. */
export function ownerAndFence(value: string): { owner: string; fence: string | undefined } {
  const match = /^([^]*)\|(\d+)$/.exec(value);
  if (match === null) return { owner: value, fence: undefined };
  return { owner: match[1] ?? "", fence: match[2] };
}
