import type { Lists } from "../commands/operation-call.ts";
import type { Operation } from "../commands/operation.ts";
import type { NodeCall } from "../commands/node-call.ts";
import type { Outgoing, Sender } from "./sender.ts";

const turn = Promise.resolve();

/** Limit: a longer list delays the commands of every other client of the server. */
const listWeightMax = 128;
/** As many acquires or releases as fit in a list take up to four keys each. */
const usualWeight = 4;
const touchWeight = 2;

/** Limit of keys for an operation in a list. Operations with more keys go alone. */
const listedKeysMax = 4;

/** True if the call may be sent in a list with others. */
export function canBeListed({ operation }: NodeCall<unknown>): boolean {
  return operation !== undefined && operation.keys.length <= listedKeysMax;
}

/** Returns what an operation takes of a list. Renewals, of which there are many, cost least. */
function weightOf(operation: Operation | undefined): number {
  if (operation === undefined) return Infinity;
  const { kind, keys } = operation;
  return kind === "touch" ? touchWeight * keys.length : Math.max(usualWeight, keys.length);
}

/**
 * perf (inflight): collects what is sent to one node in one turn of the event loop, and sends it in
 * lists. A full list leaves at once, so that the server works while we encode the next. The rest
 * leaves after the continuations of the turn.
 */
export class Outbox {
  readonly #sender: Sender;
  readonly #lists: Lists;
  #items: Outgoing<unknown>[] = [];
  #weight = 0;
  #scheduled = false;
  readonly #onTurn = (): void => {
    this.#scheduled = false;
    this.#flush();
  };

  constructor(sender: Sender, lists: Lists) {
    this.#sender = sender;
    this.#lists = lists;
  }

  add(item: Outgoing<unknown>): void {
    const weight = weightOf(item.call.operation);
    if (this.#weight + weight > listWeightMax) this.#flush();
    this.#items.push(item);
    this.#weight += weight;
    if (this.#weight >= listWeightMax) {
      this.#flush();
    } else if (!this.#scheduled) {
      this.#scheduled = true;
      // A microtask runs after all continuations that one reply woke. perf (inflight): not by
      // queueMicrotask, which in Node.js makes a resource for each call and costs three times as
      // much.
      void turn.then(this.#onTurn);
    }
  }

  /** Sends what was collected: one call as it is, several as a list. */
  #flush(): void {
    const items = this.#items;
    const [first] = items;
    if (first === undefined) return;
    this.#items = [];
    this.#weight = 0;
    if (items.length === 1) this.#sender.send(first);
    else this.#sender.sendList(this.#lists, items);
  }
}
