import {
  ForeignHolderError,
  StoreError,
  type HoldfastError,
  type Holder,
} from "../../core/errors.ts";
import { isOwner, labelOf } from "../../core/owners.ts";
import { quoted } from "../../core/report/quoted.ts";
import { wrongType } from "./commands/foreign-keys.ts";
import { otherFormat } from "./commands/layout-format.ts";
import { tooFewAcks } from "./commands/replication-faults.ts";

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
      /** How many waiters stand in front of this one; undefined without a place. */
      readonly rank: number | undefined;
    }
  | { readonly kind: "blank"; readonly report: BlankReport }
  | { readonly kind: "refused"; readonly error: Error };

export type TouchReply =
  | { readonly kind: "done" }
  /** `absent`: no key is there. Otherwise the key is another owner's, or newer than the grant. */
  | { readonly kind: "gone"; readonly absent: boolean }
  | { readonly kind: "blank"; readonly report: BlankReport }
  | { readonly kind: "refused"; readonly error: Error };

/**
 * "G sec usec rid fence" or in a batch "G fence", "H sec usec rid pttl rank value", "Q sec usec rid
 * left rank", "B …" or "X …".
 */
export function readAcquire(text: string): AcquireReply {
  if (text.startsWith("G ")) {
    return { kind: "granted", fence: numberOf(text.slice(text.lastIndexOf(" ") + 1), text) };
  }
  const words = text.split(" ");
  switch (words[0]) {
    case "H": {
      // The value may hold spaces: it is a foreign client's to choose.
      const holder = holderOf(words.slice(6).join(" "), numberOf(words[4], text));
      return { kind: "held", holder, freeInMs: holder.remainingMs, rank: rankOf(words[5], text) };
    }
    case "Q": {
      const freeInMs = numberOf(words[4], text);
      return { kind: "held", holder: undefined, freeInMs, rank: rankOf(words[5], text) };
    }
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
      return { kind: "gone", absent: words.at(-1) === "ABSENT" };
    case "B":
      return { kind: "blank", report: blankReport(words, text) };
    case "X":
      return { kind: "refused", error: refusal(words) };
    default:
      return { kind: "refused", error: unexpected(text) };
  }
}

/** A missing key may be the doing of the first run: undefined, which stands for asking again. */
export function touchAfterResend(reply: TouchReply): TouchReply | undefined {
  return reply.kind === "gone" && reply.absent ? undefined : reply;
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

/** What is missing is touched alone, which asks again. */
export function renewAfterResend(reply: RenewReply): RenewReply {
  if (reply.kind !== "told") return reply;
  return { kind: "told", verdicts: reply.verdicts.replaceAll("N", "T") };
}

export const plainlyGranted: AcquireReply = { kind: "granted", fence: 0 };

/** "G" alone, "H …", "Q …" or "X …", of the path without fences. */
export function readPlainAcquire(text: string): AcquireReply {
  return readBatched(text, plainlyGranted);
}

/** "-" for a caller without a place. */
function rankOf(word: string | undefined, text: string): number | undefined {
  return word === "-" ? undefined : numberOf(word, text);
}

export interface ReleaseReply {
  /** Whether all keys of the owner were there to be deleted. */
  readonly whole: boolean;
  /** The request may have run before: that run may have deleted what is missing now. */
  readonly repeated: boolean;
}

const whole: ReleaseReply = { whole: true, repeated: false };

/** "R deleted total". */
export function readRelease(text: string): ReleaseReply {
  if (text === "R 1 1") return whole;
  const [kind, deleted, total] = text.split(" ");
  if (kind !== "R") throw unexpected(text);
  return { whole: deleted === total, repeated: false };
}

/** Nothing of the owner's is left in any case; what there was before is unknown. */
export function releaseAfterResend(reply: ReleaseReply): ReleaseReply {
  return reply.whole ? reply : { whole: false, repeated: true };
}

export interface InspectReply {
  readonly holder: Holder | undefined;
  /** How many managers stand in its queue. */
  readonly waiters: number;
}

/** "F waiters", "I waiters pttl value", or "X …". */
export function readInspect(text: string): InspectReply {
  const words = text.split(" ");
  if (words[0] === "X") throw refusal(words);
  const waiters = numberOf(words[1], text);
  if (words[0] === "F") return { holder: undefined, waiters };
  if (words[0] !== "I") throw unexpected(text);
  return { holder: holderOf(words.slice(3).join(" "), numberOf(words[2], text)), waiters };
}

/** More than a script sends of a foreign value; a plain SET returns all of it. */
const foreignLengthMax = 2_300;

/** A lock's value as `owner|fence`, if it is ours; a foreign value is all owner. */
export function holderOf(value: string, pttlMs: number | undefined): Holder {
  const bar = value.lastIndexOf("|");
  const digits = bar < 0 ? "" : value.slice(bar + 1);
  const fenced = /^[1-9]\d{0,15}$/.test(digits);
  const owner = fenced ? value.slice(0, bar) : value;
  const life =
    pttlMs === undefined || pttlMs < -1
      ? {}
      : pttlMs === -1
        ? { neverExpires: true as const }
        : { remainingMs: pttlMs };
  if (!isOwner(owner)) return { owner: value.slice(0, foreignLengthMax), foreign: true, ...life };
  const label = labelOf(owner);
  return {
    owner,
    ...(label === undefined ? {} : { label }),
    ...(fenced ? { fence: BigInt(digits) } : {}),
    ...life,
  };
}

export function unexpected(reply: unknown): StoreError {
  return new StoreError(`the node answered something unexpected: ${quoted(String(reply))}`);
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
  if (cause instanceof StoreError || cause instanceof ForeignHolderError) return true;
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
        "this node's user may not run INFO, without which a restart cannot be seen: allow it " +
          '(ACL SETUSER … +info), or set admission to "off" for every client of this node',
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
      // A key may hold spaces.
      return wrongType(detail, words.slice(3).join(" "));
    case "FENCE":
      return new StoreError(
        `the next fence would be ${detail}, beyond 2^53: a clock far in the future has proposed`,
      );
    default:
      return unexpected(words.join(" "));
  }
}
