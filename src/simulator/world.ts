import type { Locks } from "../core/locks.ts";
import { lockManager } from "../core/lock-manager.ts";
import type { Store } from "../core/store.ts";
import { Assumptions } from "./assumptions.ts";
import { Guarantees } from "./guarantees.ts";
import { MissingScripts } from "./missing-scripts.ts";
import { Link } from "./network/link.ts";
import { SimulatedNode } from "./node/simulated-node.ts";
import { simulatedStore } from "./process/simulated-store.ts";
import { Orphans, type Inhabitant } from "./orphans.ts";
import { RecordingStore } from "./process/recording-store.ts";
import { SimulatedProcess } from "./process/simulated-process.ts";
import type { Sabotage } from "./sabotage.ts";
import type { Fault, Scenario } from "./scenario.ts";
import { ReleaseOutcomes } from "./release-outcomes.ts";
import { Scene } from "./scene.ts";
import { SeededRandom } from "./seeded-random.ts";
import { Votes } from "./votes.ts";
import { Witness } from "./witness.ts";
import { SimulatedClient } from "./workload/client.ts";
import { strike, type FaultTargets, type Undo } from "./workload/faults.ts";
import { Promises } from "./workload/promises.ts";
import { Storage } from "./workload/storage.ts";
import { traceEvents, commandText } from "./trace-events.ts";
import type { TraceMode } from "./trace.ts";

/**
 * All parts of one simulation. Its phases: faults happen (safety), faults are undone and all
 * clients must make progress (liveness), managers close (closing), over.
 */
export class World implements FaultTargets {
  readonly scene: Scene;
  readonly nodes: readonly SimulatedNode[];
  readonly witness: Witness;
  readonly assumptions: Assumptions = new Assumptions();
  readonly promises: Promises;
  readonly storage: Storage;
  /** Every process that ever existed, including the crashed ones. */
  readonly inhabitants: Inhabitant[] = [];
  readonly struck: Map<Fault["kind"], number> = new Map();
  readonly #scenario: Scenario;
  readonly #sabotage: Sabotage;
  readonly #guarantees: Guarantees;
  readonly #present: (Inhabitant | undefined)[] = [];
  readonly #undos = new Set<Undo>();
  /** Names of processes that have held a lease since all faults were undone. */
  readonly #progress = new Set<string>();
  readonly #orphans: Orphans;
  readonly #votes: Votes;
  readonly #missingScripts: MissingScripts;
  readonly #releases: ReleaseOutcomes;
  #phase: "safety" | "liveness" | "closing" | "over" = "safety";

