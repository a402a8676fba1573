import type { AccountName, DemoEvent, EventKind, EventOf } from "./events.ts";

/** One statement of the demo, and whether the record confirms it. */
export interface Check {
  readonly ok: boolean;
  readonly what: string;
}

export interface Facts {
  readonly openingBalance: number;
  readonly deposit: number;
  /** Balances of the bank at the end. */
  readonly balances: { readonly [account in AccountName]: number };
  /** True if a dead holder must be detected before its lease runs out. */
  readonly noticesDeadHolders: boolean;
}

/** Returns the checks, computed from the recorded events alone. */
export function judge(events: readonly DemoEvent[], facts: Facts): readonly Check[] {
  return [
    fencesGrow(events),
    killedHolder(events, facts),
    frozenHolder(events),
    staleWrite(events, facts),
    refusedWrite(events, facts),
  ];
}

export interface Account {
  readonly accepted: number;
  readonly refused: number;
  /** Opening balance plus all accepted deposits. */
  readonly expected: number;
  readonly balance: number;
}

export function accountOf(
  events: readonly DemoEvent[],
  account: AccountName,
  { openingBalance, deposit, balances }: Omit<Facts, "noticesDeadHolders">,
): Account {
  const writes = eventsOf(events, "write").filter((write) => write.account === account);
  const accepted = writes.filter(({ answer }) => answer === "accepted").length;
  const expected = openingBalance + accepted * deposit;
  const refused = writes.length - accepted;
  return { accepted, refused, expected, balance: balances[account] };
}

export function eventsOf<Kind extends EventKind>(
  events: readonly DemoEvent[],
  kind: Kind,
): readonly EventOf<Kind>[] {
  return events.filter((event): event is EventOf<Kind> => event.kind === kind);
}

/**
 * Checks that no lease begins while another is valid, and that each fence is greater than the fence
 * before it.
 */
function fencesGrow(events: readonly DemoEvent[]): Check {
  const taken = eventsOf(events, "acquired");
  const wrong = taken.slice(1).find((turn, index) => {
    const before = taken[index];
    if (before === undefined) return true;
    return BigInt(turn.fence) <= BigInt(before.fence) || turn.atMs < endOf(events, before);
  });
  if (taken.length < 2) return { ok: false, what: "fewer than two turns were taken" };
  if (wrong !== undefined) {
    const what = `${wrong.worker} got fence ${wrong.fence} while another still held the lock`;
    return { ok: false, what };
  }
  const [first, last] = [taken[0]?.fence, taken.at(-1)?.fence];
  const what = `${taken.length} turns, one at a time, fences ${first} to ${last}, always growing`;
  return { ok: true, what };
}

/**
 * Returns the earliest certain end of a turn: its last write, the death of the worker or the end of
 * its lease. The `released` event is not used, because it can arrive after the next `acquired`.
 */
function endOf(events: readonly DemoEvent[], { worker, fence }: EventOf<"acquired">): number {
  const died = eventsOf(events, "killed").find((event) => event.worker === worker);
  const wrote = eventsOf(events, "replied").filter((event) => event.fence === fence);
  const lastWriteMs = Math.max(...wrote.map(({ atMs }) => atMs));
  const leftMs = wrote.length > 0 ? lastWriteMs : (died?.atMs ?? Infinity);
  return Math.min(leftMs, expiryOf(events, fence));
}

/**
 * Returns the end of the lease that its holder computed. It is no later than the end in the store.
 */
export function expiryOf(events: readonly DemoEvent[], fence: string): number {
  const grants = [...eventsOf(events, "acquired"), ...eventsOf(events, "renewed")];
  const own = grants.filter((event) => event.fence === fence);
  return Math.max(...own.map(({ expiresMs }) => expiresMs));
}

interface TakeOver {
  readonly from: EventOf<"acquired">;
  readonly by: EventOf<"acquired">;
}

