/**
 * One wait for a lock, on one node or on a quorum.
 *
 * Problem: polling for a held lock is slow, and a crowd of waiters that all react to one release
 * splits the votes. Order matters, too: the longest wait comes first.
 *
 * Idea: every node has a queue per lock. A waiter has the same ticket on all of them for its whole
 * wait, so that nodes with the same waiters agree on the next one. A ticket is the time at which
 * the wait began, by the servers' clocks. A release notifies only the head of the queue, by
 * pub/sub. The waiter makes an attempt when a quorum of nodes has notified it, or shortly after the
 * first one.
 *
 * Limits: safety does not depend on order or notifications. A lost notification costs time: the
 * core makes attempts at intervals, too. The queue entry of a dead waiter expires within seconds.
 */

import { ClosedError } from "../../../core/errors.ts";
import type { Task } from "../../../core/time/scheduler.ts";
import type { AcquireRequest, AttemptOutcome, Waiting } from "../../../core/store.ts";
import type { Place } from "../commands/operation.ts";
import { lockKeys } from "../commands/keys.ts";
import { nodeTimeoutMs } from "../protocol/store-settings.ts";
import { sizeOf, type NodeSet } from "../protocol/node-set.ts";
import type { Protocol } from "../protocol/protocol.ts";
import type { Quorum } from "../protocol/quorum.ts";
import type { Round } from "../protocol/round.ts";
import type { ReleaseReply } from "../commands/operation.ts";
import type { WakeUps } from "./wake-ups.ts";

/** Time after the first notification in which the other nodes may notify the waiter as well. */
const togetherMs = 2;

/** Limit of calls that one grant may serve by hand-over before other managers get their chance. */
const tenuresMax = 32;

/** The wait of one call for a lock. Its queue entries have the same ticket on all nodes. */
export class RedisWaiting implements Waiting {
  readonly #quorum: Quorum;
  readonly #protocol: Protocol;
  readonly #wakeUps: WakeUps;
  readonly #resources: readonly string[];
  readonly #keys: readonly string[];
  readonly #number: string;
  readonly #beganMs: number;
  #place: Place;
  #isTicketFixed = false;
  #channels: readonly string[] | undefined;
  #listener: (() => void) | undefined;
  /** Nodes that have notified this waiter since the last attempt began. */
  #notified: NodeSet = 0;
  #together: Task | undefined;
  #ttlMs = 0;
  #leaving: Round<ReleaseReply> | undefined;

  constructor(quorum: Quorum, protocol: Protocol, wakeUps: WakeUps, resources: readonly string[]) {
    this.#quorum = quorum;
    this.#protocol = protocol;
    this.#wakeUps = wakeUps;
    this.#resources = resources;
    this.#keys = lockKeys(quorum.options.prefix, resources);
    this.#number = wakeUps.newNumber();
    const id = `${wakeUps.base}-w${this.#number}`;
    // Several holders of one grant, one after the other, are possible only for a single resource.
    const tenures = resources.length === 1 ? tenuresMax : 1;
    this.#beganMs = quorum.clock.monotonicMs();
    this.#place = { ticket: quorum.proposals.next(), id, tenures };
  }

