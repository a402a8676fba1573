import { spawn, type ChildProcess } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeOrder, type Order } from "./orders.ts";

/** How often one that was killed is started anew. */
const startsMax = 4;

/** The watchdog as `exec` sees it. It is in a session of its own, out of reach of the terminal. */
export class Watchdog {
  #child: ChildProcess | undefined;
  #last: Order | undefined;
  #starts = 0;
  #over = false;
  #acted = false;
  readonly #onGone: () => void;

  /** `onGone`: it has been killed more often than it was worth starting it again. */
  constructor(onGone: () => void) {
    this.#onGone = onGone;
    this.#start();
  }

  tell(order: Order): void {
    this.#last = order;
    this.#child?.stdin?.write(writeOrder(order));
  }

  /**
   * The command is over: nothing is to be guarded any more. Has whether the watchdog ended it,
   * which it says before it does.
   */
  async dismiss(): Promise<boolean> {
    this.#over = true;
    const child = this.#child;
    if (child !== undefined) {
      const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
      // Not asked but killed: it may not even have started, and nobody needs to wait for that.
      child.kill("SIGKILL");
      await closed;
    }
    return this.#acted;
  }

  #start(): void {
    this.#starts += 1;
    const script = join(dirname(fileURLToPath(import.meta.url)), "watchdog.js");
    // As an argument, because a pipe is written to only once the process is there.
    const told = this.#last === undefined ? [] : [writeOrder(this.#last)];
    const child = spawn(process.execPath, [script, ...told], {
      detached: true,
      stdio: ["pipe", "pipe", "ignore"],
      cwd: "/",
      env: {},
    });
    this.#child = child;
    // A broken pipe shows as its exit.
    child.stdin.on("error", () => undefined);
    child.stdout.on("data", () => {
      this.#acted = true;
    });
    child.once("error", () => this.#gone());
    child.once("close", () => this.#gone());
  }

  #gone(): void {
    this.#child = undefined;
    // One that has done its work is not needed again.
    if (this.#over || this.#acted) return;
    if (this.#starts < startsMax) this.#start();
    else this.#onGone();
  }
}