  constructor(scenario: Scenario, trace: TraceMode, sabotage: Sabotage = {}) {
    this.#scenario = scenario;
    this.#sabotage = sabotage;
    const { seed, nodes, store, work } = scenario;
    this.scene = new Scene(new SeededRandom(`world ${seed}`), trace);
    this.#votes = new Votes(this.scene, scenario);
    const size = Math.floor(nodes.length / 2) + 1;
    this.witness = new Witness(this.scene, (record) => this.#votes.count(record) >= size);
    this.#missingScripts = new MissingScripts(this.scene, (text) =>
      this.witness.report("vote-given-up", text),
    );
    this.#guarantees = new Guarantees(this.scene, this.assumptions, store);
    this.promises = new Promises(this.witness, store, nodes.length);
    this.storage = new Storage(this.scene, work.lateWriteChance, work.ttlMs);
    this.nodes = nodes.map((plan, index) => new SimulatedNode(this.scene, index, plan));
    this.#releases = new ReleaseOutcomes(this.nodes, this.witness);
    this.#orphans = new Orphans(this.scene, this.witness, this.nodes, scenario);
    for (let client = 0; client < scenario.clients.length; client += 1) this.#populate(client, 1);
    for (const fault of scenario.faults) this.#plan(fault);
    this.scene.after(scenario.safetyMs, () => this.#heal());
  }

  get isOver(): boolean {
    return this.#phase === "over";
  }

  get clientCount(): number {
    return this.#scenario.clients.length;
  }

  /**
   * Runs one event. Returns true if code of a process ran. The host must then run all microtasks.
   */
  step(): boolean {
    const entered = this.scene.step();
    if (entered === undefined) this.#phase = "over";
    return entered ?? false;
  }

  machine(client: number): SimulatedProcess | undefined {
    return this.#present[client]?.machine;
  }

  link(client: number, node: number): Link | undefined {
    return this.#present[client]?.links[node];
  }

  onLoss(node: SimulatedNode, what: "restart" | "flush" | "locks", text: string): void {
    this.#guarantees.onLoss(node, what, text);
  }

  onNodeStep(node: SimulatedNode, byMs: number): void {
    this.#guarantees.onNodeStep(node, byMs);
    this.#votes.onNodeStep(node, byMs);
    if (byMs < 0) this.#orphans.onSetBack(node);
  }

  onSuspended(machine: SimulatedProcess): void {
    this.#guarantees.onSuspended(machine);
    this.#votes.onOwnClock(machine);
  }

  onClientStep(machine: SimulatedProcess, byMs: number): void {
    if (byMs < 0) this.#guarantees.onSetBack(machine);
    this.witness.onClientStep(machine);
    this.#votes.onOwnClock(machine);
    for (const inhabitant of this.#present) {
      if (inhabitant !== undefined) this.#guarantees.onClocks(inhabitant.machine);
    }
  }

  onResumed(machine: SimulatedProcess): void {
    this.scene.add(machine.name, "resumed", "");
    // In half of the cases, the user's code reads its leases before any timer of the process runs.
    if (machine.random.chance(0.5)) this.witness.askAll(machine);
  }

  kill(client: number): void {
    const inhabitant = this.#present[client];
    if (inhabitant === undefined) return;
    inhabitant.machine.crash();
    for (const link of inhabitant.links) link.abandon();
    this.#present[client] = undefined;
  }

  quit(client: number): void {
    this.#present[client]?.client.quit();
    this.#present[client] = undefined;
  }

  revive(client: number): void {
    if (this.#present[client] !== undefined || this.#phase === "over") return;
    const before = this.inhabitants.filter(({ machine }) => bornAs(machine) === client).length;
    this.#populate(client, before + 1);
  }

  #populate(client: number, life: number): void {
    const plan = this.#scenario.clients[client];
    if (plan === undefined) return;
    const { scene, nodes, witness, promises, storage } = this;
    const name = `client-${client + 1}${life > 1 ? `.${life}` : ""}`;
    const machine = new SimulatedProcess(scene, name, plan);
    const links = nodes.map((node) => this.#link(machine, node));
    const { driftFactor, driftFixedMs, fencing } = this.#scenario.store;
    const recording = new RecordingStore({
      scene,
      machine,
      validityMs: (ttlMs) => ttlMs - ttlMs * driftFactor - driftFixedMs,
      onGranted: (record) => witness.granted(record),
      onConfirmed: (record, startedMs) => witness.confirmed(record, startedMs),
      onReleasing: (owner, resources) => this.#releases.onReleasing(owner, resources),
      onReleased: (owner, outcome) => this.#releases.onReleased(owner, outcome),
    });
    const recorded = recording.over(
      simulatedStore(links, this.#scenario.store, this.#sabotage, scene),
    );
    const locks = this.#locks(machine, this.#sabotage.recorded?.(recorded, scene) ?? recorded);
    const parts = { machine, locks, recording, storage, witness, promises, fencing };
    const onTenure = (): void => {
      if (this.#phase !== "liveness") return;
      // This client has made progress: it stops so that the others get the locks.
      this.#progress.add(machine.name);
      this.#present[client]?.client.stop();
    };
    const simulated = new SimulatedClient({ ...parts, plan: this.#scenario.work, onTenure });
    const inhabitant = { machine, links, client: simulated, recording };
    this.inhabitants.push(inhabitant);
    this.#present[client] = inhabitant;
    this.#guarantees.onClocks(machine);
    simulated.start();
  }

  #link(machine: SimulatedProcess, node: SimulatedNode): Link {
    const { link } = this.#scenario;
    return new Link(this.scene, machine, node, link, {
      onSent: (command) => this.#missingScripts.onSent(machine.name, node.name, command),
      onExecuting: (command) => this.#releases.onExecuting(node, command),
      onExecuted: (command, reply, isStray) => {
        this.#releases.onExecuted(node);
        if (this.scene.trace.isOn) {
          const text = `${commandText(command)} → ${String(reply)}`;
          this.scene.add(node.name, isStray ? "stray" : "executed", `${machine.name}: ${text}`);
        }
        this.#guarantees.onExecuted(node, command, reply);
        this.#votes.onExecuted(node, command);
        const isTooLate = isStray || this.#of(machine)?.client.closingSinceMs !== undefined;
        if (isTooLate) this.#orphans.onExecutedTooLate(node, command, reply);
      },
      onReceived: (received) => {
        const attempts = this.#of(machine)?.recording.byOwner;
        if (attempts) this.#missingScripts.onReceived(machine.name, node.name, received, attempts);
        if (this.#votes.onReceived(machine, node, received)) this.witness.noticeStep(machine);
      },
    });
  }

  #of(machine: SimulatedProcess): Inhabitant | undefined {
    return this.inhabitants.find((each) => each.machine === machine);
  }

  #locks(machine: SimulatedProcess, store: Store): Locks {
    const locks = lockManager(machine.runtime, store);
    traceEvents(this.scene, machine.name, locks);
    return this.#sabotage.locks?.(locks, this.scene) ?? locks;
  }

  #plan(fault: Fault): void {
    this.scene.after(fault.atMs, () => {
      if (this.#phase !== "safety") return;
      this.struck.set(fault.kind, (this.struck.get(fault.kind) ?? 0) + 1);
      this.scene.add("world", "fault", JSON.stringify(fault));
      const undo = strike(this, fault);
      if (undo === undefined) return;
      this.#undos.add(undo);
      const forMs = "forMs" in fault ? fault.forMs : 0;
      this.scene.after(forMs, () => this.#undo(undo));
    });
  }

  #undo(undo: Undo): void {
    if (!this.#undos.delete(undo)) return;
    this.scene.add("world", "undone", "");
    undo();
  }

  #heal(): void {
    for (const undo of this.#undos) this.#undo(undo);
    this.scene.add("world", "healed", "");
    this.#phase = "liveness";
    for (const each of this.#present) each?.client.beginPatience();
    for (const { links } of this.inhabitants) for (const link of links) link.calm();
    this.#watchProgress(this.scene.nowMs + this.#scenario.livenessMs);
  }

  #watchProgress(untilMs: number): void {
    const missing = this.#present
      .flatMap((each) => (each === undefined ? [] : [each.machine.name]))
      .filter((name) => !this.#progress.has(name));
    if (missing.length > 0 && this.scene.nowMs < untilMs) {
      this.scene.after(20, () => this.#watchProgress(untilMs));
      return;
    }
    for (const name of missing) this.witness.report("no-progress", `nothing for ${name}`);
    this.#phase = "closing";
    this.scene.add("world", "closing", "");
    for (const each of this.#present) each?.client.stop();
    this.#watchClosing(this.scene.nowMs + this.#scenario.livenessMs);
  }

  #watchClosing(untilMs: number): void {
    // Closing also waits for slow commands: they may take locks that the client then releases.
    const isDone = this.inhabitants.every(({ client, links }) => {
      return client.isDone && links.every((link) => link.isIdle);
    });
    if (!isDone && this.scene.nowMs < untilMs) {
      this.scene.after(20, () => this.#watchClosing(untilMs));
      return;
    }
    this.scene.after(50, () => {
      this.promises.reportUnsettled();
      for (const { machine, recording } of this.inhabitants) {
        if (!machine.hasCrashed) recording.unclaimed.report(this.witness, this.scene.nowMs);
      }
      this.#orphans.report(this.inhabitants);
      this.#phase = "over";
    });
  }
}

function bornAs({ name }: SimulatedProcess): number {
  return Number(/^client-(\d+)/.exec(name)?.[1] ?? 0) - 1;
}
