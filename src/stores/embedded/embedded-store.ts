import { ClosedError, StoreError, type Holder } from "../../core/errors.ts";
import { earlyMsMax, type Mark, type RaiseOutcome } from "../../core/mark.ts";
import type { Finding } from "../../core/report/doctor.ts";
import { holderOf, inspectionOf, unknownInspection } from "../../core/report/one-node.ts";
import type {
  AcquireRequest,
  AttemptOutcome,
  BreakAnswer,
  ExtendOutcome,
  Grant,
  Inspection,
  NodeStatus,
  OpenStore,
  ProveOutcome,
  ReleaseOutcome,
  StoreContext,
  Waiting,
} from "../../core/store.ts";
import { leftMs } from "../../core/time/instant.ts";
import { type Answer, DirectoryAccess } from "./directory-access.ts";
import { ReplacedError } from "./environment.ts";
import type { Fault } from "./faults.ts";
import { faultFinding, machineFindings, memoryFinding, unusedFinding } from "./findings.ts";
import { raiseMark, readMarks } from "./marks.ts";
import { MachineClock } from "./machine-clock.ts";
import type { Machine } from "./machine.ts";
import type { Entry, Table } from "./table.ts";
import { EmbeddedWaiting } from "./waiting.ts";
import { WaitingRoom } from "./waiting-room.ts";

const node = "embedded";

/**
 * Time subtracted from each TTL, because each process measures the machine's clock with a small
 * error. Drift needs no allowance: all processes use the same clock of the machine.
 */
export const allowanceMs = 1;

/** Limit for repetitions of a failed release. */
const releasesMax = 3;

/** Store of one manager in a directory. Each call is one transaction. */
export class EmbeddedStore implements OpenStore {
  readonly #machine: () => Machine;
  readonly #context: StoreContext;
  readonly #clock: MachineClock;
  readonly #room: WaitingRoom;
  readonly #access: DirectoryAccess;

