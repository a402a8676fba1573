import type { Lease } from "../../core/lease.ts";
import type { LeaseLostError } from "../../core/errors.ts";
import type { Connected } from "../connect.ts";
import { exitCodes } from "../exit-codes.ts";
import { Failure, Interrupted } from "../failure.ts";
import { toJson, type Output } from "../output.ts";
import type { Session } from "../session.ts";
import { exitCodeOf, RunningCommand, type CommandEnd } from "./command.ts";
import { heldVariables, refuseOwn } from "./held-above.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { interruptible, passSignals } from "./signals.ts";
import { killAfterMs, type StopTerms } from "./stop-plan.ts";
import { Watchdog } from "./watchdog-client.ts";

export interface ExecPlan extends StopTerms {
  readonly resources: readonly string[];
  readonly file: string;
  readonly args: readonly string[];
  readonly waitMs: number;
  readonly maxHoldMs: number;
  readonly label: string;
  readonly fencing: boolean;
}

/** Takes the locks, runs the command under them, and has the exit code. */
export async function runExec(session: Session, plan: ExecPlan): Promise<number> {
  if (process.platform === "win32") {
    throw new Failure("unsupported", "exec needs process groups and signals: on Windows use WSL");
  }
  return await session.using(
    async (connected) => {
      await refuseOwn(connected, plan.resources);
      const lease = await acquire(connected, plan);
      try {
        return await new Execution(connected, lease, plan, session.output).run();
      } finally {
        await lease.release();
      }
    },
    { fencing: plan.fencing },
  );
}

async function acquire({ locks }: Connected, plan: ExecPlan): Promise<Lease> {
  const { ttlMs, waitMs, maxHoldMs, label } = plan;
  const outcome = await interruptible((signal) =>
    locks.acquire(plan.resources, {
      ttl: ttlMs,
      wait: waitMs === Infinity ? "forever" : waitMs,
      maxHold: maxHoldMs,
      renew: true,
      label,
      signal,
    }),
  );
  if ("result" in outcome) return outcome.result;
  throw new Interrupted(outcome.interrupted);
}

/** One command under one lease. */
class Execution {
  readonly #connected: Connected;
  readonly #lease: Lease;
  readonly #plan: ExecPlan;
  readonly #output: Output;
  readonly #startedMs = performance.now();
  #stopped: Promise<void> | undefined;
  #why = "";

  constructor(connected: Connected, lease: Lease, plan: ExecPlan, output: Output) {
    this.#connected = connected;
    this.#lease = lease;
    this.#plan = plan;
    this.#output = output;
  }

  async run(): Promise<number> {
    const { file, args } = this.#plan;
    const watchdog = new Watchdog(() => {
      this.#output.warn("the watchdog was killed: should holdfast be killed too, nobody stops it");
    });
    try {
      const command = await RunningCommand.start(file, args, this.#environment());
      // At once, before anything else can happen to us.
      this.#tell(watchdog, command);
      return await this.#attend(command, watchdog);
    } finally {
      await watchdog.dismiss();
    }
  }

  async #attend(command: RunningCommand, watchdog: Watchdog): Promise<number> {
    const { locks } = this.#connected;
    const watch = new LeaseWatch(this.#lease, this.#plan, (why) => this.#stop(command, why));
    const undo = [
      locks.on("renewed", () => this.#tell(watchdog, command)),
      passSignals(command.target, () => {
        watch.look();
        return this.#stopped === undefined;
      }),
    ];
    const end = await command.ended;
    watch.end();
    await this.#stopped;
    for (const one of undo) one();
    return await this.#judge(end);
  }

  #stop(command: RunningCommand, why: "lost" | "doubtful"): void {
    const leftMs = why === "lost" ? 0 : this.#lease.remainingMs();
    const reason = this.#lease.signal.reason as LeaseLostError | undefined;
    const cause = why === "lost" ? reason?.message : "the lease could not be renewed in time";
    this.#why = cause ?? "the lease was lost";
    const left = leftMs > 0 ? `, ${leftMs} ms before it ends` : "";
    if (!this.#output.json) this.#output.note(`${this.#why}; stopping the command${left}`);
    this.#stopped = command.stop(killAfterMs(this.#plan, leftMs));
  }

  /** Work that ran outside its lease never passes for done, whatever it ended with. */
  async #judge(end: CommandEnd): Promise<number> {
    const outcome = await this.#lease.release();
    if (this.#stopped === undefined && !outcome.released) {
      if (outcome.reason === "unreachable") {
        this.#output.warn("the lock could not be given back: it ends by itself, with its TTL");
      } else {
        this.#why = `the lease was lost while the command ran (${outcome.reason})`;
        if (!this.#output.json) this.#output.note(this.#why);
      }
    }
    const exit = this.#why === "" ? exitCodeOf(end) : exitCodes.lost.code;
    if (this.#output.json) this.#report(end, exit);
    return exit;
  }

  /** To stderr: stdout is the command's. */
  #report(end: CommandEnd, exit: number): void {
    const { resources } = this.#lease;
    const told = {
      resources,
      fence: this.#fence,
      exit,
      command: end,
      lost: this.#why === "" ? undefined : this.#why,
      heldMs: Math.round(performance.now() - this.#startedMs),
    };
    process.stderr.write(`${toJson(told)}\n`);
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
      ...heldVariables({ store, resources, fence, pid: process.pid }),
    };
  }

  #tell(watchdog: Watchdog, { target }: RunningCommand): void {
    const leftMs = this.#lease.remainingMs();
    const { ttlMs, graceMs } = this.#plan;
    watchdog.tell({
      target,
      terms: { ttlMs, graceMs },
      untilNs: String(process.hrtime.bigint() + BigInt(leftMs) * 1_000_000n),
      untilWallMs: Date.now() + leftMs,
      // The embedded store frees the locks of a dead process at once.
      orphanGraceMs: this.#connected.kind === "embedded" ? 0 : graceMs,
    });
  }
}
