import { brokenAt, type Assumption, type BrokenWindow } from "./assumptions.ts";
import type { Span } from "./spans.ts";

/** Two leases of one resource that were both trusted for a while. */
export interface Overlap {
  readonly resource: string;
  readonly first: string;
  readonly second: string;
  readonly fromMs: number;
  readonly toMs: number;
  /** Assumption that was broken when the second was granted; undefined if none was. */
  readonly broken: Assumption | undefined;
}

export function overlapsOf(spans: readonly Span[], windows: readonly BrokenWindow[]): Overlap[] {
  const overlaps: Overlap[] = [];
  const active = new Map<string, Span[]>();
  for (const span of spans.toSorted((a, b) => a.fromMs - b.fromMs)) {
    const held = (active.get(span.resource) ?? []).filter(({ toMs }) => toMs > span.fromMs);
    for (const first of held) {
      overlaps.push({
        resource: span.resource,
        first: first.lease,
        second: span.lease,
        fromMs: span.fromMs,
        toMs: Math.min(first.toMs, span.toMs),
        broken: brokenAt(windows, span.fromMs),
      });
    }
    held.push(span);
    active.set(span.resource, held);
  }
  return overlaps;
}
