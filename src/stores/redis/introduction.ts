import type { RedisConnection } from "../../clients/contract.ts";

/** Which process stands behind a node, and of which version: asked before the first command. */
export class Introduction {
  readonly #connection: RedisConnection;
  readonly #onDone: () => void;
  #asking: Promise<void> | undefined;
  #known = false;
  #runId: string | undefined;
  #version: string | undefined;
  #denied = false;

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

  /** Rejects where the server could not be asked; then it is asked again next time. */
  ask(): Promise<void> {
    this.#asking ??= this.#askNow().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  /** A reply came from another process than the one we met: meet this one. */
  noticeRunId(cut: string): void {
    if (cut !== "-" && this.#runId !== undefined && !this.#runId.startsWith(cut)) {
      this.#known = false;
    }
  }

  async #askNow(): Promise<void> {
    if (this.#connection.topology === "standalone") {
      try {
        const info = String(await this.#connection.send("", ["INFO", "server"]));
        this.#runId = /run_id:(\w+)/.exec(info)?.[1];
        this.#version = /redis_version:(\S+)/.exec(info)?.[1];
        this.#denied = false;
      } catch (error) {
        if (!(error instanceof Error) || !error.message.startsWith("NOPERM")) throw error;
        this.#denied = true;
      }
    }
    this.#known = true;
    this.#onDone();
  }
}
