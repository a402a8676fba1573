import type { RedisConnection } from "../clients/contract.ts";
import type { Locks } from "../core/locks.ts";
import type { OpenStore, Store } from "../core/store.ts";
import type { Link } from "./network/link.ts";
import type { Scene } from "./scene.ts";

/**
 * Puts a lie between the library and its world, so that a test can see each rule of the checkers
 * fire in a whole run. A rule that is switched off, or that is not called any more, then fails a
 * test although all worlds look clean.
 */
export interface Sabotage {
  /** Wraps the connection to a node. */
  readonly connection?: (link: Link) => RedisConnection;
  /** Wraps the store below the recording: the checkers take what it returns for the truth. */
  readonly store?: (store: Store, scene: Scene) => Store;
  /** Wraps the store above the recording: only the library sees what it returns. */
  readonly recorded?: (store: Store, scene: Scene) => Store;
  /** Wraps the lock manager: only the user's code sees what it returns. */
  readonly locks?: (locks: Locks, scene: Scene) => Locks;
}

/** Returns the store with some of its methods replaced. `lies` gets the honest store. */
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
