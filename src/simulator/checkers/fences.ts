import type { GrantRecord, Violation } from "../history.ts";

/**
 * Checks that fences of one resource are unique, and that a grant which completed before another
 * grant started has the smaller fence. Compares only grants of one epoch: a span without a loss of
 * counters. `epochOf` returns the epoch of a grant, or undefined if the grant spans two epochs.
 */
export function checkFences(
  grants: readonly GrantRecord[],
  epochOf: (grant: GrantRecord) => number | undefined,
): Violation[] {
  const groups = new Map<string, GrantRecord[]>();
  for (const grant of grants) {
    const epoch = epochOf(grant);
    if (epoch === undefined || grant.fence === undefined) continue;
    for (const resource of grant.resources) {
      const name = `${epoch} ${resource}`;
      const group = groups.get(name);
      if (group === undefined) groups.set(name, [grant]);
      else group.push(grant);
    }
  }
  return [...groups.values()].flatMap((group) => [...duplicates(group), ...disorder(group)]);
}

function duplicates(group: readonly GrantRecord[]): Violation[] {
  const seen = new Map<bigint, GrantRecord>();
  const found: Violation[] = [];
  for (const grant of group) {
    const { fence } = grant;
    if (fence === undefined) continue;
    const other = seen.get(fence);
    if (other === undefined) seen.set(fence, grant);
    else {
      const text = `fence ${fence} was given twice: to ${textOf(other)} and to ${textOf(grant)}`;
      found.push({ rule: "fence-unique", atMs: grant.completedMs, text });
    }
  }
  return found;
}

function disorder(group: readonly GrantRecord[]): Violation[] {
  const byStart = [...group].sort((a, b) => a.startedMs - b.startedMs);
  const byEnd = [...group].sort((a, b) => a.completedMs - b.completedMs);
  const found: Violation[] = [];
  let greatest: GrantRecord | undefined;
  let next = 0;
  for (const grant of byStart) {
    for (let ended = byEnd[next]; ended !== undefined; ended = byEnd[next]) {
      if (ended.completedMs >= grant.startedMs) break;
      if (greatest === undefined || isGreater(ended, greatest)) greatest = ended;
      next += 1;
    }
    if (greatest === undefined || isGreater(grant, greatest)) continue;
    const before = `${textOf(greatest)}, done before`;
    const text = `fence ${grant.fence} of ${textOf(grant)} is not above ${before}`;
    found.push({ rule: "fence-order", atMs: grant.completedMs, text });
  }
  return found;
}

function isGreater(one: GrantRecord, other: GrantRecord): boolean {
  return one.fence !== undefined && other.fence !== undefined && one.fence > other.fence;
}

function textOf({ client, startedMs, completedMs, fence }: GrantRecord): string {
  return `${client} (${fence}, ${startedMs.toFixed(3)}–${completedMs.toFixed(3)} ms)`;
}
