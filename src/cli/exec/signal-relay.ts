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

/** Those that end a wait for the lock. */
export const ending: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];

const heard = {
  group: [...passed.group, "SIGTSTP", "SIGCONT"],
  // Ctrl-Z stops us as it stops the command: the shell continues both.
  tree: [...passed.tree, "SIGINT", "SIGQUIT", "SIGCONT"],
} as const satisfies Record<Target["kind"], readonly NodeJS.Signals[]>;

type Sink = (signal: NodeJS.Signals) => void;

/**
 * Hears every signal from before the wait until after the command. Without a gap: one that comes
 * while listeners change hands would do what it does by default.
 */
export class SignalRelay {
  readonly #listeners: readonly (() => void)[];
  #sink: Sink = () => undefined;

  constructor(kind: Target["kind"]) {
    this.#listeners = heard[kind].map((signal) => {
      const listener = (): void => this.#sink(signal);
      process.on(signal, listener);
      return () => process.off(signal, listener);
    });
  }

  /** From now on they go there. */
  to(sink: Sink): void {
    this.#sink = sink;
  }

  end(): void {
    for (const end of this.#listeners) end();
  }
}

/** While there is no command yet: `end` is called for those that end us. */
export function waitingSink(end: (signal: NodeJS.Signals) => void): Sink {
  return (signal) => {
    if (ending.includes(signal)) end(signal);
    else if (signal === "SIGTSTP") process.kill(process.pid, "SIGSTOP");
  };
}

/** To the command. `mayGoOn` looks at the lease: after a long stop it may be over. */
export function commandSink(target: Target, mayGoOn: () => boolean): Sink {
  return (signal) => {
    if (signal === "SIGCONT") {
      // A command whose lease is over does not go on: it is ended by whoever watches the lease.
      if (mayGoOn() && target.kind === "group") signalAll(target, "SIGCONT");
    } else if (signal === "SIGTSTP") {
      // Stopped together, and continued together.
      signalAll(target, "SIGSTOP");
      process.kill(process.pid, "SIGSTOP");
    } else if ((passed[target.kind] as readonly string[]).includes(signal)) {
      if (target.kind === "group") signalAll(target, signal);
      else sendOne(target.pid, signal);
    }
  };
}

function sendOne(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has just ended.
  }
}
