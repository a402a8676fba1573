import { Failure, failureOf } from "../failure.ts";
import type { ExecPlan } from "../exec/run-exec.ts";
import {
  defaultLabel,
  flagDuration,
  flagInteger,
  type AddCommand,
  type Session,
} from "../session.ts";

interface ExecFlags {
  readonly ttl?: string;
  readonly wait?: string;
  readonly grace?: string;
  readonly maxHold?: string;
  readonly label?: string;
  readonly fence: boolean;
  readonly quiet?: boolean;
  readonly conflictExitCode?: string;
}

const examples = `
Examples:
  holdfast exec backup -- pg_dump -f /backup/all.sql
  holdfast exec deploy --wait 0 -- ./deploy.sh          give up at once if another has it
  holdfast exec report --wait 0 --quiet --conflict-exit-code 0 -- ./report.sh
                                                        for cron: skip in silence
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
  const ttlMs = flagDuration("--ttl", flags.ttl ?? config.ttl ?? "10s", 100, 86_400_000);
  const wait = flags.wait ?? config.wait ?? "10s";
  const grace = flags.grace ?? config.grace;
  return {
    resources,
    file,
    args,
    ttlMs,
    waitMs: wait === "forever" ? Infinity : flagDuration("--wait", wait === "0" ? "0ms" : wait),
    graceMs:
      grace === undefined
        ? Math.min(5_000, Math.round(ttlMs / 4))
        : flagDuration("--grace", grace === "0" ? "0ms" : grace, 0, ttlMs),
    maxHoldMs: flagDuration("--max-hold", flags.maxHold ?? config.maxHold ?? "720h", 100),
    label: flags.label ?? config.label ?? defaultLabel(),
    fencing: flags.fence,
    quiet: flags.quiet ?? false,
  };
}
