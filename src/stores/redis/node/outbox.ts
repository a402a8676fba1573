import type { Lists } from "../commands/operation-call.ts";
import type { Operation } from "../commands/operation.ts";
import type { NodeCall } from "../commands/node-call.ts";
import type { Outgoing, Sender } from "./sender.ts";

const turn = Promise.resolve();

/**
 * Limit for the total weight of a list. A longer list delays the commands of every other client of
 * the server.
 */
const listWeightMax = 128;
/** Weight of an acquire or a release with up to four keys. */
const usualWeight = 4;
const touchWeight = 2;

/** Limit of keys for an operation in a list. An operation with more keys is sent alone. */
const listedKeysMax = 4;

/** True if the call may be sent in a list with others. */
export function canBeListed({ operation }: NodeCall<unknown>): boolean {
  return operation !== undefined && operation.keys.length <= listedKeysMax;
}

/**
 * Returns the part of `listWeightMax` that an operation uses up. Renewals are frequent, and use the
 * least.
 */
function weightOf(operation: Operation | undefined): number {
  if (operation === undefined) return Infinity;
  const { kind, keys } = operation;
  return kind === "touch" ? touchWeight * keys.length : Math.max(usualWeight, keys.length);
}

/**
 * perf (inflight): collects the calls to one node in one turn of the event loop, and sends them in
 * lists. A full list is sent at once, so that the server works while we encode the next list. The
 * rest is sent after the continuations of the turn.
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
      // A microtask runs after all continuations that one reply started. perf (inflight):
      // queueMicrotask is not used, because in Node.js it makes a resource for each call and costs
      // three times as much.
      void turn.then(this.#onTurn);
    }
  }

  /** Sends the collected calls: one call as it is, several as a list. */
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
