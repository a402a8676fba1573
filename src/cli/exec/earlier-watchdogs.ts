import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { hasInEnvironment, listProcesses } from "./process-list.ts";

/**
 * Problem: the embedded store frees the locks of a killed `exec` at once, but its watchdog needs a
 * moment to end the command. The next holder could start its command meanwhile.
 *
 * Idea: a watchdog has the locks of its run in its environment, and lives until the command is
 * gone. The next holder of one of these locks waits for its end.
 *
 * Limits: only on Linux, where environments can be read, and only for processes of the same user.
 */

const variable = "HOLDFAST_WATCHDOG";
const lookMs = 10;
/** Limit for the wait. A watchdog ends the command of a killed `exec` with SIGKILL at once. */
const waitMsMax = 10_000;

interface Locked {
  /** Identity of the store. */
  readonly store: string;
  readonly resources: readonly string[];
}

/** Returns the environment of a watchdog: one token for each lock of its run. */
export function watchdogEnvironment(locked: Locked): Readonly<Record<string, string>> {
  return { [variable]: tokensOf(locked).join(" ") };
}

/**
 * Resolves when no watchdog of an earlier run with one of these locks is left. Resolves to false if
 * there still is one after `waitMsMax`. Call this while the locks are held, and before the run has
 * a watchdog of its own.
 */
export async function earlierWatchdogsEnded(locked: Locked): Promise<boolean> {
  const tokens = tokensOf(locked);
  const untilMs = performance.now() + waitMsMax;
  const isLeft = (): boolean =>
    [...listProcesses().values()].some(({ pid, hasEnded }) => {
      return !hasEnded && tokens.some((token) => hasInEnvironment(pid, token));
    });
  while (isLeft()) {
    if (performance.now() > untilMs) return false;
    await sleep(lookMs);
  }
  return true;
}

/** Returns hashes, because a resource can be any text. */
function tokensOf({ store, resources }: Locked): readonly string[] {
  return resources.map((resource) => {
    const hash = createHash("sha256").update(JSON.stringify([store, resource]));
    return `holdfast-lock:${hash.digest("base64url")}`;
  });
}
