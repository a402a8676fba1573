import { InvalidOptionError, isHoldfastError } from "../core/errors.ts";
import type { Locks } from "../core/locks.ts";
import { partsOf } from "../core/manager-parts.ts";
import { knownOptions } from "../core/options.ts";
import type { Inspection } from "../core/store.ts";
import { durationMs, type Duration } from "../core/time/durations.ts";
import { Pause } from "../core/time/pause.ts";

export interface LeadersOptions {
  /** Ends the iteration when it aborts. */
  readonly signal?: AbortSignal;
  /** Time between two looks. @default 1 s */
  readonly every?: Duration;
}

/** Who leads, as the store reports it. It may have changed when you read it. */
export interface Leadership {
  /**
   * `led`: one candidate has the lease. `no-leader`: no candidate has it. `unknown`: too few nodes
   * replied, or they do not agree.
   */
  readonly state: "led" | "no-leader" | "unknown";
  /** Label of the leader, such as its address. */
  readonly label: string | undefined;
  /** Fence of the leader's lease. Undefined without a leader, and if the store does not fence. */
  readonly term: bigint | undefined;
}

const looks = ["acquired", "lost", "released"] as const;

/**
 * Returns who leads now, and then every change: another leader, another term of the same one, no
 * leader. Looks once a second, and at once if a candidate of this manager is elected or deposed.
 * Short terms between two looks are not seen. Ends when `signal` aborts or the manager is closed.
 */
export function leaders(
  locks: Locks,
  name: string,
  options: LeadersOptions = {},
): AsyncGenerator<Leadership, void, undefined> {
  knownOptions("options", options, ["signal", "every"]);
  if (typeof name !== "string") throw new InvalidOptionError("name", "one name", name);
  const { signal, every = 1_000 } = options;
  const everyMs = durationMs("every", every, { minMs: 10, maxMs: 86_400_000 });
  partsOf(locks).check(name, signal === undefined ? {} : { signal });
  return changes(locks, name, everyMs, signal);
}

async function* changes(
  locks: Locks,
  name: string,
  everyMs: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Leadership, void, undefined> {
  const parts = partsOf(locks);
  const pause = new Pause(parts.runtime.clock);
  const watch = { isOver: signal?.aborted === true, isStale: false };
  const lookAgain = (): void => {
    watch.isStale = true;
    pause.end();
  };
  const end = (): void => {
    watch.isOver = true;
    lookAgain();
  };
  const removals = [
    ...looks.map((event) =>
      locks.on(event, ({ resources }) => {
        if (resources.includes(name)) lookAgain();
      }),
    ),
    parts.onClose(end),
    () => signal?.removeEventListener("abort", end),
  ];
  signal?.addEventListener("abort", end);
  let last: string | undefined;
  try {
    while (!watch.isOver) {
      watch.isStale = false;
      const { leadership, key } = await look(locks, name);
      if (key !== last && !watch.isOver) yield leadership;
      last = key;
      if (!watch.isStale) await pause.sleep(everyMs);
    }
  } catch (error) {
    if (!isHoldfastError(error, "CLOSED")) throw error;
  } finally {
    for (const remove of removals) remove();
  }
}

/** Returns the leader, and a text that differs for another leader or another term. */
async function look(
  locks: Locks,
  name: string,
): Promise<{ readonly leadership: Leadership; readonly key: string }> {
  let seen: Inspection | undefined;
  try {
    seen = await locks.inspect(name);
  } catch (error) {
    const isFault = ["QUORUM", "STORE", "REPLICATION"] as const;
    if (!isFault.some((code) => isHoldfastError(error, code))) throw error;
  }
  if (seen?.state === "held") {
    const { label, fence: term } = seen;
    const leadership: Leadership = { state: "led", label, term };
    return { leadership, key: `led ${term} ${ownerOf(seen)}` };
  }
  const state = seen?.state === "free" ? "no-leader" : "unknown";
  return { leadership: { state, label: undefined, term: undefined }, key: state };
}

/** Returns the owner that most nodes report. */
function ownerOf({ nodes }: Inspection): string {
  const counts = new Map<string, number>();
  for (const { holder } of nodes) {
    if (holder !== undefined) counts.set(holder.owner, (counts.get(holder.owner) ?? 0) + 1);
  }
  const [most] = [...counts].toSorted(([, a], [, b]) => b - a);
  return most?.[0] ?? "";
}
