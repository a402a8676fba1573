import type { Finding } from "../../../core/report/doctor.ts";

/** A finding that does not yet name its node. */
export type NodeFinding = Omit<Finding, "node">;

export function aboutNode(node: string, finding: NodeFinding): Finding {
  const { level, code, what, why, remedy } = finding;
  return { level, code, node, what, why, remedy };
}

const megabyte = 1_048_576;

export function megabytes(bytes: number): string {
  return `${(bytes / megabyte).toFixed(bytes < 10 * megabyte ? 1 : 0)} MB`;
}

/** Formats a duration for people, with about two significant digits. */
export function duration(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  return ms < 10_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 1_000)} s`;
}
