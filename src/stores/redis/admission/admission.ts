/**
 * Decides which nodes may vote, and brings blank nodes back to voting.
 *
 * Problem: a server that lost its data has forgotten leases and fence counters. If it voted at
 * once, two owners could each get a quorum, or a fence could be granted twice.
 *
 * Idea: each node keeps a record that names its process. A node without a matching record is blank,
 * and its votes do not count. It waits out a quarantine, until every lease it may have forgotten is
 * over, and then gets counters no smaller than those of the admitted nodes (admission-rule.ts). Any
 * client may admit the node, and several clients may try at once: the script checks the record and
 * the quarantine on the node.
 *
 * Limits: if too few admitted nodes are left, fences rest on clocks, and a warning is emitted.
 */

import type { Emitter } from "../../../core/events.ts";
import type { Clock } from "../../../core/ports.ts";
import type { Scheduler, Task } from "../../../core/time/scheduler.ts";
import { admittedByClock, offClientSeen } from "../node/mixed-admission.ts";
import { aboutNode } from "../node/node-finding.ts";
import type { RedisNode } from "../node/node.ts";
import type { Survey } from "../node/survey.ts";
import type { BlankReport } from "../commands/operation.ts";
import { greatestCounters, verdict, whenLeft, whyBlank } from "./admission-rule.ts";
import type { NodeView, Verdict } from "./admission-rule.ts";
import { admitCall, nodeRecordCall, type AdmitReply, type NodeRecord } from "./node-record.ts";
import type { Proposals } from "../protocol/proposals.ts";
import type { Admissions } from "../protocol/quorum.ts";
import type { Rounds } from "../protocol/round.ts";
import { nodeTimeoutMs, quarantineMs, type StoreSettings } from "../protocol/store-settings.ts";

export interface AdmissionContext {
  readonly nodes: readonly RedisNode[];
  readonly size: number;
  readonly options: StoreSettings;
  readonly rounds: Rounds;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly events: Emitter;
  readonly proposals: Proposals;
  readonly survey: Survey;
}

export interface AdmissionState {
  readonly kind: "unknown" | "admitted" | "quarantined";
  /** Monotonic time at which the quarantine ends. */
  readonly untilMs: number;
}

const sweepPauseMsMin = 20;
const sweepPauseMsMax = 5_000;
const unknownState: AdmissionState = { kind: "unknown", untilMs: Infinity };

/** Admission states of one store's nodes, as far as this client has read them. */
export class Admission implements Admissions {
  readonly #context: AdmissionContext;
  readonly #timeoutMs: number;
  isPrepared: boolean;
  readonly #states: AdmissionState[];
  /**
   * Monotonic time since which a node has not replied; undefined if it replied to the last read.
   */
  readonly #silentSinceMs: (number | undefined)[];
  /** Nodes for which it was reported that a client with admission off uses them. */
  readonly #offSeen = new Set<number>();
  #sweeping: Promise<void> | undefined;
  #next: Task | undefined;
  #closed = false;

  constructor(context: AdmissionContext) {
    this.#context = context;
    this.#timeoutMs = nodeTimeoutMs(context.options, context.options.ttlMaxMs);
    this.isPrepared = context.options.admission === "off";
    this.#states = context.nodes.map(() => unknownState);
    this.#silentSinceMs = context.nodes.map(() => undefined);
  }

  state(index: number): AdmissionState {
    return this.#states[index] ?? unknownState;
  }

  /**
   * Called before an attempt. If too few nodes are known to be admitted, reads the records of all
   * nodes and admits the nodes that may vote.
   */
  async prepare(): Promise<void> {
    if (!this.isPrepared) await this.sweep();
  }

