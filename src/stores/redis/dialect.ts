import type { Batching } from "./batch.ts";
import { ScriptCall, type NodeCall } from "./node-call.ts";
import {
  readInspect,
  type AcquireReply,
  type InspectReply,
  type ReleaseReply,
  type RenewReply,
  type TouchReply,
} from "./replies.ts";
import * as scripts from "./scripts/generated.ts";

/** Where a waiter stands in the queues of the nodes: the same for its whole wait. */
export interface Place {
  /** When the wait began, by the servers' clocks, in µs. The smaller one comes first. */
  readonly ticket: number;
  readonly id: string;
  /** How many holders of one manager the grant may serve, one after the other: a fence for each. */
  readonly tenures: number;
}

/** What a script that fences is told of a place. */
export function reservingArgs({ ticket, id, tenures }: Place): readonly string[] {
  return [String(ticket), id, String(tenures)];
}

/** What a release does with a waiter's place: gives it up, keeps it, or there is none. */
export type PlaceLeft = "" | `-${string}` | `=${string}`;

export function placeLeft(how: "-" | "=", place: Place | undefined): PlaceLeft {
  return place === undefined ? "" : `${how}${place.id}`;
}

/** What stands in a lock's key, as its owner knows it. */
export interface Held {
  readonly owner: string;
  readonly fenceNumber: number;
}

/** How the steps of the protocol are said to a server. */
export interface Dialect {
  readonly fencing: boolean;
  /** How several operations go in one call; undefined where they cannot. */
  readonly batching: Batching | undefined;
  acquire(
    keys: readonly string[],
    owner: string,
    ttlMs: number,
    proposal: number,
    place?: Place,
  ): NodeCall<AcquireReply>;
  /** Raises the fence, extends (`ttlMs` > 0), or proves. */
  touch(keys: readonly string[], owner: string, ttlMs: number, fence: number): NodeCall<TouchReply>;
  /** Extends many locks of one key each; undefined where one call cannot have many keys. */
  readonly renew:
    | ((keys: readonly string[], held: readonly Held[], ttlMs: number) => NodeCall<RenewReply>)
    | undefined;
  /** `fence` where one is known: it saves the server looking who the owner is. */
  release(
    keys: readonly string[],
    owner: string,
    place?: PlaceLeft,
    fence?: number,
  ): NodeCall<ReleaseReply>;
  inspect(key: string): NodeCall<InspectReply>;
  /** Where those who wait for `key` are told that it is theirs, `base` being their manager's. */
  channelOf(key: string, base: string): string;
}

/** The key of a lock's queue, on a server of its own. */
export function queueKeyOf(key: string): string {
  return `holdfast:waiters:${key}`;
}

/** One channel for all locks a manager waits for. */
export function channelOf(_key: string, base: string): string {
  return `holdfast:wake:${base}`;
}

const inspectForm = { script: scripts.inspect, read: readInspect };

export function inspectCall(key: string, queue: string): NodeCall<InspectReply> {
  return new ScriptCall(inspectForm, [key, queue], []);
}
