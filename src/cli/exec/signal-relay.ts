import { endBy, endingSignals } from "../early-signals.ts";
import { send, type ProcessTree } from "./process-tree.ts";
import type { Target } from "./target.ts";

/**
 * Signals that holdfast passes on to the command.
 *
 * `group`: the command has its own process group and gets only the signals that holdfast passes on.
 * `tree`: the command is in the process group of holdfast, and the terminal itself sends it Ctrl-C
 * and Ctrl-\. Holdfast must not repeat these two signals, because many programs take a second one
 * as "stop at once". Other signals reach only holdfast, which passes them on.
 */
const passed = {
  group: ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"],
  tree: ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"],
} as const satisfies Record<Target["kind"], readonly NodeJS.Signals[]>;

const signalsOf = {
  group: [...passed.group, "SIGTSTP", "SIGCONT"],
  // `tree` has no SIGTSTP: Ctrl-Z stops holdfast and the command, and the shell continues both.
  tree: [...passed.tree, "SIGINT", "SIGQUIT", "SIGCONT"],
} as const satisfies Record<Target["kind"], readonly NodeJS.Signals[]>;

type Sink = (signal: NodeJS.Signals) => void;

/**
 * Receives all signals, from before the store is opened until the command has ended. The listeners
 * stay installed all the time, because without a listener a signal would have its default effect.
 * Until the first call of `to`, a signal such as SIGTERM ends holdfast at once, because no lock is
 * held.
 */
export class SignalRelay {
  readonly #listeners: readonly (() => void)[];
  #sink: Sink = waitingSink(endBy);

  constructor(kind: Target["kind"]) {
    this.#listeners = signalsOf[kind].map((signal) => {
      const listener = (): void => this.#sink(signal);
      process.on(signal, listener);
      return () => process.off(signal, listener);
    });
  }

  /** Sends all later signals to `sink`. */
  to(sink: Sink): void {
    this.#sink = sink;
  }

  end(): void {
    for (const end of this.#listeners) end();
  }
}

/**
 * Returns the sink for the time in which holdfast waits for the lock. It calls `end` for signals
 * that end holdfast.
 */
export function waitingSink(end: (signal: NodeJS.Signals) => void): Sink {
  return (signal) => {
    if ((endingSignals as readonly string[]).includes(signal)) end(signal);
    else if (signal === "SIGTSTP") process.kill(process.pid, "SIGSTOP");
  };
}

/**
 * Returns the sink that passes signals to the command. `mayGoOn` checks the lease, which may have
 * ended while holdfast was stopped for a long time.
 */
export function commandSink(
  { pid, kind }: Target,
  tree: ProcessTree,
  mayGoOn: () => boolean,
): Sink {
  return (signal) => {
    if (signal === "SIGCONT") {
      // If the lease is over, the command is not continued but ended by the lease watch.
      if (mayGoOn() && kind === "group") tree.signal("SIGCONT");
    } else if (signal === "SIGTSTP") {
      // Stops the command and holdfast; SIGCONT continues both.
      tree.signal("SIGSTOP");
      process.kill(process.pid, "SIGSTOP");
    } else if ((passed[kind] as readonly string[]).includes(signal)) {
      send(kind === "group" ? -pid : pid, signal);
    }
  };
}
