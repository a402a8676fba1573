import type { AcquireRequest, AttemptOutcome, Waiting } from "../../core/store.ts";
import type { Answer, DirectoryAccess } from "./directory-access.ts";
import { type Entry, keyOf, type Table } from "./table.ts";
import type { Place } from "./wait-queue.ts";
import type { WaitingRoom } from "./waiting-room.ts";

/** Parts of the store that a wait uses. */
export interface WaitingHost {
  readonly access: DirectoryAccess;
  readonly room: WaitingRoom;
  /**
   * Takes the lock and returns its fence, or returns the entry that blocks it. Runs inside a
   * transaction.
   */
  readonly take: (table: Table, request: AcquireRequest) => bigint | Entry;
  readonly outcome: (request: AcquireRequest, answer: Answer<bigint | Entry>) => AttemptOutcome;
}

/**
 * A wait: one call that waits for locks in the directory. A process that releases a resource
 * notifies the first wait in the queue whose resources are all free. The process of the wait itself
 * notifies it if the blocking holder has died or the holder's lease has expired. Both notifications
 * may get lost, so the core also makes attempts at intervals.
 */
export class EmbeddedWaiting implements Waiting {
  /** Entry that blocked the last attempt; undefined after the wait was notified. */
  blocker: Entry | undefined;
  readonly #keys: readonly string[];
  readonly #host: WaitingHost;
  #place: Place | undefined;
  #listener: (() => void) | undefined;
  /**
   * True if a notification came while there was no listener, for example between an attempt and the
   * pause after it.
   */
  #missed = false;

  constructor(resources: readonly string[], host: WaitingHost) {
    this.#keys = resources.map(keyOf);
    this.#host = host;
  }

  async attempt(request: AcquireRequest): Promise<AttemptOutcome> {
    this.#missed = false;
    let answer = await this.#takeOrQueue(request);
    // The first wait of a manager opens the mailbox here. The lock may have become free meanwhile,
    // so the wait makes a second attempt.
    if (answer.ok && typeof answer.result !== "bigint" && (await this.#openMailbox())) {
      answer = await this.#takeOrQueue(request);
    }
    return this.#host.outcome(request, answer);
  }

  listen(listener: (() => void) | undefined): void {
    this.#listener = listener;
    if (listener === undefined || !this.#missed) return;
    this.#missed = false;
    // Notifies only after this call has returned: before that, the caller does not wait yet, and
    // would miss it.
    void Promise.resolve().then(() => this.notify());
  }

  async leave(): Promise<void> {
    const { access, room } = this.#host;
    const place = this.#place;
    this.#listener = undefined;
    this.#place = undefined;
    room.leave(this);
    if (place !== undefined && access.isOpen) {
      await access.transact((table) => table.leaveQueue(place));
    }
  }

  notify(): void {
    this.blocker = undefined;
    if (this.#listener === undefined) this.#missed = true;
    else this.#listener();
  }

  async #takeOrQueue(request: AcquireRequest): Promise<Answer<bigint | Entry>> {
    const { access, room, take } = this.#host;
    const address = room.addressOf(this);
    let place = this.#place;
    const answer = await access.transact((table) => {
      const taken = take(table, request);
      if (typeof taken !== "bigint") {
        if (address !== undefined) place = table.queue.join(place, this.#keys, address);
      } else if (place !== undefined) {
        table.queue.leave(place);
        place = undefined;
      }
      return taken;
    });
    if (!answer.ok) return answer;
    this.#place = place;
    this.blocker = typeof answer.result === "bigint" ? undefined : answer.result;
    if (this.blocker !== undefined) room.watch(this);
    return answer;
  }

  async #openMailbox(): Promise<boolean> {
    const { access, room } = this.#host;
    if (this.#place !== undefined) return false;
    const folder = await access.folder();
    return folder !== undefined && room.openMailbox(folder);
  }
}
