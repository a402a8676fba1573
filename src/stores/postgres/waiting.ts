import { ClosedError } from "../../core/errors.ts";
import type { AcquireRequest, AttemptOutcome, Waiting } from "../../core/store.ts";
import type { Answer } from "./connection.ts";
import type { Done, Outbox } from "./outbox.ts";
import type { Notified, WakeUps } from "./wake-ups.ts";

/** Parts of the store that a wait uses. */
export interface WaitingHost {
  readonly outbox: Outbox;
  readonly wakeUps: WakeUps;
  /** Returns the outcome of an attempt, and gives back what a failed one has left. */
  readonly outcome: (
    request: AcquireRequest,
    sent: Promise<Answer<Done>>,
    isQueued: boolean,
  ) => Promise<AttemptOutcome>;
}

/**
 * Pause of a waiter that receives notifications. Its queue entry lapses after 8 s without an
 * attempt.
 */
const recheckMs = 2_000;

/**
 * One waiting call. Its queue entry has a ticket from the server, which decides the order between
 * managers. A release notifies the first entry only.
 */
export class PostgresWaiting implements Waiting, Notified {
  readonly #host: WaitingHost;
  readonly #resource: string;
  readonly #number: string;
  #ticket: string | undefined;
  #listener: (() => void) | undefined;
  /** True if a notification has come since the last attempt began. */
  #isNotified = false;
  #hasLeft = false;

  constructor(resource: string, host: WaitingHost) {
    this.#resource = resource;
    this.#host = host;
    this.#number = host.wakeUps.add(this);
  }

  async attempt(request: AcquireRequest): Promise<AttemptOutcome> {
    const { outbox, wakeUps, outcome } = this.#host;
    this.#isNotified = false;
    const isListening = wakeUps.isListening;
    const channel = isListening ? wakeUps.channel : undefined;
    const { owner, ttlMs, resources, cancellation } = request;
    if (cancellation.cancelled) {
      const error = new ClosedError(resources);
      return { kind: "failed", error, retryable: false, cleanup: undefined };
    }
    const place = { ticket: this.#ticket, channel, number: this.#number };
    const sent = outbox.send({ do: "acquire", resources, owner, ttlMs, place });
    void sent.then((answer) => this.#keepTicket(answer));
    const result = await outcome(request, sent, true);
    if (result.kind === "granted") this.#ticket = undefined;
    if (result.kind !== "held") return result;
    // Without notifications, the pauses are those of a polling client.
    return isListening ? { ...result, recheckMs } : { ...result, retryInMs: undefined };
  }

  #keepTicket(answer: Answer<Done>): void {
    const ticket = answer.ok ? answer.value.result.ticket : undefined;
    if (typeof ticket !== "string") return;
    this.#ticket = ticket;
    // The call was cancelled before this reply, which shows that an entry was made meanwhile.
    if (this.#hasLeft) void this.#removeEntry();
  }

  listen(listener: (() => void) | undefined): void {
    this.#listener = listener;
    if (listener !== undefined && this.#isNotified) listener();
  }

  onNotified(): void {
    this.#isNotified = true;
    this.#listener?.();
  }

  async leave(): Promise<void> {
    this.#hasLeft = true;
    this.#listener = undefined;
    this.#host.wakeUps.remove(this.#number);
    await this.#removeEntry();
  }

  async #removeEntry(): Promise<void> {
    const ticket = this.#ticket;
    this.#ticket = undefined;
    if (ticket === undefined) return;
    // An entry that cannot be removed lapses within seconds.
    await this.#host.outbox.send({ do: "leave", resources: [this.#resource], ticket });
  }
}
