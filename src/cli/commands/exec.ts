import { processLabel } from "../../runtime/process-label.ts";
import { Failure, failureOf } from "../failure.ts";
import { inheritedDescriptors } from "../exec/inherited.ts";
import { onceWaitMaxMs } from "../exec/hold.ts";
import type { ExecPlan } from "../exec/run-exec.ts";
import { flagDuration, flagInteger, type AddCommand, type Session } from "../session.ts";
import type { StoreAddress } from "../store-address.ts";
import { shortDuration } from "../words.ts";

interface ExecFlags {
  readonly ttl?: string;
  readonly wait?: string;
  readonly grace?: string;
  readonly maxHold?: string;
  readonly oncePer?: string;
  readonly minHold?: string;
  readonly label?: string;
  readonly fence: boolean;
  readonly quiet?: boolean;
  readonly conflictExitCode?: string;
}

const ttlMinMs = 100;

const examples = `
Examples:
  holdfast exec backup -- pg_dump -f /backup/all.sql
  holdfast exec deploy --wait 0 -- ./deploy.sh          give up at once if another has it
  holdfast exec report --wait 0 --quiet --conflict-exit-code 0 -- ./report.sh
                                                        for cron: skip in silence
  holdfast exec report --once-per 1h -- ./report.sh     for cron on several machines
  holdfast exec deploy --wait forever --ttl 30s -- make  wait as long as it takes
  holdfast exec a b --grace 5s -- ./move.sh             two locks, 5 s to clean up after a loss

The command finds HOLDFAST_RESOURCE, HOLDFAST_FENCE and HOLDFAST_EXPIRES_AT in its environment.
It is stopped before its lease ends when the lease cannot be renewed, and also when holdfast
itself is killed. Exit codes: those of the command; 75 not acquired, 76 lost, 69 no store.`;

export const addExec: AddCommand = (program, host) => {
  program
    .command("exec")
    .summary("run a command while holding a lock")
    .description("Run a command while holding one or several locks.")
    .usage("[options] <resource...> -- <command> [args...]")
    .argument("<resource...>", "what to lock; several are taken at once, all or nothing")
    .option("-t, --ttl <duration>", "how long the lease lives without renewal (default: 10s)")
    .option("-w, --wait <duration>", "how long to wait; 0 and forever work, too (default: 10s)")
    .option("-g, --grace <duration>", "from SIGTERM to SIGKILL (default: a quarter of the TTL)")
    .option("--max-hold <duration>", "end the lease after this, however it renews (default: 720h)")
    .option("--once-per <period>", "after a success, keep the lock for most of this period")
    .option("--min-hold <duration>", "keep the lock for this long, even if the command was shorter")
    .option("-l, --label <text>", "shown to others (default: host:pid)")
    .option("--no-fence", "no fence, on Redis: one plain SET NX PX")
    .option("-q, --quiet", "no message about the store, about waiting, or when not acquired")
    .option("-E, --conflict-exit-code <code>", "exit code when not acquired (default: 75)")
    .addHelpText("after", examples)
    .action(
      host.act((session, resources: readonly string[], flags: ExecFlags) =>
        exec(session, resources, flags, host.rest),
      ),
    );
};

async function exec(
  session: Session,
  resources: readonly string[],
  flags: ExecFlags,
  command: readonly string[] | undefined,
): Promise<number> {
  const [file, ...args] = command ?? [];
  if (file === undefined || file === "") {
    throw new Failure("misuse", "exec needs a command after --, as in: holdfast exec NAME -- make");
  }
  const plan = planOf(session, resources, file, args, flags);
  const code =
    flags.conflictExitCode === undefined
      ? undefined
      : flagInteger("--conflict-exit-code", flags.conflictExitCode, 0, 255);
  const { runExec } = await import("../exec/run-exec.ts");
  try {
    return await runExec(session, plan);
  } catch (error) {
    const failure = failureOf(error);
    if (failure?.exit !== "held") throw error;
    throw new Failure("held", failure.message, error, { code, silent: plan.quiet });
  }
}

function planOf(
  session: Session,
  resources: readonly string[],
  file: string,
  args: readonly string[],
  flags: ExecFlags,
): ExecPlan {
  const { config } = session.found;
  const ttl = flags.ttl ?? config.ttl;
  const ttlMs =
    ttl === undefined
      ? defaultTtlMs(session.chosen.address)
      : flagDuration("--ttl", ttl, ttlMinMs, 86_400_000);
  const grace = flags.grace ?? config.grace;
  const maxHoldMs = flagDuration("--max-hold", flags.maxHold ?? config.maxHold ?? "720h", 100);
  const oncePerMs =
    flags.oncePer === undefined
      ? undefined
      : flagDuration("--once-per", flags.oncePer, 1_000, maxHoldMs);
  return {
    resources,
    file,
    args,
    ttlMs,
    waitMs: waitMsOf(flags, config.wait, oncePerMs),
    isDefaultWait: (flags.wait ?? config.wait ?? oncePerMs) === undefined,
    graceMs:
      grace === undefined
        ? Math.min(5_000, Math.round(ttlMs / 4))
        : flagDuration("--grace", grace === "0" ? "0ms" : grace, 0, ttlMs),
    maxHoldMs,
    oncePerMs,
    minHoldMs: flagDuration("--min-hold", flags.minHold ?? "0ms", 0, maxHoldMs),
    label: flags.label ?? config.label ?? processLabel(),
    fencing: flags.fence,
    quiet: flags.quiet ?? false,
    inherited: inheritedDescriptors(),
  };
}

/** A store with a smaller `maxTtl` would reject the usual default. */
function defaultTtlMs(address: StoreAddress): number {
  const maxTtl = address.kind === "embedded" ? address.maxTtl : address.settings.maxTtl;
  if (maxTtl === undefined) return 10_000;
  return Math.min(10_000, flagDuration("maxTtl in the store address", maxTtl, ttlMinMs));
}

function waitMsOf(
  flags: ExecFlags,
  configured: string | undefined,
  oncePerMs: number | undefined,
): number {
  const maxMs = oncePerMs === undefined ? Infinity : onceWaitMaxMs(oncePerMs);
  const { wait } = flags;
  // The default and the config file are not meant for one job, so they are cut.
  if (wait === undefined) return Math.min(maxMs, parsedWaitMs(configured ?? "10s"));
  const waitMs = parsedWaitMs(wait);
  if (waitMs <= maxMs) return waitMs;
  throw new Failure(
    "misuse",
    `with --once-per ${flags.oncePer}, --wait can be ${shortDuration(maxMs)} at most: after a ` +
      "longer wait the command would run a second time in the period",
  );
}

function parsedWaitMs(wait: string): number {
  return wait === "forever" ? Infinity : flagDuration("--wait", wait === "0" ? "0ms" : wait);
}
