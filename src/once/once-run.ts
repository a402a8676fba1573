import { isHoldfastError, StoreError } from "../core/errors.ts";
import type { Emitter } from "../core/events.ts";
import type { Lease } from "../core/lease/lease.ts";
import type { Work } from "../core/locks.ts";
import type { Clock } from "../core/ports.ts";
import { messageOf } from "../core/report/loggable.ts";
import { quoted } from "../core/report/quoted.ts";
import { Pause } from "../core/time/pause.ts";
import type { Memo, MemoRecord } from "./memo.ts";
import { KeyReusedError, OutcomeUnknownError } from "./once-errors.ts";

export interface OnceCall<Result> {
  readonly key: string;
  readonly memo: Memo;
  readonly policy: {
    /** Hash of the fingerprint. Undefined if the caller gave none. */
    readonly print: string | undefined;
    readonly crash: "run-again" | "refuse";
    readonly keepMs: number;
  };
  readonly codec: {
    serialise(result: Result): string;
    parse(text: string): Result;
  };
  readonly clock: Clock;
  readonly events: Emitter;
}

/** Text of a record, as JSON. `lacks` says why a result that is done was not kept. */
interface Kept {
  readonly print?: string;
  readonly result?: string;
  readonly lacks?: string;
}

/** Box around a result, which may itself be undefined. */
interface Boxed<Result> {
  readonly result: Result;
}

const resultBytesMax = 65_536;
/** Pauses between the tries to store a result. */
const storePausesMs = [100, 400];

/**
 * Problem: a holder that comes too late must neither run work that is done, nor replace its result.
 * Idea: `begun` is written under the fence before the work runs. From then on the memo refuses the
 * writes of earlier holders. The same atomic step returns a result that an earlier holder has
 * written in the meantime.
 * Limit: an earlier holder may be in its work at that moment. Its result is refused; the effects of
 * its work are up to the guards that it passes its fence to.
 */
export class OnceRun<Result> {
  readonly #call: OnceCall<Result>;
  /** Result that this call has stored. */
  stored: Boxed<Result> | undefined;

  constructor(call: OnceCall<Result>) {
    this.#call = call;
  }

  /** Returns the result that an earlier call has stored. */
  async kept(): Promise<Boxed<Result> | undefined> {
    const record = await this.#call.memo.read(this.#call.key);
    return record === undefined ? undefined : this.#resultOf(record);
  }

  /** Runs the work under the lease, unless it is done. */
  async under(lease: Lease, work: Work<Result>): Promise<Result> {
    const { key, memo, policy } = this.#call;
    const record = await memo.read(key);
    const earlier = record === undefined ? undefined : this.#resultOf(record);
    if (earlier !== undefined) return earlier.result;
    if (record?.state === "begun" && policy.crash === "refuse") {
      throw new OutcomeUnknownError(key, record.fence);
    }
    const print = policy.print ?? this.#printOf(record);
    const about: Kept = print === undefined ? {} : { print };
    const begun = { state: "begun", text: JSON.stringify(about) } as const;
    const done = await memo.write(lease, key, begun, policy.keepMs);
    const late = done === undefined ? undefined : this.#resultOf(done);
    if (late !== undefined) return late.result;
    let result: Result;
    try {
      lease.assertHeld();
      result = await work(lease);
    } catch (error) {
      const failed = { state: "failed", text: JSON.stringify(about) } as const;
      // If this fails, the record says `begun`, as after a crash. The caller needs its own error.
      await memo.write(lease, key, failed, policy.keepMs).catch(() => undefined);
      throw error;
    }
    return await this.#store(lease, about, result);
  }

  /** Stores the result, and returns it as later callers receive it. */
  async #store(lease: Lease, about: Kept, result: Result): Promise<Result> {
    const { codec } = this.#call;
    let own = result;
    let kept: Kept;
    try {
      const text: unknown = codec.serialise(result);
      if (text !== undefined && typeof text !== "string") throw new Error("it is no text");
      const bytes = text === undefined ? 0 : Buffer.byteLength(text);
      if (bytes > resultBytesMax) {
        throw new Error(`its ${bytes} bytes are more than ${resultBytesMax}`);
      }
      kept = text === undefined ? about : { ...about, result: text };
      if (text !== undefined) own = codec.parse(text);
    } catch (error) {
      // The work is done, and must not run again because of its result.
      kept = { ...about, lacks: messageOf(error).slice(0, 200) };
      this.#warn(kept.lacks ?? "");
    }
    await this.#writeDone(lease, JSON.stringify(kept));
    this.stored = { result: own };
    return own;
  }

  /** Writes the record `done`. Tries again if the memo fails: the same fence is accepted again. */
  async #writeDone(lease: Lease, text: string): Promise<void> {
    const { key, memo, policy, clock } = this.#call;
    const pause = new Pause(clock);
    for (let tries = 0; ; tries += 1) {
      try {
        // A record that is done can only be that of an earlier try, whose reply was lost.
        await memo.write(lease, key, { state: "done", text }, policy.keepMs);
        return;
      } catch (error) {
        if (isHoldfastError(error, "FENCE_REJECTED")) throw error;
        const pauseMs = storePausesMs[tries];
        if (pauseMs === undefined) {
          const what = `the work of ${quoted(key)} has run, but its result could not be kept`;
          throw new StoreError(`${what}: ${messageOf(error)}`, { resources: [key], cause: error });
        }
        await pause.sleep(pauseMs);
      }
    }
  }

  /** Returns the result of a record. Undefined if the work is not done. Compares fingerprints. */
  #resultOf(record: MemoRecord): Boxed<Result> | undefined {
    const { key, policy, codec } = this.#call;
    const kept = parsed(record, key);
    const { print } = kept;
    const isOther = print !== undefined && policy.print !== undefined && print !== policy.print;
    // After a failure the key is free: a corrected request may have another fingerprint.
    if (isOther && record.state !== "failed") throw new KeyReusedError(key);
    if (record.state !== "done") return undefined;
    if (kept.lacks !== undefined) {
      const what = `the work of ${quoted(key)} is done, but its result was not kept`;
      throw new StoreError(`${what}: ${kept.lacks}`, { resources: [key] });
    }
    return { result: kept.result === undefined ? (undefined as Result) : codec.parse(kept.result) };
  }

  #printOf(record: MemoRecord | undefined): string | undefined {
    return record?.state === "begun" ? parsed(record, this.#call.key).print : undefined;
  }

  #warn(why: string): void {
    this.#call.events.emit("warning", {
      level: "warning",
      code: "result-not-kept",
      what: `the result of ${quoted(this.#call.key)} was not kept`,
      why,
      remedy: "return less from the work, or pass serialise and parse to once",
    });
  }
}

function parsed({ text }: MemoRecord, key: string): Kept {
  try {
    return JSON.parse(text) as Kept;
  } catch (cause) {
    throw new StoreError(`the memo of ${quoted(key)} holds something else than a record of once`, {
      resources: [key],
      cause,
    });
  }
}
