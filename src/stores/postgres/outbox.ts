import type { SteadyClock } from "../../core/ports.ts";
import type { Answer, Connection } from "./connection.ts";
import { failureOf, NoReplyError } from "./faults.ts";
import type { Operation, Result } from "./operation.ts";

/**
 * Problem: each commit waits for the disk, and each statement costs a round trip, so calls that
 * send a statement each are slow when there are many.
 *
 * Idea: the operations of one turn of the event loop share a statement. While two statements are
 * under way, further operations wait for the next one, so that lists grow with the load.
 *
 * Limits: a list does not wait for a row that another transaction changes. Such an operation is
 * sent again alone, a few times: a row that was swept away in that moment looks the same.
 */

/** Result of an operation, and the generation of the server that ran it. */
export interface Done {
  readonly result: Result;
  readonly generation: string;
}

interface Queued {
  readonly operation: Operation;
  readonly sinceMs: number;
  readonly settle: (answer: Answer<Done>) => void;
  /** Number of times that the operation was sent alone. */
  alone: number;
}

const listsMax = 2;
/** Limit of times that an operation is sent alone while its row is busy. */
const triesMax = 3;
/** Statements with a single operation that may be under way at a time. */
const aloneMax = 4;
const operationsMax = 128;

/** Collects operations and sends them in lists. */
export class Outbox {
  readonly #connection: Connection;
  readonly #clock: SteadyClock;
  readonly #timeoutMs: number;
  readonly #queue: Queued[] = [];
  readonly #busy: Queued[] = [];
  #lists = 0;
  #alone = 0;
  #isFlushing = false;

  constructor(connection: Connection, clock: SteadyClock, timeoutMs: number) {
    this.#connection = connection;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** Sends one operation, together with others of this turn of the event loop. Never rejects. */
  send(operation: Operation): Promise<Answer<Done>> {
    return new Promise((settle) => {
      this.#queue.push({ operation, sinceMs: this.#clock.monotonicMs(), settle, alone: 0 });
      if (this.#isFlushing) return;
      this.#isFlushing = true;
      void Promise.resolve().then(() => {
        this.#isFlushing = false;
        this.#flush();
      });
    });
  }

  #flush(): void {
    while (this.#lists < listsMax && this.#queue.length > 0) {
      const some = this.#inTime(this.#queue.splice(0, operationsMax));
      if (some.length > 0) void this.#sendList(some);
    }
    while (this.#alone < aloneMax && this.#busy.length > 0) {
      const [one] = this.#inTime(this.#busy.splice(0, 1));
      if (one !== undefined) void this.#sendAlone(one);
    }
  }

  /** Fails the operations that have waited too long to be sent. */
  #inTime(some: readonly Queued[]): readonly Queued[] {
    const leastMs = this.#clock.monotonicMs() - this.#timeoutMs;
    return some.filter(({ sinceMs, settle }) => {
      if (sinceMs >= leastMs) return true;
      const failure = failureOf(new NoReplyError(this.#timeoutMs), this.#connection.schema);
      settle({
        ok: false,
        failure: { ...failure, certain: true },
        settled: Promise.resolve(),
      });
      return false;
    });
  }

  async #sendList(some: readonly Queued[]): Promise<void> {
    this.#lists += 1;
    const answer = await this.#connection.run(some.map(({ operation }) => operation));
    this.#lists -= 1;
    for (const [index, queued] of some.entries()) {
      if (answer.ok) {
        const result = answer.value.results[index] ?? { is: "busy" };
        if (result.is === "busy") this.#busy.push(queued);
        else queued.settle({ ok: true, value: { result, generation: answer.value.generation } });
      } else if (answer.failure.conflict) {
        this.#busy.push(queued);
      } else {
        queued.settle(answer);
      }
    }
    this.#flush();
  }

  async #sendAlone(one: Queued): Promise<void> {
    this.#alone += 1;
    one.alone += 1;
    const answer = await this.#connection.run([one.operation]);
    this.#alone -= 1;
    const result: Result = (answer.ok ? answer.value.results[0] : undefined) ?? { is: "busy" };
    const isBusy = answer.ok ? result.is === "busy" : answer.failure.conflict;
    if (isBusy && one.alone < triesMax) this.#busy.push(one);
    else if (!answer.ok) one.settle(isBusy ? conflicted : answer);
    else one.settle({ ok: true, value: { result, generation: answer.value.generation } });
    this.#flush();
  }
}

/** Another transaction kept a row locked for longer than a statement waits. Nothing was changed. */
const conflicted: Answer<Done> = { ok: true, value: { result: { is: "busy" }, generation: "0" } };
