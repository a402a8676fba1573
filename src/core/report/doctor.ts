/**
 * `error`: locks do not work, or do not exclude each other. `warning`: this may happen. `info`: a
 * fact without a risk.
 */
export type FindingLevel = "error" | "warning" | "info";

/** One result of `doctor()`. Plain data: `JSON.stringify` keeps all of it. */
export interface Finding {
  readonly level: FindingLevel;
  /** Code for programs, stable across versions. The texts may change. */
  readonly code: string;
  /** Node that the finding concerns. Left out if it concerns all nodes or this process. */
  readonly node?: string;
  readonly what: string;
  readonly why: string;
  readonly remedy: string;
}

const levels: readonly FindingLevel[] = ["error", "warning", "info"];

/** Returns the findings, the most severe first. Findings of one level keep their order. */
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
 * Returns a finding for a stall of more than a third of the TTL, which is the interval of renewals.
 * A stall of two thirds of the TTL is an error: a lease can end before its late renewal.
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
