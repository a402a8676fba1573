import { setTimeout as sleep } from "node:timers/promises";
import type { ClientProcess } from "./client-process.ts";
import type { FaultEvent } from "./history.ts";
import type { Direction, TcpProxy } from "../tools/network/tcp-proxy.mjs";
import { nowMs } from "./monotonic.ts";
import { kindTerms } from "./kinds.ts";
import { beginOnNode, beginOnNodes } from "./node-faults.ts";
import type { NodeServer } from "./node-server.ts";
import type { PlannedFault } from "./plan.ts";
import { repeat, type Heal } from "./repeat.ts";

export interface World {
  readonly nodes: readonly NodeServer[];
  readonly clients: readonly ClientProcess[];
  /** By client, then by node. */
  readonly links: readonly (readonly TcpProxy[])[];
  readonly record: (event: FaultEvent) => void;
}

/**
 * Begins each planned fault at its time, and heals it after its duration. If a busy machine takes
 * longer, for example for a restart, the next fault of the same victim waits.
 */
export async function torment(world: World, plan: readonly PlannedFault[]): Promise<void> {
  const startMs = nowMs();
  const last = new Map<string, Promise<void>>();
  const failures: unknown[] = [];
  const healing: Promise<void>[] = [];
  for (const fault of plan) {
    const leftMs = startMs + fault.atMs - nowMs();
    if (leftMs > 0) await sleep(leftMs);
    if (failures.length > 0) break;
    const victim = victimOf(fault);
    const before = (victim === undefined ? undefined : last.get(victim)) ?? Promise.resolve();
    const healed = before
      .then(() => inflict(world, fault))
      .catch((error: unknown) => void failures.push(error));
    if (victim !== undefined) last.set(victim, healed);
    healing.push(healed);
  }
  await Promise.all(healing);
  if (failures.length > 0) throw failures[0];
}

async function inflict(world: World, fault: PlannedFault): Promise<void> {
  recordPhase(world, fault, "begin");
  const heal = await begin(world, fault);
  await sleep(fault.durationMs);
  await heal();
  recordPhase(world, fault, "end");
}

/**
 * Returns the victim whose faults must follow one after another; undefined if there is no single
 * one.
 */
function victimOf({ kind, nodes, client }: PlannedFault): string | undefined {
  const { victim } = kindTerms[kind];
  if (victim === "node") return `node ${nodes[0]}`;
  return victim === "client" ? `client ${client}` : undefined;
}

async function begin(world: World, fault: PlannedFault): Promise<Heal> {
  const nodes = fault.nodes.flatMap((index) => world.nodes[index] ?? []);
  switch (kindTerms[fault.kind].victim) {
    case "node": {
      const [node] = nodes;
      return node === undefined ? () => undefined : await beginOnNode(node, fault);
    }
    case "nodes":
      return await beginOnNodes(nodes, fault);
    case "links":
      return await beginOnLinks(world, fault);
    default: {
      const client = world.clients[fault.client ?? -1];
      return client === undefined ? () => undefined : await beginOnClient(client, fault);
    }
  }
}

async function beginOnClient(client: ClientProcess, fault: PlannedFault): Promise<Heal> {
  switch (fault.kind) {
    case "freeze-client":
      client.freeze();
      return () => client.thaw();
    case "client-clock-step":
      client.stepClock(fault.amountMs);
      return () => client.stepClock(0);
    default:
      await client.kill();
      return () => client.launch();
  }
}

async function beginOnLinks(world: World, fault: PlannedFault): Promise<Heal> {
  const links = fault.links.flatMap(({ client, node }) => world.links[client]?.[node] ?? []);
  if (fault.kind === "delay") {
    for (const link of links) link.setDelay(fault.amountMs);
    return () => {
      for (const link of links) link.setDelay(0);
    };
  }
  if (fault.kind === "lose-replies") {
    const stop = await repeat(fault.amountMs, () => {
      for (const link of links) link.loseNextReplies();
    });
    return async () => {
      await stop();
      for (const link of links) link.keepReplies();
    };
  }
  const directions: Direction[] = [];
  if (fault.kind !== "cut-replies") directions.push("requests");
  if (fault.kind !== "cut-requests") directions.push("replies");
  for (const link of links) for (const direction of directions) link.hold(direction);
  return () => {
    for (const link of links) {
      for (const direction of directions) link.heal(direction, fault.onHeal);
    }
  };
}

function recordPhase({ record }: World, fault: PlannedFault, phase: FaultEvent["phase"]): void {
  const { id, kind, client, links } = fault;
  const nodes = [...fault.nodes, ...links.map((link) => link.node)];
  const clients = client === undefined ? links.map((link) => link.client) : [client];
  record({
    t: nowMs(),
    id,
    kind,
    phase,
    nodes: [...new Set(nodes)],
    clients: [...new Set(clients)],
    detail: detailOf(fault),
  });
}

function detailOf(fault: PlannedFault): string {
  const { kind, amountMs, onHeal, policy, scriptEnd } = fault;
  switch (kind) {
    case "clock-step":
    case "client-clock-step":
      return `${amountMs > 0 ? "+" : ""}${amountMs} ms`;
    case "delay":
      return `${amountMs} ms each way`;
    case "lose-replies":
    case "kill-connections":
    case "kill-subscribers":
      return `every ${amountMs} ms`;
    case "evict":
      return policy;
    case "busy":
      return `the script ends ${scriptEnd}`;
    case "cut":
    case "cut-requests":
    case "cut-replies":
      return `then ${onHeal}`;
    default:
      return "";
  }
}
