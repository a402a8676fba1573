import { spawn, type ChildProcess } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeOrder, type Order } from "./orders.ts";

/** Limit for starts of the watchdog; one that was killed is replaced. */
const startsMax = 4;

/**
 * The watchdog process as `exec` sees it. It has its own session, so that signals from the terminal
 * do not reach it.
 */
export class Watchdog {
  #child: ChildProcess | undefined;
  #last: Order | undefined;
  #starts = 0;
  #over = false;
  #acted = false;
  readonly #onGone: () => void;

  /** Calls `onGone` if the watchdog was killed and is not started again. */
  constructor(onGone: () => void) {
    this.#onGone = onGone;
    this.#start();
  }

  tell(order: Order): void {
    this.#last = order;
    this.#child?.stdin?.write(writeOrder(order));
  }

  /**
   * Ends the watchdog, because the command is over. Resolves to true if the watchdog has stopped
   * the command, which it reports before it does so.
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
    // Passed as an argument, because the child reads its pipe only after it has started.
    const told = this.#last === undefined ? [] : [writeOrder(this.#last)];
    const child = spawn(process.execPath, [script, ...told], {
      detached: true,
      stdio: ["pipe", "pipe", "ignore"],
      cwd: "/",
      env: {},
    });
    this.#child = child;
    // Ignored: a broken pipe is followed by "close".
    child.stdin.on("error", () => undefined);
    child.stdout.on("data", () => {
      this.#acted = true;
    });
    child.once("error", () => this.#gone());
    child.once("close", () => this.#gone());
  }

  #gone(): void {
    this.#child = undefined;
    // The watchdog has done its work; do not start it again.
    if (this.#over || this.#acted) return;
    if (this.#starts < startsMax) this.#start();
    else this.#onGone();
  }
}
