import type { NodeServer } from "./node-server.ts";
import type { PlannedFault } from "./plan.ts";
import { repeat, type Heal } from "./repeat.ts";

/** Begins a fault of one node. */
export async function beginOnNode(node: NodeServer, fault: PlannedFault): Promise<Heal> {
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
    case "busy":
      return keepBusy(node, fault);
    case "misconf":
      await node.failSaves();
      return () => node.healSaves();
    default:
      throw new Error(`${fault.kind} is no fault of one node`);
  }
}

/** Begins a fault that hits several nodes at once, again and again while it lasts. */
export async function beginOnNodes(
  nodes: readonly NodeServer[],
  { kind, amountMs }: PlannedFault,
): Promise<Heal> {
  const type = kind === "kill-subscribers" ? "pubsub" : "normal";
  return await repeat(amountMs, async () => {
    // A server that is just coming back has no connections to lose.
    await Promise.allSettled(nodes.map((node) => node.command("CLIENT", "KILL", "TYPE", type)));
  });
}

async function limitMemory(node: NodeServer, policy: string): Promise<Heal> {
  await node.command("CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", "1");
  return async () => {
    await node.command("CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction");
  };
}

/**
 * Runs for ARGV[1] milliseconds and writes nothing, so that it can be killed. If the server's time
 * stands still during a script, the number of rounds ends it.
 */
const longScript = `
local function ms() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end
local untilMs = ms() + ARGV[1]
for _ = 1, 20000 do
  for _ = 1, 10000 do end
  if ms() >= untilMs then return 'done' end
end
return 'done'`;

function keepBusy(node: NodeServer, { durationMs, scriptEnd }: PlannedFault): Heal {
  const scriptMs = scriptEnd === "killed" ? durationMs * 2 : durationMs;
  const running = node.command("EVAL", longScript, "0", String(scriptMs)).catch(() => undefined);
  return async () => {
    if (scriptEnd === "killed") await killScript(node);
    await running;
    // With a limit, even if the kill takes longer than its command may wait.
    await killScript(node);
  };
}

async function killScript(node: NodeServer): Promise<void> {
  // NOTBUSY: the script has ended by itself.
  await node.command("SCRIPT", "KILL").catch(() => undefined);
}
