import { Assumptions } from "../../src/simulator/assumptions.ts";
import { checkFences } from "../../src/simulator/checkers/fences.ts";
import { judge } from "../../src/simulator/checkers/judge.ts";
import type {
  ConfirmationRecord,
  GrantRecord,
  TenureRecord,
  Violation,
} from "../../src/simulator/history.ts";
import { registers, type History } from "../history.ts";
import type { BrokenWindow } from "./assumptions.ts";
import { linearize, type Model, type Operation } from "./linearizability.ts";
import { lockModel, lockOperations } from "./lock-model.ts";
import { registerModel, registerOperations } from "./register-model.ts";
import type { Span } from "./spans.ts";

interface Window {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Checks a run on real servers by the same rules as simulated runs. */
export function judged(
  history: History,
  spans: readonly Span[],
  windows: readonly BrokenWindow[],
): Violation[] {
  const assumptions = new Assumptions();
  for (const { assumption, fromMs, toMs } of windows) {
    // Data loss excuses nothing, because strict admission must handle it.
    if (assumption !== "data") assumptions.breakExclusion(fromMs, toMs, assumption);
  }
  const uncertain = cutQuarantines(history);
  for (const { fromMs, toMs } of uncertain) {
    assumptions.breakFences(fromMs, "a clock step cut a quarantine short");
    assumptions.breakFences(toMs, "a clock step cut a quarantine short");
  }
  const grants = grantsOf(spans.filter((span) => isOutside(span, uncertain)));
  const confirmations = confirmationsOf(history, spans);
  return judge({ grants, tenures: tenuresOf(spans), confirmations }, assumptions);
}

/** Returns every pair of fences that is out of order, whatever assumption was broken. */
export function fenceFaults(spans: readonly Span[]): Violation[] {
  return checkFences(grantsOf(spans), () => 0);
}

/**
 * Returns each lock and each guarded register whose operations have no order that explains them
 * all, or for which the search found neither an order nor a proof.
 */
export function orderFaults(
  history: History,
  spans: readonly Span[],
  windows: readonly BrokenWindow[],
): string[] {
  const uncertain = cutQuarantines(history);
  const known = spans.map((span) => {
    return isOutside(span, uncertain) ? span : { ...span, fence: undefined };
  });
  return history.resources.flatMap((resource) => [
    ...faultOf(`lock ${resource}`, lockModel, lockOperations(history, known, windows, resource)),
    ...registers
      .filter((register) => register.endsWith("fenced"))
      .flatMap((register) => {
        const operations = registerOperations(history, register, resource);
        return faultOf(`register ${register}:${resource}`, registerModel, operations);
      }),
  ]);
}

/** True if the lease was granted outside of all these windows. */
function isOutside({ startedMs, fromMs: grantedMs }: Span, windows: readonly Window[]): boolean {
  return windows.every(({ fromMs, toMs }) => grantedMs < fromMs || startedMs > toMs);
}

function faultOf<State, Input>(
  object: string,
  model: Model<State, Input>,
  operations: readonly Operation<Input>[],
): string[] {
  const verdict = linearize(model, operations);
  switch (verdict.kind) {
    case "linearizable":
      return [];
    case "undecided":
      return [
        `${object}: no order found, and no proof that there is none, in ${verdict.steps} steps`,
      ];
    default: {
      const before = verdict.before.slice(-3).join(", then ") || "nothing";
      return [
        `${object}: no order explains "${verdict.stuck}"; the longest one ends with ${before}`,
      ];
    }
  }
}

function grantsOf(spans: readonly Span[]): GrantRecord[] {
  return spans.map(({ who, resource, startedMs, fromMs, fence }) => {
    return { client: who, resources: [resource], startedMs, completedMs: fromMs, fence };
  });
}

function tenuresOf(spans: readonly Span[]): TenureRecord[] {
  return spans.map(({ who, resource, startedMs, fromMs, toMs, fence }) => {
    return { client: who, resource, fence, startedMs, acquiredMs: fromMs, trustedUntilMs: toMs };
  });
}

/** Returns each extension and proof that a quorum confirmed. */
function confirmationsOf({ events }: History, spans: readonly Span[]): ConfirmationRecord[] {
  const spanOf = new Map(spans.map((span) => [span.lease, span]));
  return events.flatMap((event) => {
    if (event.what !== "extend" && event.what !== "prove") return [];
    const { lease, outcome, startedMs } = event;
    const span = spanOf.get(lease);
    const isConfirmed = outcome === "extended" || outcome === "proven";
    if (!isConfirmed || span === undefined || startedMs === undefined) return [];
    const { who, resource, fence, fromMs: grantedMs } = span;
    return [{ client: who, resources: [resource], fence, grantedMs, startedMs }];
  });
}

/**
 * Returns quarantines that a clock step may have shortened. A node that lost its data measures its
 * quarantine by its own clock. If that is set forward meanwhile, the node votes too early, and
 * neither exclusion nor the order of fences is promised.
 */
function cutQuarantines({ faults, ttlMs }: History): Window[] {
  const lostMs = new Map<number, number>();
  const found: Window[] = [];
  // Far more than a quarantine: a node waits longer while there are too few others to copy from.
  const quarantineMsMax = ttlMs * 5;
  for (const { kind, phase, nodes, detail, t } of faults) {
    const [node] = nodes;
    if (node === undefined) continue;
    if (["kill-empty", "kill-keep", "flush-all", "evict"].includes(kind)) lostMs.set(node, t);
    if (kind !== "clock-step") continue;
    const forward = detail.startsWith("-") === (phase === "end");
    const sinceMs = t - (lostMs.get(node) ?? -Infinity);
    if (forward && sinceMs < quarantineMsMax) found.push({ fromMs: t, toMs: t + ttlMs * 1.1 });
  }
  return found;
}
