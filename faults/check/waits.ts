import type { ClientEvent, FaultEvent, History } from "../history.ts";

/** How long the calls of one client waited, over all its processes. */
export interface Waits {
  readonly client: number;
  /** Offset of the client's wall clock; positive if it is ahead. */
  readonly clockOffsetMs: number;
  readonly calls: number;
  readonly granted: number;
  readonly medianWaitMs: number;
  readonly longestWaitMs: number;
  /** Calls that four or more later calls of other clients overtook, with or without a grant. */
  readonly overtaken: number;
  /** Overtaken calls that were never granted. */
  readonly starved: number;
}

/** More than chance explains: queues keep the order with at most one or two exceptions. */
const overtakesMin = 4;

interface Call {
  readonly client: number;
  readonly resource: string;
  readonly calledMs: number;
  readonly endedMs: number;
  readonly granted: boolean;
}

/**
 * Returns the waits of each client. A call is overtaken by each call for its resource that another
 * client made later and that was granted before it ended. Calls during a fault of their client's
 * process or links do not count, because those may fall behind. Faults of nodes are the same for
 * all clients.
 */
export function waitsOf(history: History): Waits[] {
  const calls = callsOf(history.events);
  const offsets = history.clockOffsetsMs ?? [];
  const count = Math.max(offsets.length, 0, ...calls.map(({ client }) => client + 1));
  return Array.from({ length: count }, (_, client) => {
    const own = calls.filter((call) => call.client === client);
    const granted = own.filter((call) => call.granted);
    const overtaken = own.filter((call) => isOvertaken(history, calls, call));
    const waitsMs = granted.map(({ calledMs, endedMs }) => endedMs - calledMs);
    waitsMs.sort((a, b) => a - b);
    return {
      client,
      clockOffsetMs: offsets[client] ?? 0,
      calls: own.length,
      granted: granted.length,
      medianWaitMs: waitsMs[Math.floor((waitsMs.length - 1) / 2)] ?? 0,
      longestWaitMs: waitsMs.at(-1) ?? 0,
      overtaken: overtaken.length,
      starved: overtaken.filter((call) => !call.granted).length,
    };
  });
}

function callsOf(events: readonly ClientEvent[]): Call[] {
  const calledMs = new Map<string, number>();
  return events.flatMap((event) => {
    if (event.what === "call") calledMs.set(event.lease, event.t);
    if (event.what !== "granted" && event.what !== "refused") return [];
    const { lease, resource, t } = event;
    const client = Number(/^c(\d+)\./.exec(event.who)?.[1]) - 1;
    const granted = event.what === "granted";
    return [{ client, resource, calledMs: calledMs.get(lease) ?? t, endedMs: t, granted }];
  });
}

function isOvertaken({ faults, endMs }: History, calls: readonly Call[], own: Call): boolean {
  const overtakes = calls.filter(
    ({ client, resource, granted, calledMs, endedMs }) =>
      granted &&
      client !== own.client &&
      resource === own.resource &&
      calledMs > own.calledMs &&
      endedMs < own.endedMs,
  );
  return overtakes.length >= overtakesMin && !isHit(faults, own, endMs);
}

/** True if the client's process or its links had a fault while the call waited. */
function isHit(faults: readonly FaultEvent[], own: Call, runEndMs: number): boolean {
  return faults.some(({ phase, clients, t, id }) => {
    if (phase !== "begin" || !clients.includes(own.client) || t > own.endedMs) return false;
    const end = faults.find((other) => other.id === id && other.phase === "end");
    return (end?.t ?? runEndMs) >= own.calledMs;
  });
}
