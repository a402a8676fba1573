import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { isatty } from "node:tty";
import type { Lease } from "../../core/lease/lease.ts";
import type { LeaseLostError } from "../../core/errors.ts";
import type { Connected } from "../connect.ts";
import { endingSignals, handOverSignals } from "../early-signals.ts";
import { exitCodes } from "../exit-codes.ts";
import { Failure, Interrupted } from "../failure.ts";
import { toJson, type Output } from "../output.ts";
import type { Session } from "../session.ts";
import { shortDuration } from "../words.ts";
import { exitCodeOf, RunningCommand, targetKind, type CommandEnd } from "./command.ts";
import { checkExecutable } from "./gate.ts";
import { earlierWatchdogsEnded, watchdogEnvironment } from "./earlier-watchdogs.ts";
import { heldVariables, refuseOwn } from "./held-above.ts";
import { Hold, holdMs, type HoldTerms } from "./hold.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { commandSink, SignalRelay, waitingSink } from "./signal-relay.ts";
import { killAfterMs, marginMs, type StopTerms } from "./stop-plan.ts";
import type { Target } from "./target.ts";
import { noteCountdown, noteWait } from "./wait-notice.ts";
import { Watchdog } from "./watchdog-client.ts";

export interface ExecPlan extends StopTerms, HoldTerms {
  readonly resources: readonly string[];
  readonly file: string;
  readonly args: readonly string[];
  readonly waitMs: number;
  /** True if the user gave no wait. */
  readonly isDefaultWait: boolean;
  readonly maxHoldMs: number;
  readonly label: string;
  readonly fencing: boolean;
  /** Descriptors above 2 that the caller has opened for the command. */
  readonly inherited: readonly number[];
  /** If true, writes no messages about the store and about waiting. */
  readonly quiet: boolean;
}

/** Acquires the locks, runs the command and resolves to the exit code. */
export async function runExec(session: Session, plan: ExecPlan): Promise<number> {
  if (process.platform === "win32") {
    throw new Failure("unsupported", "exec needs process groups and signals: on Windows use WSL");
  }
  checkExecutable(plan.file);
  const relay = new SignalRelay(targetKind());
  handOverSignals();
  const { output } = session;
  const isForPeople = !plan.quiet && !output.json && isatty(process.stderr.fd);
  const fitsMs = Math.floor(plan.ttlMs / 3);
  if (plan.graceMs > fitsMs && (isForPeople || output.debug)) {
    output.note(`only ${shortDuration(fitsMs)} of --grace fit into the lease: use a longer --ttl`);
  }
  try {
    return await session.using(
      async (connected) => {
        await refuseOwn(connected, plan.resources);
        const controller = new AbortController();
        relay.to(waitingSink((signal) => controller.abort(new Interrupted(signal))));
        if (!plan.quiet) noteCountdown(connected, output);
        const notice = isForPeople || output.debug ? noteWait(connected, plan, output) : undefined;
        const lease = await acquire(connected, plan, controller.signal).finally(notice);
        try {
          await noSignalCame(controller.signal);
          return await new Execution(connected, lease, plan, { output, isForPeople }).run(relay);
        } finally {
          await lease.release();
        }
      },
      { fencing: plan.fencing, saysStore: isForPeople },
    );
  } finally {
    relay.end();
  }
}

async function acquire({ locks }: Connected, plan: ExecPlan, signal: AbortSignal): Promise<Lease> {
  const { ttlMs, waitMs, maxHoldMs, label, resources } = plan;
  const wait = waitMs === Infinity ? "forever" : waitMs;
  const terms = { ttl: ttlMs, maxHold: maxHoldMs, renew: true, label, signal } as const;
  return await locks.acquire(resources, plan.isDefaultWait ? terms : { ...terms, wait });
}

/**
 * Throws Interrupted if a signal arrived before the command starts. The event loop delivers a
 * signal in its next turn at the latest, so this function waits for one whole turn.
 */
