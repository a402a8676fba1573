import { StoreError, type HoldfastError, type Holder } from "../../core/errors.ts";
import { labelOf } from "../../core/owners.ts";
import { otherFormat } from "./groups/layout-format.ts";
import { tooFewAcks } from "./replication-faults.ts";

/** What a node that may not vote told about itself. */
export interface BlankReport {
  readonly serverMs: number;
  /** When its quarantine began, by its own clock. */
  readonly sinceMs: number;
  /** Whether it was ever admitted: if so, it has lost something. */
  readonly everAdmitted: boolean;
  readonly ttlMaxMs: number;
}

export type AcquireReply =
  | { readonly kind: "granted"; readonly fence: number }
  | {
      readonly kind: "held";
      /** Undefined where it is free, but for others who wait. */
      readonly holder: Holder | undefined;
      /** When the holder's time, or that of the first who waits, is up; undefined if unknown. */
      readonly freeInMs: number | undefined;
    }
  | { readonly kind: "blank"; readonly report: BlankReport }
  | { readonly kind: "refused"; readonly error: Error };

export type TouchReply =
  | { readonly kind: "done" }
  | { readonly kind: "gone" }
  | { readonly kind: "blank"; readonly report: BlankReport }
  | { readonly kind: "refused"; readonly error: Error };

/**
 * "G sec usec rid fence" or in a batch "G fence", "H sec usec rid pttl value", "Q sec usec rid
 * left", "B …" or "X …".
 */
export function readAcquire(text: string): AcquireReply {
  if (text.startsWith("G ")) {
    return { kind: "granted", fence: numberOf(text.slice(text.lastIndexOf(" ") + 1), text) };
  }
  const words = text.split(" ");
  switch (words[0]) {
    case "H": {
      // The value may hold spaces: it is a foreign client's to choose.
      return heldBy(words.slice(5).join(" "), numberOf(words[4], text));
    }
    case "Q":
      return { kind: "held", holder: undefined, freeInMs: numberOf(words[4], text) };
    case "B":
      return { kind: "blank", report: blankReport(words, text) };
    case "X":
      return { kind: "refused", error: refusal(words) };
    default:
      return { kind: "refused", error: unexpected(text) };
  }
}

/** In a batch, "G" alone means that the proposal is the fence, as `granted` has it. */
export function readBatched(text: string, granted: AcquireReply): AcquireReply {
  return text === "G" ? granted : readAcquire(text);
}

const done: TouchReply = { kind: "done" };

/** "K …", "N …", "B …" or "X …". */
export function readTouch(text: string): TouchReply {
  if (text === "K" || text.startsWith("K ")) return done;
  const words = text.split(" ");
  switch (words[0]) {
    case "N":
      return { kind: "gone" };
    case "B":
      return { kind: "blank", report: blankReport(words, text) };
    case "X":
      return { kind: "refused", error: refusal(words) };
    default:
      return { kind: "refused", error: unexpected(text) };
  }
}

/** A letter for each lock that was to be renewed; or what is the same for all of them. */
export type RenewReply =
  | { readonly kind: "told"; readonly verdicts: string }
  | Extract<TouchReply, { kind: "blank" | "refused" }>;

/** "V sec usec rid verdicts" or without fences "V verdicts", "B …" or "X …". */
export function readRenew(text: string): RenewReply {
  if (text.startsWith("V ")) {
    return { kind: "told", verdicts: text.slice(text.lastIndexOf(" ") + 1) };
  }
  const reply = readTouch(text);
  if (reply.kind === "blank" || reply.kind === "refused") return reply;
  return { kind: "refused", error: unexpected(text) };
}

export const plainlyGranted: AcquireReply = { kind: "granted", fence: 0 };

/** "G", "H pttl value", "Q left" or "X …", of the path without fences. */
export function readPlainAcquire(text: string): AcquireReply {
  if (text === "G") return plainlyGranted;
  const words = text.split(" ");
  if (words[0] === "H") {
    return heldBy(words.slice(2).join(" "), numberOf(words[1], text));
  }
  if (words[0] === "Q") {
    return { kind: "held", holder: undefined, freeInMs: numberOf(words[1], text) };
  }
  return { kind: "refused", error: words[0] === "X" ? refusal(words) : unexpected(text) };
}