  /**
   * Called when a node replies that it may not vote. Returns an error that says why, and when it
   * may.
   */
  noticeBlank(index: number, report: BlankReport): Error {
    const { options, clock, nodes, survey } = this.#context;
    survey.look(nodes[index]);
    // Leaves the admission to clients with admission "strict". This client may be connected to too
    // few admitted nodes to copy counters from.
    if (options.admission === "off") {
      return new Error(`not admitted: ${whyBlank(report.everAdmitted)}; its record is strict`);
    }
    const waitMs = quarantineMs(options, Math.max(options.ttlMaxMs, report.ttlMaxMs));
    const leftMs = waitMs - (report.serverMs - report.sinceMs);
    const known = this.state(index);
    this.#setBlank(index, report.everAdmitted, leftMs);
    if (known.kind !== "quarantined") void this.sweep();
    const left = this.state(index).untilMs - clock.monotonicMs();
    return new Error(`not admitted: ${whyBlank(report.everAdmitted)}; ${whenLeft(left)}`);
  }

  /**
   * Reads every record and admits the nodes that may vote. With `enough`, ends as soon as a quorum
   * is known to be admitted and no node is known to be blank. Only one sweep runs at a time. Never
   * rejects.
   */
  sweep(enough = true): Promise<void> {
    if (this.#closed) return Promise.resolve();
    this.#sweeping ??= this.#sweepNow(enough).finally(() => {
      this.#sweeping = undefined;
    });
    return this.#sweeping;
  }

  /** Reads the records of all nodes, for callers that need the state of each node. */
  async look(): Promise<void> {
    await this.#sweeping;
    await this.sweep(false);
  }

  close(): void {
    this.#closed = true;
    if (this.#next !== undefined) this.#context.scheduler.cancel(this.#next);
  }

  async #sweepNow(enough: boolean): Promise<void> {
    const { nodes, size, options } = this.#context;
    const first = await this.#read(enough);
    const blank = this.#blankOf(first);
    if (blank.length > 0) {
      const verdicts = blank.map((index) => verdict(options, first, index, size));
      if (verdicts.some((found) => found.kind === "admit")) {
        // The records are read again: only counters read after the end of the quarantine may be
        // copied.
        const second = await this.#read(false);
        const admissions = blank.map((index, place) => this.#admit(index, verdicts[place], second));
        await Promise.all(admissions);
      }
      for (const [place, index] of blank.entries()) this.#expect(index, verdicts[place]);
    }
    const stillBlank = nodes.some((_, index) => this.state(index).kind === "quarantined");
    if (stillBlank) this.#schedule();
  }

  #blankOf(views: readonly NodeView[]): number[] {
    const blank: number[] = [];
    for (const [index, view] of views.entries()) {
      if (view.kind === "silent") continue;
      this.#noticeOff(index, view.record);
      if (view.record.admitted) this.#setAdmitted(index, view.record);
      else {
        blank.push(index);
        this.#setBlank(index, view.record.everAdmitted, Infinity);
      }
    }
    return blank;
  }

  #noticeOff(index: number, { offSeenMs = -Infinity, serverMs }: NodeRecord): void {
    const { nodes, events } = this.#context;
    const finding = offClientSeen(serverMs - offSeenMs);
    if (finding === undefined || this.#offSeen.has(index)) return;
    this.#offSeen.add(index);
    events.emit("warning", aboutNode(nodes[index]?.name ?? "", finding));
  }

  #read(enough: boolean): Promise<NodeView[]> {
    const { nodes, size, rounds, options, clock } = this.#context;
    return new Promise((resolve) => {
      const views: NodeView[] = nodes.map(() => ({ kind: "silent", forMs: 0 }));
      let left = nodes.length;
      let admitted = 0;
      let blank = 0;
      const round = rounds.toAll(nodeRecordCall(options), this.#timeoutMs, {
        wanted: () => left > 0,
        onReply: (index, reply, late) => {
          if (late || left <= 0) return;
          left -= 1;
          if (reply.kind === "reply") {
            this.#silentSinceMs[index] = undefined;
            views[index] = { kind: "record", record: reply.reply };
            if (reply.reply.admitted) admitted += 1;
            else blank += 1;
          } else {
            const sinceMs = (this.#silentSinceMs[index] ??= clock.monotonicMs());
            views[index] = { kind: "silent", forMs: clock.monotonicMs() - sinceMs };
          }
          if (left > 0 && !(enough && admitted >= size && blank === 0)) return;
          left = 0;
          round.end();
          resolve(views);
        },
      });
    });
  }

  async #admit(
    index: number,
    found: Verdict | undefined,
    views: readonly NodeView[],
  ): Promise<void> {
    const own = views[index];
    if (found?.kind !== "admit") return;
    if (own === undefined || own.kind === "silent" || own.record.admitted) return;
    const { mode, quarantineMs: waitMs } = found;
    // The verdict is computed again from the records just read. Only they prove that enough other
    // nodes are admitted.
    const again = verdict(this.#context.options, views, index, this.#context.size);
    if (again.kind !== "admit" || again.mode !== mode) return;
    const records = views.flatMap((view, other) => {
      if (view.kind === "silent") return [];
      return mode === "copy" && (other === index || !view.record.admitted) ? [] : [view.record];
    });
    const { floor, counters } = greatestCounters(records);
    this.#context.proposals.see(Math.max(floor, ...counters.values()));
    const reply = await this.#send(index, {
      mode,
      record: own.record,
      quarantineMs: waitMs,
      floor: mode === "copy" ? floor : Math.max(floor, ...counters.values()),
      wallUs: mode === "copy" ? 0 : this.#context.clock.wallMs() * 1_000,
      counters: mode === "copy" ? counters : new Map(),
    });
    if (reply?.kind === "admitted") this.#setAdmitted(index, { ...own.record, mode });
  }

  #send(index: number, request: Parameters<typeof admitCall>[0]): Promise<AdmitReply | undefined> {
    const { rounds } = this.#context;
    return new Promise((resolve) => {
      const round = rounds.toSome(1 << index, admitCall(request), this.#timeoutMs, {
        wanted: () => true,
        onReply(_, reply) {
          round.end();
          resolve(reply.kind === "reply" ? reply.reply : undefined);
        },
      });
    });
  }

  #expect(index: number, found: Verdict | undefined): void {
    if (found?.kind !== "wait" || this.state(index).kind !== "quarantined") return;
    const { clock, events, nodes } = this.#context;
    const untilMs = clock.monotonicMs() + found.leftMs;
    const before = this.state(index).untilMs;
    this.#setState(index, { kind: "quarantined", untilMs });
    // Emitted when the end of the quarantine becomes known, and again if the end moves by more than
    // a second.
    if (Math.abs(untilMs - before) > 1_000 && nodes[index] !== undefined) {
      events.emit("node-quarantined", { node: nodes[index].name, remainingMs: found.leftMs });
    }
  }

  #setBlank(index: number, everAdmitted: boolean, leftMs: number): void {
    const { nodes, events, clock } = this.#context;
    if (this.state(index).kind === "quarantined") return;
    this.#setState(index, { kind: "quarantined", untilMs: clock.monotonicMs() + leftMs });
    const node = nodes[index]?.name ?? "";
    events.emit("node-blank", { node, why: whyBlank(everAdmitted) });
    if (Number.isFinite(leftMs)) events.emit("node-quarantined", { node, remainingMs: leftMs });
  }

  #setAdmitted(index: number, record: NodeRecord): void {
    const { nodes, events } = this.#context;
    const before = this.state(index).kind;
    this.#setState(index, { kind: "admitted", untilMs: 0 });
    const { mode } = record;
    if (before !== "quarantined" || mode === undefined) return;
    const node = nodes[index]?.name ?? "";
    events.emit("node-admitted", { node, mode });
    if (mode === "clock") events.emit("warning", aboutNode(node, admittedByClock));
  }

  #setState(index: number, state: AdmissionState): void {
    const { options, size } = this.#context;
    this.#states[index] = state;
    const admitted = this.#states.filter(({ kind }) => kind === "admitted").length;
    this.isPrepared = options.admission === "off" || admitted >= size;
  }

  #schedule(): void {
    if (this.#closed) return;
    const { scheduler, clock } = this.#context;
    const nowMs = clock.monotonicMs();
    const ends = this.#states.flatMap((s) => (s.kind === "quarantined" ? [s.untilMs - nowMs] : []));
    const pauseMs = Math.min(sweepPauseMsMax, Math.max(sweepPauseMsMin, Math.min(...ends)));
    if (this.#next !== undefined) scheduler.cancel(this.#next);
    this.#next = scheduler.at(nowMs + pauseMs, false, () => void this.sweep());
  }
}
