import type { RedisConnection } from "../../clients/contract.ts";

interface Met {
  readonly runId: string | undefined;
  readonly version: string | undefined;
  readonly denied: boolean;
}

/**
 * Which process stands behind a node, and of which version. Asked before the first command of each
 * connection: an address may lead to another server after a reconnect.
 */
export class Introduction {
  readonly #connection: RedisConnection;
  readonly #onNews: () => void;
  #known = false;
  /** The connection that the last answer came by, where the client shows it. */
  #line: object | undefined;
  #asking: Promise<void> | undefined;
  #runId: string | undefined;
  #version: string | undefined;
  #denied = false;
  #mustVerify = true;
  #connecting = 0;
  #hasGivenUp = false;

  /** `onNews` is called after the first answer, and after each that differs from the last. */
  constructor(connection: RedisConnection, onNews: () => void) {
    this.#connection = connection;
    this.#onNews = onNews;
  }

  get known(): boolean {
    return this.#known && this.#line === this.#connection.line?.();
  }

  get runId(): string | undefined {
    return this.#runId;
  }

  get version(): string | undefined {
    return this.#version;
  }

  /** The server lets us not look at INFO: neither its version nor its restarts can be known. */
  get denied(): boolean {
    return this.#denied;
  }

  /** Servers before 7 may carry scripts in their RDB: there, a cached script proves nothing. */
  get mustVerify(): boolean {
    return this.#mustVerify;
  }

  /**
   * Callers of one turn share a request. Those of later turns send their own until one has a reply:
   * a driver may lose a request silently, and nothing may wait for its reply alone. Rejects if it
   * cannot be sent.
   */
  ask(): Promise<void> {
    if (this.#asking === undefined) {
      this.#asking = this.#ask();
      queueMicrotask(() => {
        this.#asking = undefined;
      });
    }
    return this.#asking;
  }

  async #ask(): Promise<void> {
    const connecting = this.#hasGivenUp ? undefined : this.#connection.firstConnect?.();
    if (connecting !== undefined) await this.#until(connecting);
    const met = this.#connection.topology === "standalone" ? await this.#info() : undefined;
    const { runId, version, denied = false } = met ?? {};
    const isNews = !this.#known || runId !== this.#runId || denied !== this.#denied;
    this.#line = this.#connection.line?.();
    this.#known = true;
    this.#runId = runId;
    this.#version = version;
    this.#denied = denied;
    this.#mustVerify = !denied && !(Number.parseInt(version ?? "", 10) >= 7);
    if (isNews) this.#onNews();
  }

  /** True while calls wait for the first connect of the client: nothing was sent for them. */
  get isConnecting(): boolean {
    return this.#connecting > 0;
  }

  /** A round has waited long enough for the first connect: from now on no call waits for it. */
  giveUpConnecting(): void {
    this.#hasGivenUp = true;
  }

  async #until(connecting: Promise<void>): Promise<void> {
    this.#connecting += 1;
    try {
      await connecting;
    } finally {
      this.#connecting -= 1;
    }
  }

  /** A reply came from another process than the one we met: meet this one. */
  noticeRunId(cut: string): void {
    if (cut !== "-" && this.#runId !== undefined && !this.#runId.startsWith(cut)) {
      this.#known = false;
    }
  }

  async #info(): Promise<Met> {
    try {
      const info = String(await this.#connection.send("", ["INFO", "server"]));
      const runId = /run_id:(\w+)/.exec(info)?.[1];
      return { runId, version: /redis_version:(\S+)/.exec(info)?.[1], denied: false };
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith("NOPERM")) throw error;
      return { runId: undefined, version: undefined, denied: true };
    }
  }
}
