import type { Emitter } from "../../core/events.ts";
import type { Finding } from "../../core/report/doctor.ts";
import { messageOf } from "../../core/report/loggable.ts";
import type { Scheduler, Task } from "../../core/time/scheduler.ts";
import type { Connection } from "./connection.ts";
import type { Listen, Listener } from "./listener.ts";

/**
 * Notifications for the waiting calls of one manager, on one channel.
 *
 * Problem: through a pooler in transaction mode, `LISTEN` succeeds and no notification ever comes.
 *
 * Idea: the manager sends one notification to itself, and listens only if it arrives. Until then,
 * and if it does not arrive, its waiting calls poll. They never wait for this test.
 */

/** A waiting call. */
export interface Notified {
  /** Called when an attempt may succeed, or when notifications begin or end. */
  onNotified(): void;
}

const probe = "probe";
/** Pause before the next try to listen, after one that failed. */
const retryMs = 30_000;
/** Time without waiting calls after which the session is closed. */
const idleMs = 30_000;

export class WakeUps {
  readonly channel: string;
  readonly #listen: Listen | undefined;
  readonly #connection: Connection;
  readonly #scheduler: Scheduler;
  readonly #events: Emitter;
  readonly #timeoutMs: number;
  readonly #waits = new Map<string, Notified>();
  #count = 0;
  #listener: Listener | undefined;
  #opening: Promise<void> | undefined;
  #onProbe: (() => void) | undefined;
  #idle: Task | undefined;
  #nextTryMs = -Infinity;
  #warned = false;
  /** Why the last try to listen failed. */
  #why = "";
  /** True from the arrival of the probe until the session ends. */
  isListening = false;

  constructor(
    uniqueBase: string,
    listen: Listen | undefined,
    connection: Connection,
    context: { readonly scheduler: Scheduler; readonly events: Emitter },
    timeoutMs: number,
  ) {
    // Without the need for quotes: a lower-case letter, letters, digits and underscores.
    this.channel = `holdfast_${Buffer.from(uniqueBase).toString("hex")}`.slice(0, 60);
    this.#listen = listen;
    this.#connection = connection;
    this.#scheduler = context.scheduler;
    this.#events = context.events;
    this.#timeoutMs = timeoutMs;
  }

  /** Adds a waiting call. Returns its number. */
  add(wait: Notified): string {
    this.#count += 1;
    const number = this.#count.toString(36);
    this.#waits.set(number, wait);
    if (this.#idle !== undefined) this.#scheduler.cancel(this.#idle);
    this.#idle = undefined;
    this.#open();
    return number;
  }

  remove(number: string): void {
    if (!this.#waits.delete(number) || this.#waits.size > 0) return;
    const dueMs = this.#scheduler.clock.monotonicMs() + idleMs;
    this.#idle ??= this.#scheduler.at(dueMs, false, () => {
      this.#idle = undefined;
      void this.#end();
    });
  }

  /** Returns a finding if waiting calls receive no notifications, though they should. */
  async examine(): Promise<Finding | undefined> {
    if (this.#listen === undefined || this.isListening) return undefined;
    this.#nextTryMs = Math.min(this.#nextTryMs, this.#scheduler.clock.monotonicMs());
    this.#open();
    await this.#opening;
    const finding = this.isListening ? undefined : noWakeUps(this.#why);
    if (this.#waits.size === 0) await this.#end();
    return finding;
  }

  async close(): Promise<void> {
    if (this.#idle !== undefined) this.#scheduler.cancel(this.#idle);
    this.#idle = undefined;
    this.#nextTryMs = Infinity;
    this.#waits.clear();
    this.#onProbe?.();
    await this.#opening;
    await this.#end();
  }

  #open(): void {
    const nowMs = this.#scheduler.clock.monotonicMs();
    if (this.#listen === undefined || this.#listener !== undefined) return;
    if (this.#opening !== undefined || nowMs < this.#nextTryMs) return;
    this.#nextTryMs = nowMs + retryMs;
    this.#opening = this.#openNow(this.#listen).then(() => {
      this.#opening = undefined;
    });
  }

  async #openNow(listen: Listen): Promise<void> {
    const handlers = {
      onMessage: (payload: string) => this.#onMessage(payload),
      onGap: () => this.#onGap(),
    };
    this.#why = "the test notification did not arrive: is a pooler in between?";
    try {
      this.#listener = await listen(this.channel, handlers, this.#timeoutMs);
      this.isListening = await this.#probe();
    } catch (error) {
      this.#why = messageOf(error);
    }
    if (this.isListening) {
      // They have waited without a channel in their queue entry: the next attempt adds it.
      this.#notifyAll();
      return;
    }
    await this.#end();
    if (this.#warned || this.#nextTryMs === Infinity) return;
    this.#warned = true;
    this.#events.emit("warning", noWakeUps(this.#why));
  }

  /** Resolves to true if a notification arrives that goes the way of all others. */
  async #probe(): Promise<boolean> {
    let hasArrived = false;
    const arrived = new Promise<void>((resolve) => {
      this.#onProbe = () => {
        hasArrived = this.#nextTryMs !== Infinity;
        resolve();
      };
    });
    const text = "SELECT pg_notify($1::text, $2::text)";
    const answer = await this.#connection.send(text, [this.channel, probe], () => undefined);
    if (!answer.ok) throw answer.failure.error;
    await new Promise<void>((resolve) => {
      const dueMs = this.#scheduler.clock.monotonicMs() + this.#timeoutMs;
      const task = this.#scheduler.at(dueMs, false, resolve);
      void arrived.then(() => {
        this.#scheduler.cancel(task);
        resolve();
      });
    });
    this.#onProbe = undefined;
    return hasArrived;
  }

  #onMessage(payload: string): void {
    if (payload === probe) this.#onProbe?.();
    else this.#waits.get(payload)?.onNotified();
  }

  /** Opens a new session: the old one ended or was replaced, and may have lost notifications. */
  #onGap(): void {
    if (!this.isListening) return;
    this.#nextTryMs = -Infinity;
    void this.#end().then(() => {
      if (this.#waits.size > 0) this.#open();
    });
    this.#notifyAll();
  }

  #notifyAll(): void {
    for (const wait of this.#waits.values()) wait.onNotified();
  }

  async #end(): Promise<void> {
    const listener = this.#listener;
    this.#listener = undefined;
    this.isListening = false;
    await listener?.close();
  }
}

/** Returns the finding about waiting calls that poll. */
export function noWakeUps(why: string): Finding {
  return {
    level: "warning",
    code: "no-wake-ups",
    node: "postgres",
    what: `waiting calls receive no notifications: ${why}`,
    why: "they poll instead: a released lock is taken later, and the server has more to do",
    remedy:
      "give the store a client that connects to the server itself: " +
      "postgres(pool, { listen: directPool }); or accept it with listen: false",
  };
}
