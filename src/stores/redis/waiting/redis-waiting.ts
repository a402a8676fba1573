import { ClosedError } from "../../../core/errors.ts";
import type { Task } from "../../../core/scheduler.ts";
import type { AcquireRequest, AttemptOutcome, Waiting } from "../../../core/store.ts";
import type { Place } from "../dialect.ts";
import { lockKeys } from "../lock-key.ts";
import { nodeTimeoutMs } from "../options.ts";
import type { OneStep } from "../quorum/one-step.ts";
import type { Quorum } from "../quorum/quorum.ts";
import { Round } from "../quorum/round.ts";
import type { ReleaseReply } from "../replies.ts";
import type { WakeUps } from "./wake-ups.ts";

/** After the first node's word the others get this long to say the same. */
const togetherMs = 2;

/** How many calls of one manager may have a lock in turn before the others are asked again. */
const tenuresMax = 32;

/** A wait on one node or on a quorum: the same ticket on all of them, for as long as it lasts. */
export class RedisWaiting implements Waiting {
  readonly #quorum: Quorum;
  readonly #oneStep: OneStep;
  readonly #wakeUps: WakeUps;
  readonly #resources: readonly string[];
  readonly #keys: readonly string[];
  readonly #number: string;
  readonly #beganMs: number;
  #place: Place;
  #isTicketFixed = false;
  #channels: readonly string[] | undefined;
  #listener: (() => void) | undefined;
  /** A bit for each node that has called since the last attempt began. */
  #told = 0;
  #together: Task | undefined;
  #ttlMs = 0;
  #leaving: Round<ReleaseReply> | undefined;

  constructor(quorum: Quorum, oneStep: OneStep, wakeUps: WakeUps, resources: readonly string[]) {
    this.#quorum = quorum;
    this.#oneStep = oneStep;
    this.#wakeUps = wakeUps;
    this.#resources = resources;
    this.#keys = lockKeys(quorum.options.prefix, resources);
    this.#number = wakeUps.newNumber();
    const id = `${wakeUps.base}-w${this.#number}`;
    // Only those who wait for one resource stand in a line, in which it can be passed on.
    const tenures = resources.length === 1 ? tenuresMax : 1;
    this.#beganMs = quorum.clock.monotonicMs();
    this.#place = { ticket: quorum.proposals.next(), id, tenures };
  }

  async attempt(request: AcquireRequest): Promise<AttemptOutcome> {
    // Listening before the first place is taken: what is said in between would be lost.
    const opening = this.#listening(request.ttlMs);
    if (opening !== undefined) {
      await request.cancellation.orUntil(opening);
      if (request.cancellation.cancelled) {
        // Nothing was sent; the caller has its own reason, and this one only ends the attempt.
        const error = new ClosedError(request.resources);
        return { kind: "failed", error, retryable: false, cleanup: undefined };
      }
    }
    this.#forgetTold();
    this.#ttlMs = request.ttlMs;
    this.#fixTicket();
    const { ticket } = this.#place;
    const outcome = await this.#oneStep.attempt(request, this.#place);
    // The place goes with the release of what was granted.
    if (outcome.kind === "granted") this.#stopListening();
    if (outcome.kind !== "held") return outcome;
    this.#fixTicket();
    // Its place is the wrong one: the next attempt, made at once, takes the right one.
    if (this.#place.ticket !== ticket) return { ...outcome, retryInMs: 0, rank: undefined };
    const { rank = 0 } = outcome;
    if (rank === 0 || this.#wakeUps.isListening(this.#channels ?? [])) return outcome;
    return { ...outcome, rank: undefined };
  }

  /**
   * The ticket is the moment at which the wait began by the servers' clocks: one that is off on
   * this machine neither puts its waiters last nor lets them jump the queue. Of several nodes it is
   * the lower median, one number for all of them. It stays as it is once a quorum's are known;
   * before that it is the best that is known, at first our own clock.
   */
  #fixTicket(): void {
    if (this.#isTicketFixed) return;
    const { nodes, size } = this.#quorum;
    const known = nodes.flatMap((node) => node.serverMsAt(this.#beganMs) ?? []);
    known.sort((a, b) => a - b);
    const medianMs = known[(known.length - 1) >> 1];
    if (medianMs === undefined) return;
    this.#place = { ...this.#place, ticket: Math.floor(medianMs * 1_000) };
    this.#isTicketFixed = known.length >= size;
  }

  listen(listener: (() => void) | undefined): void {
    this.#listener = listener;
    if (listener !== undefined && this.#isTold) this.#tell();
  }

  async leave(): Promise<void> {
    this.#listener = undefined;
    this.#stopListening();
    if (this.#ttlMs === 0 || this.#leaving !== undefined) return;
    const { nodes, scheduler, options, dialect } = this.#quorum;
    // Nobody's lock has a waiter for its owner, so only the place goes. A node that misses this
    // forgets the place by itself, within seconds.
    const call = dialect.release(this.#keys, this.#place.id, `-${this.#place.id}`);
    const timeoutMs = nodeTimeoutMs(options, this.#ttlMs);
    await new Promise<void>((resolve) => {
      let left = nodes.length;
      const onReply = (_index: number, _reply: unknown, late: boolean): void => {
        if (late) return;
        left -= 1;
        if (left === 0) resolve();
      };
      const wanted = (): boolean => true;
      this.#leaving = new Round({ nodes, call, scheduler, timeoutMs, wanted, onReply });
    });
  }

  #listening(ttlMs: number): Promise<void> | undefined {
    if (this.#channels !== undefined) return undefined;
    const { dialect, options } = this.#quorum;
    const channels = this.#keys.map((key) => dialect.channelOf(key, this.#wakeUps.base));
    this.#channels = [...new Set(channels)];
    this.#wakeUps.register(this.#number, this.#channels, (node) => this.#onTold(node));
    return this.#wakeUps.use(this.#channels, nodeTimeoutMs(options, ttlMs));
  }

  #stopListening(): void {
    this.#forgetTold();
    if (this.#channels === undefined) return;
    this.#wakeUps.forget(this.#number);
    this.#wakeUps.leave(this.#channels);
    this.#channels = undefined;
  }

  #onTold(node: number): void {
    const wasTold = this.#isTold;
    this.#told |= 1 << node;
    if (this.#isTold) {
      // Once per attempt: wake-ups that keep coming must not put off the attempt.
      if (!wasTold) this.#leaveGap();
      this.#tell();
    } else if (this.#together === undefined) {
      const { scheduler, clock } = this.#quorum;
      const dueMs = clock.monotonicMs() + togetherMs;
      this.#together = scheduler.at(dueMs, true, () => {
        this.#together = undefined;
        this.#told = -1;
        this.#leaveGap();
        this.#tell();
      });
    }
  }

  /** Another manager's release. A gap that is open was begun by a release of our own. */
  #leaveGap(): void {
    const { gaps } = this.#quorum;
    if (gaps?.leftMs(this.#resources) === 0) gaps.begin(this.#resources);
  }

  /** By a quorum, or by some for long enough. */
  get #isTold(): boolean {
    let count = 0;
    for (let rest = this.#told; rest !== 0; rest &= rest - 1) count += 1;
    return count >= this.#quorum.size;
  }

  #tell(): void {
    if (this.#together !== undefined) this.#quorum.scheduler.cancel(this.#together);
    this.#together = undefined;
    this.#listener?.();
  }

  #forgetTold(): void {
    this.#told = 0;
    if (this.#together !== undefined) this.#quorum.scheduler.cancel(this.#together);
    this.#together = undefined;
  }
}
