import type { RedisConnection } from "../../../clients/contract.ts";

interface Identity {
  readonly runId: string | undefined;
  readonly version: string | undefined;
  readonly denied: boolean;
}

/**
 * Reads the run id and the version of a node's server. Sends INFO before the first command on each
 * connection: after a reconnect, the address may lead to another server.
 */
export class ServerIdentity {
  readonly #connection: RedisConnection;
  readonly #onChange: () => void;
  #known = false;
  /** Connection of the last INFO reply, if the client exposes it. */
  #line: object | undefined;
  #pending: Promise<void> | undefined;
  #runId: string | undefined;
  #version: string | undefined;
  #denied = false;
  #mustVerify = true;
  #connecting = 0;
  #hasGivenUp = false;

  /**
   * `onChange` is called after the first INFO reply, and after each one that differs from the last.
   */
  constructor(connection: RedisConnection, onChange: () => void) {
    this.#connection = connection;
    this.#onChange = onChange;
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

  /** True if this user may not run INFO: the server's version and restarts are then unknown. */
  get denied(): boolean {
    return this.#denied;
  }

  /**
   * True for servers before version 7, which restore cached scripts from their RDB file. A cached
   * script then does not prove that the process is the same.
   */
  get mustVerify(): boolean {
    return this.#mustVerify;
  }

  /**
   * Sends INFO. Calls in one turn of the event loop share a request. A call in a later turn sends
   * its own request, because a driver may lose a request silently. Rejects if INFO cannot be sent.
   */
  identify(): Promise<void> {
    if (this.#pending === undefined) {
      this.#pending = this.#identify();
      queueMicrotask(() => {
        this.#pending = undefined;
      });
    }
    return this.#pending;
  }

  async #identify(): Promise<void> {
    const connecting = this.#hasGivenUp ? undefined : this.#connection.firstConnect?.();
    if (connecting !== undefined) await this.#untilConnected(connecting);
    const reply = this.#connection.topology === "standalone" ? await this.#info() : undefined;
    const { runId, version, denied = false } = reply ?? {};
    const hasChanged = !this.#known || runId !== this.#runId || denied !== this.#denied;
    this.#line = this.#connection.line?.();
    this.#known = true;
    this.#runId = runId;
    this.#version = version;
    this.#denied = denied;
    this.#mustVerify = !denied && !(Number.parseInt(version ?? "", 10) >= 7);
    if (hasChanged) this.#onChange();
  }

  /** True while calls wait for the first connect of the client: these calls have not been sent. */
  get isConnecting(): boolean {
    return this.#connecting > 0;
  }

  /**
   * Called when a round has waited long enough for the first connect. Later calls do not wait for
   * it.
   */
  giveUpConnecting(): void {
    this.#hasGivenUp = true;
  }

  async #untilConnected(connecting: Promise<void>): Promise<void> {
    this.#connecting += 1;
    try {
      await connecting;
    } finally {
      this.#connecting -= 1;
    }
  }

  /**
   * Called with the start of the run id in a reply; "-" if the script did not check it. If the
   * known id begins differently, the next call sends INFO first.
   */
  noticeRunId(cut: string): void {
    if (cut !== "-" && this.#runId !== undefined && !this.#runId.startsWith(cut)) {
      this.#known = false;
    }
  }

  async #info(): Promise<Identity> {
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
