import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { isHoldfast, type LockName } from "../options.ts";
import type { BenchLock, LockTerms } from "./bench-lock.ts";
import { holdfast } from "./holdfast.ts";
import { redisSemaphore, type RedlockMutexClass } from "./redis-semaphore.ts";
import { redlock5, type RedlockClass } from "./redlock5.ts";
import { redlockUniversal, type UniversalModule } from "./redlock-universal.ts";

const packages: Readonly<Record<LockName, string>> = {
  holdfast: "holdfast",
  "holdfast-without-admission": "holdfast",
  redlock5: "redlock",
  "redis-semaphore": "redis-semaphore",
  "redlock-universal": "redlock-universal",
};

/** Returns name and version of the library. Throws if it cannot run. */
export function lockVersion(name: LockName, root: string): string {
  const peers = join(root, "faults", "peers", "node_modules");
  const folder = isHoldfast(name) ? root : join(peers, packages[name]);
  const manifest = join(folder, "package.json");
  if (!existsSync(manifest)) {
    throw new Error(`${name} is not installed: run \`npm ci --prefix faults/peers\``);
  }
  const { version } = createRequire(manifest)(manifest) as { version: string };
  return `${packages[name]} ${version.replace(/^v/, "")}`;
}

/** Opens a lock library. The peers are installed in this folder, not with the project. */
export function openLock(
  name: LockName,
  root: string,
  clients: readonly Redis[],
  terms: LockTerms,
): BenchLock {
  const load = createRequire(join(root, "faults", "peers", "package.json"));
  switch (name) {
    case "holdfast":
      return holdfast(clients, terms, "strict");
    case "holdfast-without-admission":
      return holdfast(clients, terms, "off");
    case "redlock5": {
      const { default: Redlock } = load("redlock") as { default: RedlockClass };
      return redlock5(Redlock, clients, terms);
    }
    case "redis-semaphore": {
      const module = load("redis-semaphore") as { RedlockMutex: RedlockMutexClass };
      return redisSemaphore(module.RedlockMutex, clients, terms);
    }
    case "redlock-universal":
      return redlockUniversal(load("redlock-universal") as UniversalModule, clients, terms);
    default:
      return name satisfies never;
  }
}