  async attempt(request: AcquireRequest): Promise<AttemptOutcome> {
    // The subscription is made before the first queue entry: a notification sent between the two
    // would otherwise be lost.
    const opening = this.#listening(request.ttlMs);
    if (opening !== undefined) {
      await request.cancellation.orUntil(opening);
      if (request.cancellation.cancelled) {
        // No request was sent. This error only ends the attempt: the caller reports its own reason.
        const error = new ClosedError(request.resources);
        return { kind: "failed", error, retryable: false, cleanup: undefined };
      }
    }
    this.#forgetNotices();
    this.#ttlMs = request.ttlMs;
    this.#fixTicket();
    const { ticket } = this.#place;
    const outcome = await this.#protocol.attempt(request, this.#place);
    // The queue entry is removed together with the release of the grant.
    if (outcome.kind === "granted") this.#stopListening();
    if (outcome.kind !== "held") return outcome;
    this.#fixTicket();
    // The queue entry has the wrong ticket: the next attempt, made at once, corrects it.
    if (this.#place.ticket !== ticket) return { ...outcome, retryInMs: 0, rank: undefined };
    const { rank = 0 } = outcome;
    if (rank === 0 || this.#wakeUps.isListening(this.#channels ?? [])) return outcome;
    return { ...outcome, rank: undefined };
  }

  /**
   * Sets the ticket to the time at which the wait began, by the servers' clocks: if this machine's
   * clock is off, its waiters neither come last nor jump the queue. With several nodes the ticket
   * is the lower median of their times, one number for all nodes. The ticket is fixed once a quorum
   * of clocks is known. Until then it is the best known value, at first from our own clock.
   */
  #fixTicket(): void {
    if (this.#isTicketFixed) return;
    const { nodes, size } = this.#quorum;
    const known = nodes.flatMap((node) => node.health.serverMsAt(this.#beganMs) ?? []);
    known.sort((a, b) => a - b);
    const medianMs = known[(known.length - 1) >> 1];
    if (medianMs === undefined) return;
    this.#place = { ...this.#place, ticket: Math.floor(medianMs * 1_000) };
    this.#isTicketFixed = known.length >= size;
  }

  listen(listener: (() => void) | undefined): void {
    this.#listener = listener;
    if (listener !== undefined && this.#isNotified) this.#notifyListener();
  }

  async leave(): Promise<void> {
    this.#listener = undefined;
    this.#stopListening();
    if (this.#ttlMs === 0 || this.#leaving !== undefined) return;
    const { nodes, rounds, options, calls } = this.#quorum;
    // No lock has the waiter's id as its owner, so this removes only the queue entry. On a node
    // that misses the request, the entry expires within seconds.
    const call = calls.release(this.#keys, this.#place.id, `-${this.#place.id}`);
    const timeoutMs = nodeTimeoutMs(options, this.#ttlMs);
    await new Promise<void>((resolve) => {
      let left = nodes.length;
      const onReply = (_index: number, _reply: unknown, late: boolean): void => {
        if (late) return;
        left -= 1;
        if (left === 0) resolve();
      };
      const wanted = (): boolean => true;
      this.#leaving = rounds.toAll(call, timeoutMs, { wanted, onReply });
    });
  }

  #listening(ttlMs: number): Promise<void> | undefined {
    if (this.#channels !== undefined) return undefined;
    const { calls, options } = this.#quorum;
    const channels = this.#keys.map((key) => calls.mode.channelOf(key, this.#wakeUps.base));
    this.#channels = [...new Set(channels)];
    this.#wakeUps.register(this.#number, this.#channels, (node) => this.#onNotified(node));
    return this.#wakeUps.use(this.#channels, nodeTimeoutMs(options, ttlMs));
  }

  #stopListening(): void {
    this.#forgetNotices();
    if (this.#channels === undefined) return;
    this.#wakeUps.forget(this.#number);
    this.#wakeUps.leave(this.#channels);
    this.#channels = undefined;
  }

  #onNotified(node: number): void {
    const wasNotified = this.#isNotified;
    this.#notified |= 1 << node;
    if (this.#isNotified) {
      // A gap begins once per attempt: repeated notifications must not delay the attempt.
      if (!wasNotified) this.#leaveGap();
      this.#notifyListener();
    } else if (this.#together === undefined) {
      const { scheduler, clock } = this.#quorum;
      const dueMs = clock.monotonicMs() + togetherMs;
      this.#together = scheduler.at(dueMs, true, () => {
        this.#together = undefined;
        this.#notified = -1;
        this.#leaveGap();
        this.#notifyListener();
      });
    }
  }

  /**
   * Begins a gap after another manager's release. A gap that is already open began with a release
   * of this manager.
   */
  #leaveGap(): void {
    const { gaps } = this.#quorum;
    if (gaps?.leftMs(this.#resources) === 0) gaps.begin(this.#resources);
  }

  /** True if a quorum of nodes has notified the waiter, or the time for that is over. */
  get #isNotified(): boolean {
    return sizeOf(this.#notified) >= this.#quorum.size;
  }

  #notifyListener(): void {
    if (this.#together !== undefined) this.#quorum.scheduler.cancel(this.#together);
    this.#together = undefined;
    this.#listener?.();
  }

  #forgetNotices(): void {
    this.#notified = 0;
    if (this.#together !== undefined) this.#quorum.scheduler.cancel(this.#together);
    this.#together = undefined;
  }
}
