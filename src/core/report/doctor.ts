/** `error`: locks do not work or do not exclude. `warning`: they may not. `info`: good to know. */
export type FindingLevel = "error" | "warning" | "info";

/** One thing that the doctor found. Plain data: `JSON.stringify` keeps all of it. */
export interface Finding {
  readonly level: FindingLevel;
  /** Stable across versions, for programs. The texts may change. */
  readonly code: string;
  /** Node that the finding is about. Left out if it is about all nodes or about this process. */
  readonly node?: string;
  readonly what: string;
  readonly why: string;
  readonly remedy: string;
}

const levels: readonly FindingLevel[] = ["error", "warning", "info"];

/** Returns the most severe first; findings of one level keep their order. */
export function sortFindings(findings: readonly Finding[]): readonly Finding[] {
  return levels.flatMap((level) => findings.filter((finding) => finding.level === level));
}

/** Returns the findings as text, three lines each. For JSON, use `JSON.stringify` on them. */
export function renderFindings(findings: readonly Finding[]): string {
  if (findings.length === 0) return "nothing found\n";
  return findings
    .map(({ level, code, node, what, why, remedy }) => {
      const about = node === undefined ? what : `${node}: ${what}`;
      return `${level.padEnd(7)}  ${about} [${code}]\n  why    ${why}\n  to do  ${remedy}\n`;
    })
    .join("\n");
}

/**
 * Returns a finding for a stall of more than a third of the TTL, the interval of renewals. A stall
 * of two thirds is an error: it can end a lease before the lease is renewed.
 */
export function stallFinding(stallMs: number, ttlMs: number): Finding | undefined {
  if (stallMs * 3 <= ttlMs) return undefined;
  const fatal = stallMs * 3 >= ttlMs * 2;
  return {
    level: fatal ? "error" : "warning",
    code: "event-loop-stall",
    what: `this process's event loop was blocked for ${Math.round(stallMs)} ms`,
    why: fatal
      ? `a lease of ${ttlMs} ms is renewed after a third of that: a stall like this loses it`
      : `renewals of a lease of ${ttlMs} ms come late: a somewhat longer stall would lose it`,
    remedy: "find the work that blocks, move it to a worker thread, or use a longer ttl",
  };
}
