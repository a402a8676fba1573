import type { History } from "../history.ts";

/** How a holder learnt that its lease was lost. */
export interface Loss {
  readonly lease: string;
  readonly reason: string;
  /** When it was told, from the end of validity: negative is before it. */
  readonly lateMs: number | undefined;
  /** The process was stopped when validity ended: it was told as soon as it ran again. */
  readonly wasFrozen: boolean;
  /** It did something else after the end, and well before it was told: that was too late. */
  readonly ranMeanwhile: boolean;
}

/** The first turn of a process that wakes up on a busy machine can take this long. */
const turnMs = 50;

/** A process that was stopped needs a moment to get going again. */
const wakeMs = 100;

export function lossesOf(history: History): Loss[] {
  const freezes = freezesOf(history);
  return history.events.flatMap((event) => {
    if (event.what !== "told") return [];
    const { t, lease, reason, untilMs, who } = event;
    const wasFrozen = freezes.some(
      (freeze) =>
        freeze.who === who.split(".")[0] &&
        freeze.fromMs <= t &&
        freeze.toMs + wakeMs >= Math.min(t, untilMs ?? t),
    );
    const lateMs = untilMs === undefined ? undefined : t - untilMs;
    const ranMeanwhile = history.events.some(
      (other) =>
        other.who === who &&
        other.t > (untilMs ?? t) &&
        other.t < t - turnMs &&
        !("lease" in other && other.lease === lease),
    );
    return [{ lease, reason, lateMs, wasFrozen, ranMeanwhile }];
  });
}

/** Looks that said yes after the end that the library itself had named. */
export function flatteries(history: History): string[] {
  return history.events.flatMap((event) => {
    if (event.what !== "look" || !event.trusted || event.untilMs === undefined) return [];
    return event.t > event.untilMs ? [`${event.lease} was still trusted after its end`] : [];
  });
}

function freezesOf({ faults, endMs }: History): {
  readonly who: string;
  readonly fromMs: number;
  readonly toMs: number;
}[] {
  const ends = new Map<number, number>();
  for (const { id, phase, t } of faults) if (phase === "end") ends.set(id, t);
  return faults.flatMap(({ kind, phase, id, t, clients }) => {
    const [client] = clients;
    if (kind !== "freeze-client" || phase !== "begin" || client === undefined) return [];
    return [{ who: `c${client + 1}`, fromMs: t, toMs: ends.get(id) ?? endMs }];
  });
}
