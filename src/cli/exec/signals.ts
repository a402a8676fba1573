import { signalAll, type Target } from "./target.ts";

/**
 * In a group of its own the command hears of nothing unless we pass it on. In ours, the terminal
 * itself sends it Ctrl-C and Ctrl-\, and must not be repeated: a second one means "at once" to many
 * programs. The rest was sent to us alone.
 */
const passed = {
  group: ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"],
  tree: ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"],
} as const satisfies Record<Target["kind"], readonly NodeJS.Signals[]>;

/** The terminal's own: we stay until the command has decided what to do about them. */
const endured = ["SIGINT", "SIGQUIT"] as const;

/** Passes signals on to the command until the returned function is called. */
export function passSignals(target: Target, mayGoOn: () => boolean): () => void {
  const undo: (() => void)[] = [];
  const on = (signal: NodeJS.Signals, listener: () => void): void => {
    process.on(signal, listener);
    undo.push(() => process.off(signal, listener));
  };
  for (const signal of passed[target.kind]) {
    on(signal, () => {
      if (target.kind === "group") signalAll(target, signal);
      else sendOne(target.pid, signal);
    });
  }
  if (target.kind === "tree") {
    for (const signal of endured) on(signal, () => undefined);
  } else {
    // Stopped and continued together. After a long stop the lease may be over, and then the
    // command does not go on: it is ended by whoever watches the lease.
    on("SIGTSTP", () => {
      signalAll(target, "SIGSTOP");
      process.kill(process.pid, "SIGSTOP");
    });
    on("SIGCONT", () => {
      if (mayGoOn()) signalAll(target, "SIGCONT");
    });
  }
  return () => {
    for (const end of undo) end();
  };
}

function sendOne(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has just ended.
  }
}

/** Runs `work` with a signal that aborts when the user wants us gone; undefined if nobody did. */
export async function interruptible<Result>(
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<{ readonly result: Result } | { readonly interrupted: NodeJS.Signals }> {
  const controller = new AbortController();
  let heard: NodeJS.Signals | undefined;
  const listeners = (["SIGINT", "SIGTERM", "SIGHUP"] as const).map((signal) => {
    const listener = (): void => {
      heard ??= signal;
      controller.abort();
    };
    process.on(signal, listener);
    return () => process.off(signal, listener);
  });
  try {
    const result = await work(controller.signal);
    return { result };
  } catch (error) {
    if (heard !== undefined) return { interrupted: heard };
    throw error;
  } finally {
    for (const end of listeners) end();
  }
}
