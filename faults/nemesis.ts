import { setTimeout as sleep } from "node:timers/promises";
import type { ClientProcess } from "./client-process.ts";
import type { FaultEvent } from "./history.ts";
import type { Direction, Link } from "./links.ts";
import { nowMs } from "./monotonic.ts";
import type { NodeServer } from "./node-server.ts";
import type { PlannedFault } from "./plan.ts";

export interface World {
  readonly nodes: readonly NodeServer[];
  readonly clients: readonly ClientProcess[];
  /** By client, then by node. */
  readonly links: readonly (readonly Link[])[];
  readonly record: (event: FaultEvent) => void;
}

/** Undoes what a fault did. */
type Heal = () => void | Promise<void>;

/**
 * Does what was planned, when it was planned, and heals each fault after its time. Where a busy
 * machine takes longer, with a restart for one, the next fault of the same victim waits.
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
    const victim = `${fault.node ?? "no"} ${fault.client ?? "no"}`;
    const isAlone = fault.node === undefined && fault.client === undefined;
    const before = isAlone ? Promise.resolve() : (last.get(victim) ?? Promise.resolve());
    const healed = before
      .then(() => inflict(world, fault))
      .catch((error: unknown) => void failures.push(error));
    last.set(victim, healed);
    healing.push(healed);
  }
  await Promise.all(healing);
  if (failures.length > 0) throw failures[0];
}

async function inflict(world: World, fault: PlannedFault): Promise<void> {
  tell(world, fault, "begin");
  const heal = await begin(world, fault);
  await sleep(fault.durationMs);
  await heal();
  tell(world, fault, "end");
}

async function begin(world: World, fault: PlannedFault): Promise<Heal> {
  const node = fault.node === undefined ? undefined : world.nodes[fault.node];
  const client = fault.client === undefined ? undefined : world.clients[fault.client];
  if (node !== undefined) return await beginOnNode(node, fault);
  if (client === undefined) return beginOnLinks(world, fault);
  if (fault.kind === "freeze-client") {
    client.freeze();
    return () => client.thaw();
  }
  await client.kill();
  return () => client.launch();
}

async function beginOnNode(node: NodeServer, fault: PlannedFault): Promise<Heal> {
  switch (fault.kind) {
    case "kill-empty":
    case "kill-keep":
      await node.kill();
      return () => node.restart(fault.kind === "kill-empty" ? "empty" : "kept");
    case "freeze-node":
      node.freeze();
      return () => node.thaw();
    case "clock-step":
      node.setClock(fault.amountMs);
      return () => node.setClock(0);
    case "script-flush":
      await node.command("SCRIPT", "FLUSH");
      return () => undefined;
    case "flush-all":
      await node.command("FLUSHALL");
      return () => undefined;
    case "out-of-memory":
      return await limitMemory(node, "noeviction");
    case "evict":
      return await limitMemory(node, fault.policy);
    default:
      throw new Error(`${fault.kind} is no fault of a node`);
  }
}

async function limitMemory(node: NodeServer, policy: string): Promise<Heal> {
  await node.command("CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", "1");
  return async () => {
    await node.command("CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction");
  };
}

function beginOnLinks(world: World, fault: PlannedFault): Heal {
  const links = fault.links.flatMap(({ client, node }) => world.links[client]?.[node] ?? []);
  if (fault.kind === "delay") {
    for (const link of links) link.setDelay(fault.amountMs);
    return () => {
      for (const link of links) link.setDelay(0);
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

function tell({ record }: World, fault: PlannedFault, phase: FaultEvent["phase"]): void {
  const { id, kind, node, client, links } = fault;
  const nodes = node === undefined ? links.map((link) => link.node) : [node];
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

function detailOf({ kind, amountMs, onHeal, policy }: PlannedFault): string {
  if (kind === "clock-step") return `${amountMs > 0 ? "+" : ""}${amountMs} ms`;
  if (kind === "delay") return `${amountMs} ms each way`;
  if (kind === "evict") return policy;
  return kind.startsWith("cut") ? `then ${onHeal}` : "";
}
