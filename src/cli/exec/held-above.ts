import type { Connected } from "../connect.ts";
import { Failure } from "../failure.ts";

/** Locks that an `exec` reports to nested holdfast processes, in the variable HOLDFAST_HELD. */
export interface HeldAbove {
  readonly store: string;
  readonly resources: readonly string[];
  readonly fence: string | undefined;
  readonly pid: number;
  /**
   * Unique text in the environment of the command. Processes of the command are recognised by it.
   */
  readonly mark: string;
}

const variable = "HOLDFAST_HELD";

export function heldAbove(): readonly HeldAbove[] {
  try {
    const listed: unknown = JSON.parse(process.env[variable] ?? "[]");
    return Array.isArray(listed) ? listed.filter(isHeldAbove) : [];
  } catch {
    return [];
  }
}

/** Checks the contents of the variable, because another program may have written it. */
function isHeldAbove(value: unknown): value is HeldAbove {
  if (typeof value !== "object" || value === null) return false;
  const { store, resources, fence } = value as Partial<Record<keyof HeldAbove, unknown>>;
  const hasFence = fence === undefined || typeof fence === "string";
  return typeof store === "string" && Array.isArray(resources) && hasFence;
}

export function heldVariables(own: HeldAbove): Readonly<Record<string, string>> {
  return { [variable]: JSON.stringify([...heldAbove(), own]) };
}

/**
 * Throws Failure if an outer `exec` holds one of the resources: the wait for it would never end.
 * Compares the store first, because a process left behind can keep the variable after the lock
 * ended.
 */
export async function refuseOwn(
  { locks, identity }: Connected,
  resources: readonly string[],
): Promise<void> {
  for (const above of heldAbove()) {
    if (above.store !== identity) continue;
    for (const resource of resources) {
      if (!above.resources.includes(resource)) continue;
      const { state, fence } = await locks.inspect(resource);
      const same = above.fence === undefined || above.fence === String(fence);
      if (state !== "held" || !same) continue;
      throw new Failure(
        "misuse",
        `"${resource}" is held by the exec around this one (pid ${above.pid}): it would wait ` +
          "for itself. Inside, just do the work",
      );
    }
  }
}
