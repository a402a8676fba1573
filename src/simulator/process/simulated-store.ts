import type { Store } from "../../core/store.ts";
import { resolveStoreOptions } from "../../stores/redis/options.ts";
import { RedisStore } from "../../stores/redis/store.ts";
import type { Link } from "../network/link.ts";
import type { Sabotage } from "../sabotage.ts";
import type { StorePlan } from "../scenario.ts";
import type { Scene } from "../scene.ts";

/** Returns the real Redis store over simulated links, with what a test planted in it. */
export function simulatedStore(
  links: readonly Link[],
  plan: StorePlan,
  { connection, store }: Sabotage,
  scene: Scene,
): Store {
  const { fencing, admission, maxTtlMs, driftFactor, driftFixedMs, nodeTimeoutMs } = plan;
  const options = resolveStoreOptions(
    {
      fencing,
      admission,
      maxTtl: maxTtlMs,
      drift: { factor: driftFactor, fixed: driftFixedMs },
      ...(nodeTimeoutMs === undefined ? {} : { nodeTimeout: nodeTimeoutMs }),
    },
    links.length,
  );
  const connections = connection === undefined ? links : links.map((link) => connection(link));
  const honest: Store = {
    name: "simulated",
    capabilities: { fencing, multiResource: true },
    maxTtlMs,
    open: (context) => new RedisStore(connections, options, context),
  };
  return store?.(honest, scene) ?? honest;
}