async function noSignalCame(signal: AbortSignal): Promise<void> {
  await nextTurn();
  await nextTurn();
  signal.throwIfAborted();
}

/** One command under one lease. */
class Execution {
  readonly #connected: Connected;
  readonly #lease: Lease;
  readonly #plan: ExecPlan;
  readonly #output: Output;
  readonly #isForPeople: boolean;
  readonly #hold = new Hold();
  readonly #startedMs = performance.now();
  readonly #mark = randomUUID();
  #stopped: Promise<void> | undefined;
  /** True if the store confirmed the lease after the command had ended. */
  #wasHeld = false;
  #why = "";

  constructor(
    connected: Connected,
    lease: Lease,
    plan: ExecPlan,
    { output, isForPeople }: { readonly output: Output; readonly isForPeople: boolean },
  ) {
    this.#connected = connected;
    this.#lease = lease;
    this.#plan = plan;
    this.#output = output;
    this.#isForPeople = isForPeople;
  }

  async run(relay: SignalRelay): Promise<number> {
    const { file, args } = this.#plan;
    const { identity: store, kind: storeKind } = this.#connected;
    const locked = { store, resources: this.#plan.resources };
    // Other stores keep the locks of a killed `exec` until its command has ended.
    if (storeKind === "embedded" && !(await earlierWatchdogsEnded(locked))) {
      this.#output.warn("the command of an earlier holder may still be running");
    }
    const watchdog = new Watchdog(watchdogEnvironment(locked), () => {
      this.#output.warn("the watchdog was killed: should holdfast be killed too, nothing stops it");
    });
    try {
      // The watchdog receives the mark before the command starts: if holdfast dies during the
      // start, the watchdog finds the command by its mark.
      const [mark, kind] = [this.#mark, targetKind()];
      this.#send(watchdog, { target: { pid: 0, kind, mark, started: undefined } });
      const how = { mark, inherited: this.#plan.inherited };
      const command = await RunningCommand.start(file, args, this.#environment(), how);
      this.#send(watchdog, command);
      command.letGo();
      return await this.#attend(command, watchdog, relay);
    } finally {
      await watchdog.dismiss();
    }
  }

  async #attend(command: RunningCommand, watchdog: Watchdog, relay: SignalRelay): Promise<number> {
    const { locks } = this.#connected;
    const watch = new LeaseWatch(this.#lease, this.#plan, (why) => {
      const killMs = this.#stop(command, why);
      // If holdfast is stopped now, the watchdog sends the SIGKILL, without a second SIGTERM.
      this.#send(watchdog, command, { leftMs: killMs + 2 * marginMs(this.#plan), graceMs: 0 });
    });
    const mayGoOn = (): boolean => {
      watch.look();
      return this.#stopped === undefined;
    };
    const passOn = commandSink(command.target, command.tree, mayGoOn);
    relay.to((signal) => {
      this.#endHoldOn(signal);
      passOn(signal);
    });
    const stopSending = locks.on("renewed", () => this.#send(watchdog, command));
    const end = await command.ended;
    watch.end();
    await this.#stopped;
    stopSending();
    if ((await watchdog.dismiss()) && this.#why === "") {
      this.#why = "the lease was not renewed while holdfast stood still; the command was stopped";
      if (!this.#output.json) this.#output.note(this.#why);
    }
    if (this.#why === "") await this.#keep(end, relay);
    return await this.#judge(end);
  }

  /** Keeps the lock as `--once-per` and `--min-hold` say, unless a signal ended the command. */
  async #keep(end: CommandEnd, relay: SignalRelay): Promise<void> {
    const untilMs = this.#startedMs + holdMs(this.#plan, exitCodeOf(end) === 0);
    const leftMs = untilMs - performance.now();
    if (leftMs <= 0 || this.#hold.hasEnded) return;
    relay.to(waitingSink((signal) => this.#endHoldOn(signal)));
    // A loss while the command ran may not be noticed yet, and must not count as a loss after it.
    const isHeld = await this.#lease.prove().catch(() => undefined);
    if (isHeld === false) return;
    this.#wasHeld = isHeld === true;
    if (this.#isForPeople || this.#output.debug) {
      this.#output.note(`done; keeping the lock for ${shortDuration(leftMs)} (a signal ends this)`);
    }
    await this.#hold.wait(this.#lease, untilMs);
  }

  #endHoldOn(signal: NodeJS.Signals): void {
    if ((endingSignals as readonly string[]).includes(signal)) this.#hold.end();
  }

  /** Begins to stop the command. Returns the time until SIGKILL. */
  #stop(command: RunningCommand, why: "lost" | "doubtful"): number {
    const leftMs = why === "lost" ? 0 : this.#lease.remainingMs();
    const reason = this.#lease.signal.reason as LeaseLostError | undefined;
    const cause = why === "lost" ? reason?.message : "the lease could not be renewed in time";
    this.#why = cause ?? "the lease was lost";
    const left = leftMs > 0 ? `, ${leftMs} ms before it ends` : "";
    if (!this.#output.json) this.#output.note(`${this.#why}; stopping the command${left}`);
    const killMs = killAfterMs(this.#plan, leftMs);
    this.#stopped = command.stop(killMs);
    return killMs;
  }

  /**
   * Releases the lock and returns the exit code. If the lease was lost while the command ran, the
   * code reports that instead of the command's success.
   */
  async #judge(end: CommandEnd): Promise<number> {
    const outcome = await this.#lease.release();
    if (this.#stopped === undefined && !outcome.released) {
      if (outcome.reason === "unreachable") {
        this.#output.warn("the lock could not be given back: it ends by itself, with its TTL");
      } else if (this.#wasHeld) {
        this.#output.warn("the lock was lost after the command had ended: it may run again early");
      } else {
        this.#why = `the lease was lost while the command ran (${outcome.reason})`;
        if (!this.#output.json) this.#output.note(this.#why);
      }
    }
    const exit = this.#why === "" ? exitCodeOf(end) : exitCodes.lost.code;
    if (this.#output.json) this.#report(end, exit);
    return exit;
  }

  /** Writes the report to stderr, because stdout belongs to the command. */
  #report(end: CommandEnd, exit: number): void {
    const { resources } = this.#lease;
    const loss = {
      resources,
      fence: this.#fence,
      exit,
      command: end,
      lost: this.#why === "" ? undefined : this.#why,
      heldMs: Math.round(performance.now() - this.#startedMs),
    };
    process.stderr.write(`${toJson(loss)}\n`);
  }

  get #fence(): string | undefined {
    return this.#connected.fencing ? String(this.#lease.fence) : undefined;
  }

  #environment(): NodeJS.ProcessEnv {
    const { resources } = this.#lease;
    const fence = this.#fence;
    const { identity: store } = this.#connected;
    return {
      ...process.env,
      HOLDFAST_RESOURCE: resources.join("\n"),
      HOLDFAST_FENCE: fence,
      HOLDFAST_EXPIRES_AT: String(Date.now() + this.#lease.remainingMs()),
      ...heldVariables({ store, resources, fence, pid: process.pid, mark: this.#mark }),
    };
  }

  #send(
    watchdog: Watchdog,
    { target }: { readonly target: Target },
    { leftMs, graceMs } = { leftMs: this.#lease.remainingMs(), graceMs: this.#plan.graceMs },
  ): void {
    watchdog.send({
      target,
      terms: { ttlMs: this.#plan.ttlMs, graceMs },
      untilNs: String(process.hrtime.bigint() + BigInt(Math.floor(leftMs)) * 1_000_000n),
      untilWallMs: Date.now() + leftMs,
      // The embedded store frees the locks of a dead process at once.
      orphanGraceMs: this.#connected.kind === "embedded" ? 0 : graceMs,
    });
  }
}
