import { queueKeyOf } from "../../stores/redis/commands/keys.ts";
import type { Link } from "../network/link.ts";
import type { SimulatedNode } from "../node/simulated-node.ts";
import type { SimulatedProcess } from "../process/simulated-process.ts";
import type { Fault } from "../scenario.ts";
import type { Scene } from "../scene.ts";

/** Targets of faults. Client processes are looked up when a fault begins, as they may restart. */
export interface FaultTargets {
  readonly scene: Scene;
  readonly nodes: readonly SimulatedNode[];
  readonly clientCount: number;
  machine(client: number): SimulatedProcess | undefined;
  link(client: number, node: number): Link | undefined;
  /** Called when a node lost data: one key ("locks"), or also counters ("restart", "flush"). */
  onLoss(node: SimulatedNode, what: "restart" | "flush" | "locks", text: string): void;
  onNodeStep(node: SimulatedNode, byMs: number): void;
  onClientStep(machine: SimulatedProcess, byMs: number): void;
  /** Called when a suspend of the process ended. */
  onSuspended(machine: SimulatedProcess): void;
  onResumed(machine: SimulatedProcess): void;
  kill(client: number): void;
  quit(client: number): void;
  revive(client: number): void;
}

/** Undoes a fault. */
export type Undo = () => void;

const nodeRecordKey = "holdfast:node";

/** Applies a fault. Returns its undo function if the fault lasts for some time. */
export function strike(targets: FaultTargets, fault: Fault): Undo | undefined {
  switch (fault.kind) {
    case "cut":
    case "ring":
    case "reset":
    case "lag":
      return strikeNetwork(targets, fault);
    case "pause":
    case "kill":
    case "quit":
    case "step-client":
      return strikeClient(targets, fault);
    default: {
      const node = targets.nodes[fault.node];
      return node === undefined ? undefined : strikeNode(targets, node, fault);
    }
  }
}

type NetworkFault = Extract<Fault, { kind: "cut" | "ring" | "reset" | "lag" }>;
type ClientFault = Extract<Fault, { kind: "pause" | "kill" | "quit" | "step-client" }>;
type NodeFault = Exclude<Fault, NetworkFault | ClientFault>;

function strikeNetwork(targets: FaultTargets, fault: NetworkFault): Undo | undefined {
  if (fault.kind === "ring") {
    const cuts: Link[] = [];
    for (let client = 0; client < targets.clientCount; client += 1) {
      for (let lost = 0; lost < Math.floor((targets.nodes.length - 1) / 2); lost += 1) {
        const link = targets.link(client, (client + lost) % targets.nodes.length);
        if (link !== undefined) cuts.push(link);
      }
    }
    for (const link of cuts) link.cut(true, true);
    return () => cuts.forEach((link) => link.heal(true, true));
  }
  const link = targets.link(fault.client, fault.node);
  if (link === undefined) return undefined;
  if (fault.kind === "reset") {
    link.break();
    return undefined;
  }
  if (fault.kind === "lag") {
    link.lag(fault.byMs);
    return () => link.lag(0);
  }
  const there = fault.direction !== "back";
  const back = fault.direction !== "there";
  link.cut(there, back);
  return () => link.heal(there, back);
}

function strikeClient(targets: FaultTargets, fault: ClientFault): Undo | undefined {
  if (fault.kind === "kill" || fault.kind === "quit") {
    targets[fault.kind](fault.client);
    return () => targets.revive(fault.client);
  }
  const machine = targets.machine(fault.client);
  if (machine === undefined || machine.hasCrashed) return undefined;
  if (fault.kind === "step-client") {
    machine.wall.step(fault.byMs);
    targets.onClientStep(machine, fault.byMs);
    return undefined;
  }
  machine.pause(fault.suspended);
  return () => {
    if (fault.suspended) targets.onSuspended(machine);
    if (machine.resume(fault.suspended)) targets.onResumed(machine);
  };
}

function strikeNode(
  targets: FaultTargets,
  node: SimulatedNode,
  fault: NodeFault,
): Undo | undefined {
  const { data } = node.server;
  switch (fault.kind) {
    case "crash":
      node.crash(fault.silent);
      if (fault.kept !== "all") targets.onLoss(node, "restart", `${node.name} lost data`);
      return () => {
        node.restart(fault.kept);
      };
    case "freeze":
      node.freeze();
      return () => node.thaw();
    case "slow":
      node.slowDown(fault.byMs);
      return () => node.slowDown(0);
    case "snapshot":
      node.takeSnapshot();
      return undefined;
    case "flush":
      if (node.isDown) return undefined;
      targets.onLoss(node, "flush", `FLUSHALL on ${node.name}`);
      data.clear();
      return undefined;
    case "evict-record":
      if (node.isDown) return undefined;
      targets.onLoss(node, "flush", `the record of ${node.name} was evicted`);
      data.delete(nodeRecordKey);
      return undefined;
    case "evict":
      for (const key of data.keys()) {
        if (key === nodeRecordKey) continue;
        // The loss of a queue breaks no promise.
        const isQueue = key.startsWith(queueKeyOf(""));
        if (!isQueue) targets.onLoss(node, "locks", `"${key}" was evicted on ${node.name}`);
        data.delete(key);
      }
      return undefined;
    case "script-flush":
      if (!node.isDown) node.server.execute(["SCRIPT", "FLUSH"]);
      return undefined;
    case "step-node":
      node.server.clock.step(fault.byMs);
      targets.onNodeStep(node, fault.byMs);
      return undefined;
    default:
      return fault satisfies never;
  }
}
