import { spawn, type ChildProcess } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeOrder, type Order } from "./orders.ts";

/** Limit for starts of the watchdog. A watchdog that was killed is replaced. */
const startsMax = 4;

/**
 * Connection of `exec` to its watchdog process. The watchdog has its own session, so that signals
 * from the terminal do not reach it.
 */
export class Watchdog {
  #child: ChildProcess | undefined;
  #last: Order | undefined;
  #starts = 0;
  #over = false;
  #acted = false;
  readonly #env: NodeJS.ProcessEnv;
  readonly #onGone: () => void;

  /**
   * `env` is the whole environment of the watchdog. Calls `onGone` if the watchdog was killed and
   * is not started again.
   */
  constructor(env: NodeJS.ProcessEnv, onGone: () => void) {
    this.#env = env;
    this.#onGone = onGone;
    this.#start();
  }

  send(order: Order): void {
    this.#last = order;
    this.#child?.stdin?.write(writeOrder(order));
  }

  /**
   * Ends the watchdog after the command has ended. Resolves to true if the watchdog has stopped the
   * command: it reports a stop before it sends a signal.
   */
  async dismiss(): Promise<boolean> {
    this.#over = true;
    const child = this.#child;
    if (child !== undefined) {
      const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
      // SIGKILL needs no reply, and works even if the watchdog is still starting.
      child.kill("SIGKILL");
      await closed;
    }
    return this.#acted;
  }

  #start(): void {
    this.#starts += 1;
    const script = join(dirname(fileURLToPath(import.meta.url)), "watchdog.js");
    // The last order is passed as an argument, because the child reads its pipe only after it has
    // started.
    const lastOrder = this.#last === undefined ? [] : [writeOrder(this.#last)];
    const child = spawn(process.execPath, [script, ...lastOrder], {
      detached: true,
      stdio: ["pipe", "pipe", "ignore"],
      cwd: "/",
      env: this.#env,
    });
    this.#child = child;
    // The error is ignored, because the event "close" follows a broken pipe.
    child.stdin.on("error", () => undefined);
    child.stdout.on("data", () => {
      this.#acted = true;
    });
    child.once("error", () => this.#gone());
    child.once("close", () => this.#gone());
  }

  #gone(): void {
    this.#child = undefined;
    // A watchdog that was dismissed, or that has stopped the command, is not started again.
    if (this.#over || this.#acted) return;
    if (this.#starts < startsMax) this.#start();
    else this.#onGone();
  }
}
