import type { RedisConnection } from "../../clients/contract.ts";

interface Met {
  readonly runId: string | undefined;
  readonly version: string | undefined;
  readonly denied: boolean;
}

/** Which process stands behind a node, and of which version: asked before the first command. */
export class Introduction {
  readonly #connection: RedisConnection;
  readonly #onDone: () => void;
  #known = false;
  #runId: string | undefined;
  #version: string | undefined;
  #denied = false;
  #mustVerify = true;

  constructor(connection: RedisConnection, onDone: () => void) {
    this.#connection = connection;
    this.#onDone = onDone;
  }

  get known(): boolean {
    return this.#known;
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
   * Each caller asks for itself until one has an answer: a driver may lose a question without a
   * word, and whoever waited for that one would wait for ever. Rejects where it cannot be asked.
   */
  async ask(): Promise<void> {
    const met = this.#connection.topology === "standalone" ? await this.#info() : undefined;
    if (this.#known) return;
    this.#runId = met?.runId;
    this.#version = met?.version;
    this.#denied = met?.denied ?? false;
    this.#mustVerify = !this.#denied && !(Number.parseInt(this.#version ?? "", 10) >= 7);
    this.#known = true;
    this.#onDone();
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
