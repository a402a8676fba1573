import type { Violation } from "../../src/simulator/history.ts";
import type { History } from "../history.ts";
import type { EarlyLoss } from "./false-losses.ts";
import { flatteries, lateReports } from "./losses.ts";
import type { Overlap } from "./overlaps.ts";
import type { Span } from "./spans.ts";
import type { Updates } from "./updates.ts";

/** All rules of a fault run. Each has a planted violation in the tests. */
export const faultRules = [
  "mutex-model",
  "fence-order",
  "fence-unique",
  "stale-confirmation",
  "overlap",
  "no-order",
  "trusted-after-end",
  "late-report",
  "false-loss",
  "contradiction",
  "stale-write",
  "lost-update",
  "unhandled-rejection",
  "overdue-call",
  "hung-process",
  "misbehaved-process",
  "no-grant-after-healing",
] as const;

export type FaultRule = (typeof faultRules)[number];

/** One broken rule of a run. */
export interface Failure {
  readonly rule: FaultRule | Violation["rule"];
  readonly text: string;
}

export interface FoundFacts {
  readonly violations: readonly Violation[];
  readonly overlaps: readonly Overlap[];
  /** Locks and registers whose operations have no order that explains them. */
  readonly disordered: readonly string[];
  readonly updates: readonly Updates[];
  readonly earlyLosses: readonly EarlyLoss[];
  readonly spans: readonly Span[];
}

/** Returns every broken rule of a run. */
export function failuresOf(history: History, found: FoundFacts): Failure[] {
  const named = (rule: FaultRule, texts: readonly string[]): Failure[] =>
    texts.map((text) => ({ rule, text }));
  return [
    ...named("misbehaved-process", history.misbehaved),
    ...found.violations.map(({ rule, text }) => ({ rule, text: `${rule}: ${text}` })),
    ...named("trusted-after-end", flatteries(history)),
    ...named("late-report", lateReports(history)),
    ...named("overlap", overlaps(found.overlaps)),
    ...named("no-order", found.disordered),
    ...found.updates.flatMap(ofUpdates),
    ...named("false-loss", falseLosses(found.earlyLosses)),
    ...history.events.flatMap(ofEvent),
    ...named("no-grant-after-healing", withoutGrant(history, found.spans)),
  ];
}

function overlaps(found: readonly Overlap[]): string[] {
  return found.flatMap(({ broken, first, second, resource, fromMs, toMs }) => {
    // Data loss excuses nothing, because strict admission must handle it.
    if (broken === "clock" || broken === "eviction") return [];
    const ms = (toMs - fromMs).toFixed(1);
    return [`${resource}: ${first} and ${second} were both trusted for ${ms} ms`];
  });
}

function ofUpdates({ register, staleAccepted, lost, contradictions }: Updates): Failure[] {
  const failures: Failure[] = contradictions.map((text) => ({ rule: "contradiction", text }));
  if (staleAccepted > 0) {
    failures.push({
      rule: "stale-write",
      text: `${register}: ${staleAccepted} stale writes accepted`,
    });
  }
  if (register.endsWith("fenced") && lost > 0) {
    failures.push({ rule: "lost-update", text: `${register}: ${lost} updates lost` });
  }
  return failures;
}

function falseLosses(found: readonly EarlyLoss[]): string[] {
  return found.flatMap(({ lease, resource, by, reason, leftMs, explained }) => {
    if (explained !== undefined) return [];
    const left = `${leftMs.toFixed(0)} ms left`;
    return [`${resource}: ${lease} was falsely reported lost (${by}: ${reason}), ${left}`];
  });
}

function ofEvent(event: History["events"][number]): Failure[] {
  switch (event.what) {
    case "rejection":
      return [{ rule: "unhandled-rejection", text: `${event.who}: unhandled: ${event.message}` }];
    case "hung":
      return [{ rule: "hung-process", text: `${event.who} hung` }];
    case "overdue": {
      const text = `${event.lease}: ${event.call} took more than ${event.awakeMs} ms`;
      return [{ rule: "overdue-call", text }];
    }
    default:
      return [];
  }
}

function withoutGrant({ resources, healedMs }: History, spans: readonly Span[]): string[] {
  return resources
    .filter((resource) => {
      return !spans.some((span) => span.resource === resource && span.fromMs > healedMs);
    })
    .map((resource) => `${resource}: no client got it after all faults had healed`);
}
