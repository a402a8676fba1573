import { nowMsOf, type ScriptContext } from "./script-context.ts";

const placeMs = 3_000;
const claimMs = 150;
const placesMax = 1_000;

interface Place {
  readonly ticket: number;
  readonly id: string;
  readonly lapseMs: number;
  /** Its manager was listening when it took the place. */
  readonly listened: boolean;
}

/** Those who wait for one lock, as a script sees and leaves them. */
export interface Queue {
  readonly name: string;
  readonly lock: string;
  places: Place[];
  changed: boolean;
  /** Whoever keeps its place after a vote that was not enough need not be told. */
  keeper: string | undefined;
}

/** The same steps as `_queue.lua`; a differential test compares the two. */
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

  /** Undefined where nobody waits, unless one is to be begun. */
  at(name: string, lock: string, begin: boolean): Queue | undefined {
    const known = this.#found.get(name);
    const text = known === undefined ? this.#context.data.textOf(name) : undefined;
    if (known !== undefined || (text === undefined && !begin)) return known;
    const all = placesIn(text ?? "");
    const places = all.filter(({ lapseMs }) => lapseMs > this.#nowMs);
    const changed = places.length < all.length;
    const queue: Queue = { name, lock, places, changed, keeper: undefined };
    this.#found.set(name, queue);
    return queue;
  }

  turnOfAnother(queue: Queue | undefined, ticket: number | undefined, id: string): boolean {
    const [head] = queue?.places ?? [];
    return head !== undefined && (ticket === undefined || isBefore(head, ticket, id));
  }

  stand(queue: Queue, ticket: number, id: string): void {
    this.leave(queue, id);
    if (queue.places.length >= placesMax) return;
    const at = queue.places.findIndex((place) => !isBefore(place, ticket, id));
    const [base] = baseAndNumber(id);
    const channel = base === undefined ? undefined : this.#channelOf(queue, base);
    const listened = channel !== undefined && this.#context.listeners(channel) > 0;
    const place = { ticket, id, lapseMs: this.#nowMs + placeMs, listened };
    queue.places.splice(at < 0 ? queue.places.length : at, 0, place);
    queue.changed = true;
  }

  leave(queue: Queue, id: string): void {
    const left = queue.places.filter((place) => place.id !== id);
    if (left.length < queue.places.length) queue.changed = true;
    queue.places = left;
  }

  claimed(queue: Queue, id: string): void {
    queue.places = queue.places.map((place) => {
      return place.id === id ? this.#lapsingSoon(queue, place) : place;
    });
  }

  /** How long its head has to come: it is about to be told, if it was not before. */
  leftMs(queue: Queue): number {
    return Math.min((queue.places[0]?.lapseMs ?? this.#nowMs) - this.#nowMs, claimMs);
  }

  /** Writes what has changed, and tells the head of every lock that is left free. */
  finish(isFree: (lock: string) => boolean): void {
    for (const queue of this.#found.values()) {
      if (queue.places.length > 0 && isFree(queue.lock)) this.#tellHead(queue);
      if (queue.changed) this.#write(queue);
    }
  }

  /** The next one's turn, where the head was listening and nobody hears. */
  #tellHead(queue: Queue): void {
    for (;;) {
      const [head, ...rest] = queue.places;
      if (head === undefined || head.id === queue.keeper) return;
      if (this.#isHeard(queue, head) || !head.listened) {
        queue.places = [this.#lapsingSoon(queue, head), ...rest];
        return;
      }
      queue.places = rest;
      queue.changed = true;
    }
  }

  #isHeard(queue: Queue, { id }: Place): boolean {
    const [base, number] = baseAndNumber(id);
    if (base === undefined || number === undefined) return true;
    return this.#context.publish(this.#channelOf(queue, base), number) > 0;
  }

  #lapsingSoon(queue: Queue, place: Place): Place {
    const lapseMs = this.#nowMs + claimMs;
    if (place.lapseMs <= lapseMs) return place;
    queue.changed = true;
    return { ...place, lapseMs };
  }

  #write({ name, places }: Queue): void {
    const { data } = this.#context;
    if (places.length === 0) {
      data.delete(name);
      return;
    }
    const texts = places.map(({ ticket, lapseMs, listened, id }) => {
      return `${ticket}:${lapseMs}${listened ? "=" : ":"}${id}`;
    });
    data.set(
      name,
      texts.join(" "),
      Math.max(...places.map(({ lapseMs }) => lapseMs)) - this.#nowMs,
    );
  }
}

function isBefore(place: Place, ticket: number, id: string): boolean {
  return place.ticket < ticket || (place.ticket === ticket && place.id < id);
}

function baseAndNumber(id: string): readonly (string | undefined)[] {
  return /^(.*)-w(\w+)$/.exec(id)?.slice(1) ?? [];
}

function placesIn(text: string): Place[] {
  return [...text.matchAll(/(\d+):(\d+)([:=])(\S+)/g)].map(([, ticket, lapse, mark, id = ""]) => {
    return { ticket: Number(ticket), lapseMs: Number(lapse), id, listened: mark === "=" };
  });
}