/** Returns the lease that the worker held at the event, and the next lease. */
function takeOver(events: readonly DemoEvent[], hit: DemoEvent): TakeOver | undefined {
  const taken = eventsOf(events, "acquired");
  const from = taken.findLast(({ worker, atMs }) => worker === hit.worker && atMs <= hit.atMs);
  if (from === undefined) return undefined;
  const by = taken.find(({ fence }) => BigInt(fence) > BigInt(from.fence));
  return by === undefined ? undefined : { from, by };
}

function killedHolder(events: readonly DemoEvent[], facts: Facts): Check {
  const [hit] = eventsOf(events, "killed");
  if (hit === undefined) return { ok: false, what: "no worker was killed" };
  const over = takeOver(events, hit);
  if (over === undefined) return { ok: false, what: `no worker took over from ${hit.worker}` };
  const { from, by } = over;
  const afterMs = by.atMs - hit.atMs;
  const earlyMs = expiryOf(events, from.fence) - by.atMs;
  const story =
    `${hit.worker} was killed while it held fence ${from.fence}; ` +
    `${by.worker} took over ${Math.round(afterMs)} ms later`;
  if (earlyMs > 0) {
    return { ok: true, what: `${story}, ${seconds(earlyMs)} before the lease ran out` };
  }
  // A lock server cannot detect that a process is dead.
  return { ok: !facts.noticesDeadHolders, what: `${story}, when the lease had run out` };
}

function frozenHolder(events: readonly DemoEvent[]): Check {
  const hit = eventsOf(events, "frozen").at(-1);
  if (hit === undefined) return { ok: false, what: "no worker was frozen" };
  const over = takeOver(events, hit);
  const resumed = events.find(
    (event) => event.kind === "resumed" && event.worker === hit.worker && event.atMs > hit.atMs,
  );
  if (over === undefined || resumed === undefined || over.by.atMs > resumed.atMs) {
    return { ok: false, what: `no worker took over while ${hit.worker} was frozen` };
  }
  const { from, by } = over;
  const what =
    `${hit.worker} was frozen for ${seconds(resumed.atMs - hit.atMs)} with fence ${from.fence}; ` +
    `its lease ran out and ${by.worker} went on with fence ${by.fence}`;
  const lost = events.some((event) => event.kind === "lost" && event.fence === from.fence);
  return lost ? { ok: true, what } : { ok: false, what: `${what}; ${hit.worker} never noticed` };
}

/** Returns the write that the frozen worker sent after it was resumed. */
function lateWrite(
  events: readonly DemoEvent[],
  account: AccountName,
): EventOf<"write"> | undefined {
  const hit = eventsOf(events, "frozen").at(-1);
  const over = hit === undefined ? undefined : takeOver(events, hit);
  return eventsOf(events, "write").find(
    (write) =>
      write.account === account && write.fence === over?.from.fence && write.atMs > over.by.atMs,
  );
}

function staleWrite(events: readonly DemoEvent[], facts: Facts): Check {
  const late = lateWrite(events, "open");
  if (late === undefined) return { ok: false, what: "no late write reached the open account" };
  const { expected, balance, accepted } = accountOf(events, "open", facts);
  const missing = expected - balance;
  if (late.answer !== "accepted" || missing <= 0) {
    return { ok: false, what: "the late write did no harm to the open account" };
  }
  const what =
    `without a fence check, ${late.worker}'s late write went through: ` +
    `${accepted} deposits were confirmed, and ${missing / facts.deposit} of them lost ` +
    `(balance ${balance}, should be ${expected})`;
  return { ok: true, what };
}

function refusedWrite(events: readonly DemoEvent[], facts: Facts): Check {
  const late = lateWrite(events, "guarded");
  const { expected, balance, accepted } = accountOf(events, "guarded", facts);
  if (late === undefined) return { ok: false, what: "no late write reached the guarded account" };
  if (late.answer !== "refused" || balance !== expected) {
    const what =
      `the guarded account took ${late.worker}'s late write: ` +
      `balance ${balance}, should be ${expected}`;
    return { ok: false, what };
  }
  const what =
    `with it, the same write was refused (fence ${late.fence}, seen ${late.seen}): ` +
    `all ${accepted} confirmed deposits are there (balance ${balance})`;
  return { ok: true, what };
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