  constructor(directory: string, machine: () => Machine, context: StoreContext) {
    const { clock } = context.runtime;
    this.#machine = machine;
    this.#context = context;
    this.#clock = new MachineClock(clock);
    this.#room = new WaitingRoom(clock, this.#clock, machine);
    this.#access = new DirectoryAccess({
      directory,
      machine,
      clock: this.#clock,
      onInMemory: (path) => context.events.emit("warning", memoryFinding(node, path)),
      onLetGo: () => this.#room.closeMailbox(),
    });
  }

  async attempt(request: AcquireRequest): Promise<AttemptOutcome> {
    return this.#outcome(request, await this.#transact((table) => this.#take(table, request)));
  }

  /**
   * Returns a wait: one call that waits for a lock and has an entry in the queue. The store
   * notifies the wait when its next attempt may succeed.
   */
  waiting(resources: readonly string[]): Waiting {
    return new EmbeddedWaiting(resources, {
      access: this.#access,
      room: this.#room,
      take: (table, request) => this.#take(table, request),
      outcome: (request, answer) => this.#outcome(request, answer),
    });
  }

  #outcome(request: AcquireRequest, answer: Answer<bigint | Entry>): AttemptOutcome {
    const { resources, owner, ttlMs, started } = request;
    if (!answer.ok) {
      const { error, retryable } = answer;
      return { kind: "failed", error, retryable, cleanup: this.#forget(request) };
    }
    if (typeof answer.result !== "bigint") {
      return { kind: "held", holder: this.#holder(answer.result), cleanup: undefined };
    }
    const validityMs = ttlMs - allowanceMs;
    const grant: Grant = { resources, owner, fence: answer.result, validityMs };
    if (leftMs(this.#context.runtime.clock, started, validityMs) > 0) {
      return { kind: "granted", grant };
    }
    const error = new StoreError("the validity was over before the lock could be handed out", {
      resources,
    });
    return { kind: "failed", error, retryable: true, cleanup: this.#forget(request) };
  }

  async extend(grant: Grant, ttlMs: number): Promise<ExtendOutcome> {
    const answer = await this.#transact((table) => this.#prolong(table, grant, ttlMs));
    if (!answer.ok) return failed(answer);
    return answer.result ? { kind: "extended", validityMs: ttlMs - allowanceMs } : { kind: "gone" };
  }

  async prove(grant: Grant): Promise<ProveOutcome> {
    const answer = await this.#transact((table) => this.#isWhole(table, grant));
    if (!answer.ok) return failed(answer);
    return { kind: answer.result ? "proven" : "gone" };
  }

  async release(grant: Grant): Promise<ReleaseOutcome> {
    const giveBack = (table: Table): boolean => {
      const whole = this.#isWhole(table, grant);
      for (const resource of grant.resources) table.remove(resource, grant.owner);
      return whole;
    };
    let answer = await this.#transact(giveBack);
    // Repeats a failed release. The process of the holder goes on running, so other processes would
    // see the lock as held until its TTL ends.
    for (let again = 0; !answer.ok && answer.retryable && again < releasesMax; again += 1) {
      answer = await this.#transact(giveBack);
    }
    if (!answer.ok) return { released: false, reason: "unreachable" };
    return answer.result ? { released: true } : { released: false, reason: "taken" };
  }

  /**
   * Rejects if the directory cannot be used at all, for example without permission. After an error
   * that may pass, the state is "unknown".
   */
  async inspect(resource: string): Promise<Inspection> {
    const answer = await this.#access.look((table) => ({
      entry: table.find(resource, this.#clock.nowMs()),
      waiters: table.waitersOf(resource),
    }));
    if (answer?.ok === false) {
      const { error, retryable } = answer;
      if (!retryable) throw error;
      return unknownInspection(resource, node, error);
    }
    const { entry, waiters = 0 } = answer?.result ?? {};
    const holder = entry === undefined ? undefined : this.#holder(entry);
    return inspectionOf({ resource, node, holder, waiters });
  }

  async list(): Promise<readonly Inspection[]> {
    const answer = await this.#access.look((table) => {
      const held = table.all(this.#clock.nowMs());
      return held.map((entry) => ({ entry, waiters: table.waitersOf(entry.resource) }));
    });
    if (answer?.ok === false) throw answer.error;
    return (answer?.result ?? []).map(({ entry, waiters }) => {
      return inspectionOf({ resource: entry.resource, node, holder: this.#holder(entry), waiters });
    });
  }

  async break(resource: string, owners: readonly string[]): Promise<BreakAnswer> {
    const answer = await this.#transact((table) => {
      const owner = table.find(resource, this.#clock.nowMs())?.owner;
      if (owner === undefined || !owners.includes(owner)) return false;
      table.remove(resource, owner);
      return true;
    });
    if (!answer.ok) return { kind: "failed", error: answer.error };
    return { kind: answer.result ? "broken" : "gone" };
  }

  async mark(name: string): Promise<Mark | undefined> {
    return resultOf(await this.#transact((table) => readMarks(table.directory).get(name)));
  }

  async raiseMark(name: string, mark: Mark, dueMs: number): Promise<RaiseOutcome> {
    if (dueMs > this.#context.runtime.clock.wallMs() + earlyMsMax) return { kind: "early" };
    const raise = (table: Table): boolean => raiseMark(table.directory, name, mark);
    return { kind: resultOf(await this.#transact(raise)) ? "raised" : "refused" };
  }

  async nodes(): Promise<readonly NodeStatus[]> {
    const answer = await this.#access.look((table) => table.check());
    if (answer?.ok !== false) this.#access.forgetFault();
    const status: NodeStatus = {
      node,
      admission: "off",
      quarantineRemainingMs: undefined,
      runId: this.#machine().bootId,
      version: undefined,
      lastFault: this.#access.lastFault,
    };
    return [status];
  }

  async doctor(): Promise<readonly Finding[]> {
    const answer = await this.#access.look((table) => table.check());
    const path = this.#access.pathInMemory;
    return [
      ...(answer?.ok === false ? [faultFinding(node, answer.error)] : []),
      ...(answer === undefined ? [unusedFinding(node, this.#access.directory)] : []),
      ...(path === undefined ? [] : [memoryFinding(node, path)]),
      ...machineFindings(node, this.#machine()),
    ];
  }

  async close(): Promise<void> {
    this.#room.close();
    await this.#access.close();
  }

  /**
   * Takes the lock and returns its fence. If a resource is held already, returns its entry instead.
   */
  #take(table: Table, request: AcquireRequest): bigint | Entry {
    const { resources, owner, ttlMs, cancellation } = request;
    // The caller may have cancelled while the directory was opened.
    if (cancellation.cancelled) throw new ClosedError(resources);
    const nowMs = this.#clock.nowMs();
    for (const resource of resources) {
      const entry = table.find(resource, nowMs);
      if (entry !== undefined) return entry;
    }
    const fence = table.nextFence(nowMs, this.#context.runtime.clock.wallMs());
    // The clock is read again, because `nextFence` may have waited for the disk.
    const expiresMs = this.#clock.nowMs() + ttlMs;
    for (const resource of resources) table.put({ resource, owner, fence, expiresMs, ttlMs });
    return fence;
  }

  #prolong(table: Table, grant: Grant, ttlMs: number): boolean {
    const nowMs = this.#clock.nowMs();
    const entries = grant.resources.map((resource) => table.find(resource, nowMs));
    if (!entries.every((entry) => entry?.owner === grant.owner)) return false;
    const expiresMs = nowMs + ttlMs;
    for (const entry of entries) {
      // An expiry is never shortened, because an earlier call may have returned a longer validity.
      if (entry !== undefined && entry.expiresMs < expiresMs) {
        table.put({ ...entry, expiresMs, ttlMs });
      }
    }
    return true;
  }

  #isWhole(table: Table, grant: Grant): boolean {
    const nowMs = this.#clock.nowMs();
    return grant.resources.every((resource) => table.find(resource, nowMs)?.owner === grant.owner);
  }

  /** Removes the entries of a failed request, because the database may contain them. */
  async #forget({ resources, owner }: AcquireRequest): Promise<void> {
    if (!this.#access.isOpen) return;
    // If the removal fails as well, the entries expire at the end of their TTL.
    await this.#transact((table) => {
      for (const resource of resources) table.remove(resource, owner);
    });
  }

  #holder({ owner, fence, expiresMs }: Entry): Holder {
    return holderOf(owner, fence, expiresMs - this.#clock.nowMs());
  }

  #transact<Result>(work: (table: Table) => Result): Promise<Answer<Result>> {
    return this.#access.transact(work);
  }
}

/**
 * Returns `gone` if the database has vanished: other owners may take the lock in the new database.
 */
function failed({ error }: Fault): { kind: "gone" } | { kind: "failed"; error: Fault["error"] } {
  return error instanceof ReplacedError ? { kind: "gone" } : { kind: "failed", error };
}

function resultOf<Result>(answer: Answer<Result>): Result {
  if (!answer.ok) throw answer.error;
  return answer.result;
}
