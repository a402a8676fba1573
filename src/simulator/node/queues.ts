import { nowMsOf, type ScriptContext } from "./script-context.ts";
import type { SortedSet } from "./sorted-set.ts";

const placeMs = 15_000;
const claimMs = 150;
const placesMax = 10_000;
const dropsMax = 100;

/** Entry of one waiter in a queue. */
interface Place {
  readonly id: string;
  readonly ticket: number;
  readonly lapseMs: number;
  /** True if the waiter's manager was subscribed when this entry was written. */
  readonly listened: boolean;
}

/** Queue of the waiters for one lock. */
export interface Queue {
  readonly name: string;
  readonly lock: string;
  /**
   * Id of the waiter that releases the lock after an attempt without a quorum. This waiter
   * keeps its entry and is not notified.
   */
  keeper: string | undefined;
  /** True if expired entries may remain, because one call removes at most `dropsMax`. */
  hasMore: boolean;
}

/** Queues of waiters, as in `_queue.lua`. A differential test compares the results. */
export class Queues {
  readonly #context: ScriptContext;
  readonly #nowMs: number;
  readonly #channelOf: (queue: Queue, base: string) => string;
  readonly #found = new Map<string, Queue>();

  constructor(context: ScriptContext, sharded = false) {
    this.#context = context;
    this.#nowMs = nowMsOf(context);
    this.#channelOf = (queue, base) =>
      sharded ? `${queue.name}:${base}` : `holdfast:wake:${base}`;
  }

  /** Returns the queue of this name. The first call for a name removes expired entries. */
  at(name: string, lock: string): Queue {
    const known = this.#found.get(name);
    if (known !== undefined) return known;
    const queue: Queue = { name, lock, keeper: undefined, hasMore: false };
    this.#found.set(name, queue);
    this.#dropLapsed(queue);
    return queue;
  }

  /**
   * Returns the first waiter of the queue if it comes before the waiter `id`. If `ticket` is
   * undefined, every waiter of the queue comes first.
   */
  headBefore(queue: Queue, ticket: number | undefined, id: string): Place | undefined {
    const head = this.#headOf(queue);
    if (head === undefined || ticket === undefined) return head;
    if (head.id === id || head.ticket > ticket) return undefined;
    return head.ticket < ticket || head.id < id ? head : undefined;
  }

  /** Adds or renews the entry of a waiter. Returns how many waiters have a smaller ticket. */
  stand(queue: Queue, ticket: number, id: string): number {
    const { data } = this.#context;
    const own = this.#placeOf(queue, id);
    const score = this.#setOf(queue)?.score(id);
    const isFull = score === undefined && (this.#setOf(queue)?.size ?? 0) >= 2 * placesMax;
    if (!isFull) {
      if (score !== ticket) data.zadd(queue.name, id, ticket);
      if (own === undefined || own.lapseMs - this.#nowMs <= placeMs / 2) {
        const [base] = baseAndNumber(id);
        const channel = base === undefined ? undefined : this.#channelOf(queue, base);
        const listened = channel !== undefined && this.#context.listeners(channel) > 0;
        this.#setLapse(queue, id, this.#nowMs + placeMs, listened);
      }
    }
    if (queue.hasMore) return 0;
    return this.#setOf(queue)?.count(0, ticket) ?? 0;
  }

  leave(queue: Queue, id: string): void {
    this.#context.data.zrem(queue.name, id, `~${id}`);
  }

  claimed(queue: Queue, id: string): void {
    const own = this.#placeOf(queue, id);
    if (own !== undefined) this.#lapseSoon(queue, id, own);
  }

  /** Returns for how many ms the first waiter `head` still keeps others from a free lock. */
  leftMs(head: Place): number {
    return Math.max(0, Math.min(head.lapseMs - this.#nowMs, claimMs));
  }

  /** Notifies the first waiter of each queue whose lock is free now. */
  notifyHeads(isFree: (lock: string) => boolean): void {
    for (const queue of this.#found.values()) if (isFree(queue.lock)) this.#notifyHead(queue);
  }

  /** Returns the number of entries that have not expired. Does not change the queue. */
  static waitersIn(context: ScriptContext, name: string): number {
    const nowMs = nowMsOf(context);
    const set = context.data.sortedSet(name);
    const ends = set?.members().filter((member) => -(set.score(member) ?? 0) > 2 * nowMs + 1);
    return ends?.length ?? 0;
  }

  #dropLapsed(queue: Queue): void {
    const set = this.#setOf(queue);
    if (set === undefined) return;
    const lapsed = set.members().filter((member) => {
      const score = set.score(member) ?? 0;
      return score < 0 && -score <= 2 * this.#nowMs + 1;
    });
    const dropped = lapsed.slice(0, dropsMax);
    queue.hasMore = dropped.length === dropsMax;
    for (const member of dropped) this.leave(queue, member.slice(1));
  }

  #headOf(queue: Queue): Place | undefined {
    for (;;) {
      const set = this.#setOf(queue);
      const id = set?.members().find((member) => (set.score(member) ?? -1) >= 0);
      if (set === undefined || id === undefined) return undefined;
      const own = this.#placeOf(queue, id);
      if (own !== undefined) return { id, ticket: set.score(id) ?? 0, ...own };
      this.leave(queue, id);
    }
  }

  /**
   * Notifies the first waiter. If its manager was subscribed when it enqueued and is not
   * subscribed now, removes its entry and notifies the next waiter instead.
   */
  #notifyHead(queue: Queue): void {
    for (let drops = 0; drops < dropsMax; drops += 1) {
      const head = this.#headOf(queue);
      if (head === undefined || head.id === queue.keeper || head.lapseMs <= this.#nowMs) return;
      if (this.#isReceived(queue, head) || !head.listened) {
        this.#lapseSoon(queue, head.id, head);
        return;
      }
      this.leave(queue, head.id);
    }
  }

  #isReceived(queue: Queue, { id }: Place): boolean {
    const [base, number] = baseAndNumber(id);
    if (base === undefined || number === undefined) return true;
    return this.#context.publish(this.#channelOf(queue, base), number) > 0;
  }

  #lapseSoon(queue: Queue, id: string, place: Pick<Place, "lapseMs" | "listened">): void {
    const soonMs = this.#nowMs + claimMs;
    if (place.lapseMs > soonMs) this.#setLapse(queue, id, soonMs, place.listened);
  }

  #setLapse(queue: Queue, id: string, lapseMs: number, listened: boolean): void {
    const { data } = this.#context;
    data.zadd(queue.name, `~${id}`, -(2 * lapseMs + (listened ? 1 : 0)));
    const set = this.#setOf(queue);
    const last = set?.score(set.members()[0] ?? "") ?? 0;
    data.pexpire(queue.name, Math.max(1, Math.floor(-last / 2) - this.#nowMs));
  }

  #placeOf(queue: Queue, id: string): Pick<Place, "lapseMs" | "listened"> | undefined {
    const score = this.#setOf(queue)?.score(`~${id}`);
    if (score === undefined) return undefined;
    return { lapseMs: Math.floor(-score / 2), listened: -score % 2 === 1 };
  }

  #setOf(queue: Queue): SortedSet | undefined {
    return this.#context.data.sortedSet(queue.name);
  }
}

function baseAndNumber(id: string): readonly (string | undefined)[] {
  return /^(.*)-w(\w+)$/.exec(id)?.slice(1) ?? [];
}
