import type { Holder } from "../../../core/errors.ts";
import { isOwner, labelOf } from "../../../core/owners.ts";
import type {
  AcquireReply,
  BlankReport,
  InspectReply,
  Refusal,
  ReleaseReply,
  RenewReply,
  TouchReply,
} from "./operation.ts";
import { refusal, unexpected } from "./refusals.ts";

/**
 * The reply to a list of operations is one text. Its first line is the stamp, "S sec usec rid": the
 * time of the server's clock, and the start of the run id of its process ("-" if not checked). The
 * stamp is "-" if the script needed no clock. A line with the verdict on each operation follows:
 *
 *   acquire   G                   granted with the proposal (the fence that the client suggests)
 *             G fence             granted with another fence, or granted to this owner before
 *             H pttl rank value   held by another; rank is "-" without an entry in the queue
 *             Q left rank         free, but others wait
 *   touch     K                   fence raised, TTL extended, or lock proved
 *             N WHY               the owner does not have the lock any more: ABSENT, OTHER or NEWER
 *   release   R deleted total
 *   acquire and touch             B since ever max (the node may not vote), X CODE detail (refused)
 */

/** Returns the lines of a reply: its stamp, and the verdict on each of `count` operations. */
export function linesOf(reply: unknown, count: number): readonly string[] {
  const lines = typeof reply === "string" ? reply.split("\n") : [];
  if (lines.length !== count + 1) throw unexpected(reply);
  return lines;
}

function granted(fence: number): AcquireReply {
  return { kind: "granted", fence };
}

export function readAcquire(line: string | undefined, stamp: string): AcquireReply {
  const words = (line ?? "").split(" ");
  switch (words[0]) {
    case "G":
      return granted(numberOf(words[1], line));
    case "H": {
      // The value may contain spaces, because another library may have written it.
      const holder = holderOf(words.slice(3).join(" "), numberOf(words[1], line));
      return { kind: "held", holder, freeInMs: holder.remainingMs, rank: rankOf(words[2], line) };
    }
    case "Q": {
      const freeInMs = numberOf(words[1], line);
      return { kind: "held", holder: undefined, freeInMs, rank: rankOf(words[2], line) };
    }
    default:
      return readRefusal(words, line, stamp);
  }
}

const done: TouchReply = { kind: "done" };

export function readTouch(line: string | undefined, stamp: string): TouchReply {
  if (line === "K") return done;
  const words = (line ?? "").split(" ");
  if (words[0] === "N") return { kind: "gone", absent: words[1] === "ABSENT" };
  return readRefusal(words, line, stamp);
}

function readRefusal(words: readonly string[], line: string | undefined, stamp: string): Refusal {
  switch (words[0]) {
    case "B":
      return { kind: "blank", report: blankReport(words, line, stamp) };
    case "X":
      return { kind: "refused", error: refusal(words) };
    default:
      return { kind: "refused", error: unexpected(line) };
  }
}

/**
 * Returns what the reply to a touch proves if the driver may have sent the touch twice. Undefined
 * if a key is missing, which may be an effect of the first run: the touch is then sent again.
 */
export function touchAfterResend(reply: TouchReply): TouchReply | undefined {
  return reply.kind === "gone" && reply.absent ? undefined : reply;
}

/**
 * Decodes the verdicts on a list of touches. If the node refuses one of them (for example, because
 * it may not vote), that refusal is the reply to all.
 */
export function readTouches([stamp = "", ...lines]: readonly string[]): RenewReply {
  let verdicts = "";
  for (const line of lines) {
    if (line !== "K" && !line.startsWith("N ")) {
      const reply = readTouch(line, stamp);
      if (reply.kind === "blank" || reply.kind === "refused") return reply;
    }
    verdicts += line === "K" ? "K" : "N";
  }
  return { kind: "decided", verdicts };
}

/** Decodes the reply to SET with NX and GET: the value of the key before the SET, or nil. */
export function readSet(reply: unknown, owner: string): AcquireReply {
  // If the acquire is sent twice, the second run finds the value of the first one.
  if (reply === null || reply === undefined || reply === owner) return granted(0);
  if (typeof reply !== "string") throw unexpected(reply);
  const holder = holderOf(reply, undefined);
  return { kind: "held", holder, freeInMs: undefined, rank: undefined };
}

/** Parses a rank: "-" means that the caller has no entry in the queue. */
function rankOf(word: string | undefined, line: string | undefined): number | undefined {
  return word === "-" ? undefined : numberOf(word, line);
}

const whole: ReleaseReply = { whole: true, repeated: false };

/** Parses the verdict on a release, "R deleted total": how many of its keys were deleted. */
export function readRelease(line: string | undefined): ReleaseReply {
  if (line === "R 1 1") return whole;
  const [kind, deleted, total] = (line ?? "").split(" ");
  if (kind !== "R") throw unexpected(line);
  return { whole: deleted === total, repeated: false };
}

/**
 * Returns what the reply to a release proves if the driver may have sent the release twice. No key
 * of the owner is left, but it is unknown how many keys the first run deleted.
 */
export function releaseAfterResend(reply: ReleaseReply): ReleaseReply {
  return reply.whole ? reply : { whole: false, repeated: true };
}

/** Parses the reply of inspect.lua: "F waiters" (free), "I waiters pttl value" (held), or "X …". */
export function readInspect(text: string): InspectReply {
  const words = text.split(" ");
  if (words[0] === "X") throw refusal(words);
  const waiters = numberOf(words[1], text);
  if (words[0] === "F") return { holder: undefined, waiters };
  if (words[0] !== "I") throw unexpected(text);
  return { holder: holderOf(words.slice(3).join(" "), numberOf(words[2], text)), waiters };
}

/**
 * Limit for a value that another library wrote. Scripts send less of it; a plain SET returns all of
 * it.
 */
const foreignLengthMax = 2_300;

/**
 * Parses a lock's value: `owner|fence` or `owner` if Holdfast wrote it. A value of another library
 * counts as owner as a whole.
 */
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

function blankReport(
  words: readonly string[],
  line: string | undefined,
  stamp: string,
): BlankReport {
  const [, seconds, micros] = stamp.split(" ");
  return {
    serverMs: serverMsOf(seconds, micros, stamp),
    sinceMs: numberOf(words[1], line),
    everAdmitted: words[2] === "1",
    ttlMaxMs: numberOf(words[3], line),
  };
}

export function serverMsOf(seconds: unknown, micros: unknown, text: string | undefined): number {
  return numberOf(seconds, text) * 1_000 + Math.floor(numberOf(micros, text) / 1_000);
}

export function numberOf(word: unknown, text: string | undefined): number {
  const value = Number(word);
  if (typeof word !== "string" || word === "" || !Number.isFinite(value)) throw unexpected(text);
  return value;
}
