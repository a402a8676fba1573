import type { RedisConnection } from "../clients/contract.ts";
import type { Locks } from "../core/locks.ts";
import type { OpenStore, Store } from "../core/store.ts";
import type { Link } from "./network/link.ts";
import type { Scene } from "./scene.ts";

/**
 * Wrappers that return wrong results, to test the checkers. Each test plants one error in a whole
 * run and expects the matching rule to report it. So a test fails if a rule is no longer checked.
 */
export interface Sabotage {
  /** Wraps the connection to a node. */
  readonly connection?: (link: Link) => RedisConnection;
  /** Wraps the store inside the `RecordingStore`: checkers and library receive its results. */
  readonly store?: (store: Store, scene: Scene) => Store;
  /** Wraps the `RecordingStore`: only the library receives the wrapper's results. */
  readonly recorded?: (store: Store, scene: Scene) => Store;
  /** Wraps the lock manager: only the user's code receives the wrapper's results. */
  readonly locks?: (locks: Locks, scene: Scene) => Locks;
}

/** Returns the store with some methods replaced. `lies` maps the real store to replacements. */
export function lyingStore(store: Store, lies: (honest: OpenStore) => Partial<OpenStore>): Store {
  return {
    ...store,
    open: (context): OpenStore => {
      const honest = store.open(context);
      const replaced = lies(honest);
      return new Proxy(honest, {
        get(target, name) {
          if (Object.hasOwn(replaced, name)) return Reflect.get(replaced, name) as unknown;
          const method: unknown = Reflect.get(target, name, target);
          return typeof method === "function" ? (method.bind(target) as unknown) : method;
        },
        has: (target, name) =>
          Object.hasOwn(replaced, name)
            ? Reflect.get(replaced, name) !== undefined
            : Reflect.has(target, name),
      });
    },
  };
}
