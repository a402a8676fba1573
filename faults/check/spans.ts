import type { ClientEvent, History } from "../history.ts";

/** A period in which the library reported to the holder that the lease is valid. */
export interface Span {
  readonly lease: string;
  readonly resource: string;
  readonly who: string;
  /** Before the attempt that was granted; before the first attempt if that is not known. */
  readonly startedMs: number;
  readonly fromMs: number;
  readonly toMs: number;
  readonly fence: bigint | undefined;
}

interface Open {
  readonly startedMs: number;
  readonly fromMs: number;
  readonly fence: bigint | undefined;
  readonly resource: string;
  readonly who: string;
  /** Latest look at which the library reported the lease as valid. */
  lastMs: number;
  /** End of the validity that the library reported in advance. */
  untilMs: number | undefined;
  endedMs: number | undefined;
}

/**
 * Returns the spans of trust, each no longer than the library's own reports: up to the last
 * successful look, or up to the reported end if there is one, but at most up to the report of the
 * loss or to the release.
 */
export function spansOf(history: History): Span[] {
  const calls = new Map<string, number>();
  const open = new Map<string, Open>();
  const deaths = deathsOf(history);
  for (const event of history.events) {
    if (event.what === "call") calls.set(event.lease, event.t);
    if (event.what === "granted") {
      open.set(event.lease, {
        startedMs: event.startedMs ?? calls.get(event.lease) ?? event.t,
        fromMs: event.t,
        fence: event.fence === undefined ? undefined : BigInt(event.fence),
        resource: event.resource,
        who: event.who,
        lastMs: event.t,
        untilMs: event.untilMs,
        endedMs: undefined,
      });
    }
    if ("lease" in event) note(open.get(event.lease), event);
  }
  return [...open].map(([lease, span]) => {
    const { startedMs, fromMs, fence, resource, who, lastMs, untilMs } = span;
    const endedMs = span.endedMs ?? deaths.get(who) ?? history.endMs;
    const toMs = Math.max(lastMs, Math.min(untilMs ?? lastMs, endedMs));
    return { lease, resource, who, startedMs, fromMs, toMs, fence };
  });
}

function note(span: Open | undefined, event: ClientEvent): void {
  if (span === undefined || span.endedMs !== undefined) return;
  if (event.what === "look" && event.trusted) {
    span.lastMs = event.t;
    span.untilMs = event.untilMs;
  }
  const over =
    event.what === "release" ||
    event.what === "reported" ||
    (event.what === "look" && !event.trusted);
  if (over) span.endedMs = event.t;
}

/** Returns the moment at which each process was killed. */
function deathsOf({ faults }: History): Map<string, number> {
  const deaths = new Map<string, number>();
  const incarnations = new Map<number, number>();
  for (const { kind, phase, clients, t } of faults) {
    const [client] = clients;
    if (kind !== "kill-client" || phase !== "begin" || client === undefined) continue;
    const incarnation = incarnations.get(client) ?? 0;
    incarnations.set(client, incarnation + 1);
    deaths.set(`c${client + 1}.${incarnation}`, t);
  }
  return deaths;
}