function heldBy(value: string, pttlMs: number): AcquireReply {
  const holder = holderOf(value, pttlMs);
  return { kind: "held", holder, freeInMs: holder.remainingMs };
}

export interface ReleaseReply {
  /** Whether all keys of the owner were there to be deleted. */
  readonly whole: boolean;
}

const whole: ReleaseReply = { whole: true };

/** "R deleted total". */
export function readRelease(text: string): ReleaseReply {
  if (text === "R 1 1") return whole;
  const [kind, deleted, total] = text.split(" ");
  if (kind !== "R") throw unexpected(text);
  return { whole: deleted === total };
}

export interface InspectReply {
  readonly holder: Holder | undefined;
  /** How many managers stand in its queue. */
  readonly waiters: number;
}

/** "F waiters", or "I waiters pttl value". */
export function readInspect(text: string): InspectReply {
  const words = text.split(" ");
  const waiters = numberOf(words[1], text);
  if (words[0] === "F") return { holder: undefined, waiters };
  if (words[0] !== "I") throw unexpected(text);
  return { holder: holderOf(words.slice(3).join(" "), numberOf(words[2], text)), waiters };
}

/** A lock's value as `owner|fence`; a foreign value is all owner. */
export function holderOf(value: string, pttlMs: number | undefined): Holder {
  const bar = value.lastIndexOf("|");
  const digits = bar < 0 ? "" : value.slice(bar + 1);
  const fenced = /^\d{1,19}$/.test(digits);
  const owner = fenced ? value.slice(0, bar) : value;
  const label = labelOf(owner);
  return {
    owner,
    ...(label === undefined ? {} : { label }),
    ...(fenced ? { fence: BigInt(digits) } : {}),
    ...(pttlMs === undefined || pttlMs < 0 ? {} : { remainingMs: pttlMs }),
  };
}

export function unexpected(reply: unknown): StoreError {
  return new StoreError(`the node answered something unexpected: ${String(reply).slice(0, 200)}`);
}

function blankReport(words: readonly string[], text: string): BlankReport {
  return {
    serverMs: serverMsOf(words[1], words[2], text),
    sinceMs: numberOf(words[4], text),
    everAdmitted: words[5] === "1",
    ttlMaxMs: numberOf(words[6], text),
  };
}

export function serverMsOf(seconds: unknown, micros: unknown, text: string): number {
  return numberOf(seconds, text) * 1_000 + Math.floor(numberOf(micros, text) / 1_000);
}

export function numberOf(word: unknown, text: string): number {
  const value = Number(word);
  if (typeof word !== "string" || word === "" || !Number.isFinite(value)) throw unexpected(text);
  return value;
}

/** Server errors that no waiting cures: rights, credentials, a key of another type. */
const permanentErrors =
  /^(NOPERM|NOAUTH|WRONGPASS|WRONGTYPE|ERR unknown command|CROSSSLOT|ERR The user executing)/;

/** Whether trying again cannot help. */
export function isPermanent(cause: unknown): boolean {
  if (cause instanceof StoreError) return true;
  return cause instanceof Error && permanentErrors.test(cause.message);
}

/** Why a script refused, in words that say what to do. */
export function refusal(words: readonly string[]): HoldfastError {
  const [, code, detail = ""] = words;
  switch (code) {
    case "FORMAT":
      return new StoreError(otherFormat(detail));
    case "MAXTTL":
      return new StoreError(
        `the TTL is above the deployment's maxTtl of ${detail} ms kept on this node: give every ` +
          "client the same maxTtl, and set the field `max` of the key `holdfast:node` to it",
      );
    case "NOINFO":
      return new StoreError(
        "this node's user may not run INFO, without which a restart cannot be told: allow it " +
          '(ACL SETUSER … +info), or set admission to "off"',
      );
    case "NOACKS": {
      const [got = 0, acks = 0, timeoutMs = 0] = detail.split("/").map(Number);
      return tooFewAcks(got, acks, timeoutMs);
    }
    case "PARTIAL":
      return new StoreError(
        "some of this owner's keys vanished on this node while others are still there " +
          "(deleted or evicted): check maxmemory-policy",
      );
    case "WRONGTYPE":
      return new StoreError("a key of the lock's name holds something that is not a lock");
    case "FENCE":
      return new StoreError(
        `the next fence would be ${detail}, beyond 2^53: a clock far in the future has proposed`,
      );
    default:
      return unexpected(words.join(" "));
  }
}
