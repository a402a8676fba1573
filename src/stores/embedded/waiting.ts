import type { AcquireRequest, AttemptOutcome, Waiting } from "../../core/store.ts";
import type { Answer, DirectoryAccess } from "./directory-access.ts";
import { type Entry, keyOf, type Table } from "./table.ts";
import type { Place } from "./wait-queue.ts";
import type { WaitingRoom } from "./waiting-room.ts";

/** What a wait needs of its store. */
export interface WaitingHost {
  readonly access: DirectoryAccess;
  readonly room: WaitingRoom;
  /** Takes the lock or names the entry in the way, inside a transaction. */
  readonly take: (table: Table, request: AcquireRequest) => bigint | Entry;
  readonly outcome: (request: AcquireRequest, answer: Answer<bigint | Entry>) => AttemptOutcome;
}

/**
 * A wait is told by whoever gives the resource back, if it is the first in the queue that could
 * have all it wants; and by its own process, when the holder in the way has died or its time is
 * over. Both can be missed, so whoever waits must also try now and then unasked.
 */
export class EmbeddedWaiting implements Waiting {
  /** Who was in the way at the last attempt; undefined once the wait has been told. */
  blocker: Entry | undefined;
  readonly #keys: readonly string[];
  readonly #host: WaitingHost;
  #place: Place | undefined;
  #listener: (() => void) | undefined;
  /** Told while nobody listened, as between an attempt and the pause after it. */
  #missed = false;

  constructor(resources: readonly string[], host: WaitingHost) {
    this.#keys = resources.map(keyOf);
    this.#host = host;
  }

  async attempt(request: AcquireRequest): Promise<AttemptOutcome> {
    this.#missed = false;
    let answer = await this.#takeOrQueue(request);
    // The first wait of a manager has nowhere to be told yet. The lock may be free by then.
    if (answer.ok && typeof answer.result !== "bigint" && (await this.#openMailbox())) {
      answer = await this.#takeOrQueue(request);
    }
    return this.#host.outcome(request, answer);
  }

  listen(listener: (() => void) | undefined): void {
    this.#listener = listener;
    if (listener === undefined || !this.#missed) return;
    this.#missed = false;
    // Not from within: whoever listens has not yet begun to wait.
    void Promise.resolve().then(() => this.tell());
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

  tell(): void {
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
