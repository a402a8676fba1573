import type { CancelTimer, Clock } from "../../core/ports.ts";
import type { MachineClock } from "./machine-clock.ts";
import { Mailbox } from "./mailbox.ts";
import type { Machine, ProcessIdentity } from "./machine.ts";
import type { Address } from "./wait-queue.ts";
import type { EmbeddedWaiting } from "./waiting.ts";

/**
 * Pause between two checks whether the process that holds a lock has died. A process that dies does
 * not notify the calls that wait for its lock. A check costs about 20 µs of system calls, and no
 * transaction.
 */
const lookEveryMs = 25;

/**
 * Waits of one manager: its calls that wait for a lock. Notifies a wait when its next attempt may
 * succeed.
 */
export class WaitingRoom {
  readonly #clock: Clock;
  readonly #machineClock: MachineClock;
  readonly #machine: () => Machine;
  readonly #waits = new Map<number, EmbeddedWaiting>();
  readonly #numbers = new Map<EmbeddedWaiting, number>();
  #count = 0;
  #mailbox: Mailbox | undefined;
  #cancelLook: CancelTimer | undefined;

  constructor(clock: Clock, machineClock: MachineClock, machine: () => Machine) {
    this.#clock = clock;
    this.#machineClock = machineClock;
    this.#machine = machine;
  }

  /** Returns the address of `wait`; undefined if there is no mailbox. */
  addressOf(wait: EmbeddedWaiting): Address | undefined {
    if (this.#mailbox === undefined || this.#mailbox.closed) return undefined;
    return { mailbox: this.#mailbox.name, wait: this.#numberOf(wait) };
  }

  /**
   * Opens the mailbox. It stays open as long as the directory, because opening it costs more than a
   * short wait. Returns false if the system has no file watchers left. Waits then depend on the
   * checks in `#look` and on attempts at intervals.
   */
  openMailbox(folder: string): boolean {
    if (this.#mailbox?.closed === false) return true;
    try {
      const notify = (number: number): void => this.#waits.get(number)?.notify();
      this.#mailbox = new Mailbox(folder, this.#machine(), notify);
      return true;
    } catch {
      return false;
    }
  }

  /** Closes the mailbox. Called when the directory was closed or deleted. */
  closeMailbox(): void {
    this.#mailbox?.close();
    this.#mailbox = undefined;
  }

  /**
   * Checks at intervals whether the process of the holder that blocks `wait` is alive, until that
   * call no longer waits.
   */
  watch(wait: EmbeddedWaiting): void {
    this.#numberOf(wait);
    this.#cancelLook ??= this.#clock.setTimer(lookEveryMs, false, () => this.#look());
  }

  leave(wait: EmbeddedWaiting): void {
    const number = this.#numbers.get(wait);
    if (number === undefined) return;
    this.#numbers.delete(wait);
    this.#waits.delete(number);
    if (this.#waits.size > 0) return;
    this.#cancelLook?.();
    this.#cancelLook = undefined;
  }

  close(): void {
    this.#cancelLook?.();
    this.#cancelLook = undefined;
    this.#waits.clear();
    this.#numbers.clear();
    this.closeMailbox();
  }

  #numberOf(wait: EmbeddedWaiting): number {
    let number = this.#numbers.get(wait);
    if (number === undefined) {
      this.#count += 1;
      number = this.#count;
      this.#numbers.set(wait, number);
      this.#waits.set(number, wait);
    }
    return number;
  }

  #look(): void {
    this.#cancelLook = undefined;
    const dead = new Map<string, boolean>();
    const isDead = (holder: ProcessIdentity): boolean => {
      const key = `${holder.pid} ${holder.started} ${holder.place}`;
      const known = dead.get(key) ?? this.#machine().isDead(holder);
      dead.set(key, known);
      return known;
    };
    const nowMs = this.#machineClock.nowMs();
    for (const wait of this.#waits.values()) {
      const { blocker } = wait;
      if (blocker === undefined) continue;
      if (blocker.expiresMs <= nowMs || isDead(blocker.holder)) wait.notify();
    }
    if (this.#waits.size > 0) {
      this.#cancelLook = this.#clock.setTimer(lookEveryMs, false, () => this.#look());
    }
  }
}
