import type { BenchLease } from "../locks/bench-lock.ts";
import { nowMs } from "../monotonic.ts";
import type { AwakeTime } from "./awake.ts";
import type { Journal } from "./journal.ts";

/** Interval for recording looks with the same result as the one before. */
const lookEveryMs = 200;

/** Records in the journal what the library reports about one lease at each look. */
export class WatchedLease {
  readonly lease: BenchLease;
  readonly about: { readonly lease: string; readonly resource: string };
  readonly #journal: Journal;
  #unwritten: { readonly t: number; readonly untilMs: number | undefined } | undefined;
  #writtenMs = 0;
  #untilMs: number | undefined;
  #trusted = true;
  #over = false;
  #reported = false;
  /** Ticks of the process since the end that the library named, without a report of the loss. */
  #ticksLate = 0;
  readonly #stopCounting: () => void;

  constructor(
    journal: Journal,
    about: { readonly lease: string; readonly resource: string },
    lease: BenchLease,
    awake: AwakeTime,
  ) {
    this.#journal = journal;
    this.about = about;
    this.lease = lease;
    const untilMs = lease.untilMs();
    this.#untilMs = untilMs;
    const fence = lease.fenced === undefined ? {} : { fence: String(lease.fenced.fence) };
    const { startedMs } = lease;
    const started = startedMs === undefined ? {} : { startedMs };
    journal.add({ what: "granted", ...about, ...fence, ...started, ...until(untilMs) });
    lease.onLost((reason) => {
      if (this.#over) return;
      const t = nowMs();
      this.#reported = true;
      this.#flush();
      const ticksLate = this.#ticksLate;
      const endMs = lease.namedUntilMs?.() ?? this.#untilMs;
      journal.add({ what: "reported", ...about, reason, ticksLate, ...until(endMs) }, t);
    });
    // Reads no state of the lease: a look makes the library report a loss that it had missed.
    this.#stopCounting = awake.onTick(() => {
      const namedMs = lease.namedUntilMs === undefined ? lease.untilMs() : lease.namedUntilMs();
      if (!this.#reported && namedMs !== undefined && nowMs() > namedMs) this.#ticksLate += 1;
    });
  }

  /**
   * Checks the lease. The moment is read before the library's answer, so the answer holds for
   * then.
   */
  look(): boolean {
    const t = nowMs();
    const trusted = this.lease.trusted();
    if (trusted) {
      this.#untilMs = this.lease.untilMs();
      this.#unwritten = { t, untilMs: this.#untilMs };
      if (t - this.#writtenMs >= lookEveryMs || !this.#trusted) this.#flush();
    } else if (this.#trusted) {
      this.#flush();
      this.#journal.add({ what: "look", ...this.about, trusted }, t);
    }
    this.#trusted = trusted;
    return trusted;
  }

  /** Must be called before the lease is released. */
  end(): void {
    this.look();
    this.#flush();
    this.#over = true;
    this.#stopCounting();
    const ticksLate = this.#reported ? {} : { ticksLate: this.#ticksLate };
    this.#journal.add({ what: "release", ...this.about, ...ticksLate });
  }

  #flush(): void {
    const found = this.#unwritten;
    if (found === undefined) return;
    this.#unwritten = undefined;
    this.#writtenMs = found.t;
    const { t, untilMs } = found;
    this.#journal.add({ what: "look", ...this.about, trusted: true, ...until(untilMs) }, t);
  }
}

function until(untilMs: number | undefined): { readonly untilMs?: number } {
  return untilMs === undefined ? {} : { untilMs };
}
