import { StoreError } from "../../core/errors.ts";

/** Entry of a waiter in the queue of a lock. */
export interface Place {
  /** Number that the server draws for the first entry. Decides the order. */
  readonly ticket: string | undefined;
  /** Channel on which the waiter receives notifications. Undefined if it receives none. */
  readonly channel: string | undefined;
  /** Name of the waiter within its manager. */
  readonly number: string;
}

/** One request to the server. A statement carries a list of them. */
export type Operation =
  | {
      readonly do: "acquire";
      readonly resources: readonly string[];
      readonly owner: string;
      readonly ttlMs: number;
      readonly place?: Place;
    }
  | {
      readonly do: "extend";
      readonly resources: readonly string[];
      readonly owner: string;
      readonly ttlMs: number;
    }
  | {
      readonly do: "release" | "prove";
      readonly resources: readonly string[];
      readonly owner: string;
    }
  | { readonly do: "leave"; readonly resources: readonly string[]; readonly ticket: string }
  | { readonly do: "inspect"; readonly resources: readonly string[] };

/** Result of one operation. `busy`: another transaction is just changing a row of it. */
export interface Result {
  readonly is:
    | "granted"
    | "held"
    | "released"
    | "extended"
    | "proven"
    | "gone"
    | "left"
    | "free"
    | "busy";
  readonly owner?: string | null;
  readonly fence?: string | null;
  /** Time in ms for which the lock is held, or reserved for another waiter. */
  readonly left?: number | null;
  readonly ticket?: string | null;
  readonly rank?: number | null;
  readonly waiters?: number;
}

/** Reply to one statement. */
export interface Reply {
  readonly generation: string;
  /** Clock of the server, in ms since 1970. */
  readonly ms: number;
  readonly results: readonly Result[];
}

/**
 * Number of fences of a grant to a waiting call: its manager may hand the lock over to as many of
 * its calls. The step of the sequence in `schema/tables.ts`.
 */
export const fencesPerGrant = 32;

/** Returns the operations as JSON in ASCII: the encoding of the database does not matter. */
export function encode(operations: readonly Operation[]): string {
  return JSON.stringify(operations.map(fieldsOf));
}

function fieldsOf(operation: Operation): object {
  const names = operation.resources.map(base64);
  switch (operation.do) {
    case "acquire": {
      const { owner, ttlMs, place } = operation;
      const wait = place && {
        ticket: place.ticket,
        channel: place.channel,
        number: place.number,
        fences: fencesPerGrant,
      };
      return { do: "acquire", names, owner, ttl: ttlMs, wait };
    }
    case "extend":
      return { do: "extend", names, owner: operation.owner, ttl: operation.ttlMs };
    case "leave":
      return { do: "leave", names, ticket: operation.ticket };
    case "release":
    case "prove":
      return { do: operation.do, names, owner: operation.owner };
    case "inspect":
      return { do: "inspect", names };
    default:
      return operation satisfies never;
  }
}

export function base64(name: string): string {
  return Buffer.from(name).toString("base64");
}

/** Parses the reply to `count` operations; undefined if the server must be entered first. */
export function decode(text: unknown, count: number): Reply | undefined {
  if (text === null) return undefined;
  const reply = typeof text === "string" ? (JSON.parse(text) as Partial<Reply>) : {};
  const { generation, ms, results } = reply;
  if (typeof generation === "string" && typeof ms === "number" && results?.length === count) {
    return { generation, ms, results };
  }
  throw new StoreError("Postgres sent an unexpected reply to an operation on locks");
}
