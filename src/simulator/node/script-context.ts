import type { Keyspace } from "./keyspace.ts";

/** What a script sees of the server it runs in. */
export interface ScriptContext {
  readonly data: Keyspace;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  /** By this server's clock, which stands still while a script runs. */
  readonly time: { readonly seconds: number; readonly micros: number };
  readonly runId: string;
  readonly uptimeSeconds: number;
  /** Returns how many are listening. */
  readonly publish: (channel: string, message: string) => number;
  readonly listeners: (channel: string) => number;
}

/** An acquire's entry in the queues. */
export interface PlaceAsked {
  readonly ticket: number;
  /** How many fences it reserves. */
  readonly block: number;
  readonly id: string;
}

/** Decodes the last arguments of an acquire with an entry. */
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

/** No proposal lifts a counter beyond this: a minute (µs) ahead of the server's time. */
export function proposalMaxOf({ time }: ScriptContext): number {
  return (time.seconds + 60) * 1_000_000;
}

/** As Lua's `tonumber`, with what is missing as 0. */
export function numberOr0(text: string | undefined): number {
  return text === undefined ? 0 : Number(text);
}

/** The value of a lock as owner and fence; a foreign value is all owner. */
export function ownerAndFence(value: string): { owner: string; fence: string | undefined } {
  const match = /^([^]*)\|(\d+)$/.exec(value);
  if (match === null) return { owner: value, fence: undefined };
  return { owner: match[1] ?? "", fence: match[2] };
}
