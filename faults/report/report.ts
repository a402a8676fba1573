import type { Findings } from "../check/summary.ts";
import type { History } from "../history.ts";
import type { Options } from "../options.ts";
import { markdownOf } from "./markdown.ts";
import { plotOf } from "./plot.ts";

export interface Finished {
  readonly options: Options;
  readonly version: string;
  readonly code?: string;
  readonly clockSteps: boolean;
  readonly history: History;
  readonly findings: Findings;
}

/** The report of a run: a page, its figures, and a picture. */
export interface Report {
  readonly name: string;
  readonly text: string;
  readonly json: string;
  readonly svg: string;
}

export function reportOf(finished: Finished): Report {
  const { options, version, code, clockSteps, findings } = finished;
  const { lock, seed, seconds, nodes, clients, ttlMs, waitMs, connections } = options;
  const { workers, resources, kinds, offsets } = options;
  const name = options.name ?? `faults-${lock}-${seed}`;
  const figures = {
    version,
    ...(code === undefined ? {} : { code }),
    options: {
      lock,
      seed,
      seconds,
      nodes,
      clients,
      workers,
      resources,
      ttlMs,
      waitMs,
      kinds,
      offsets,
      connections,
      clockSteps,
    },
    summary: findings.summary,
    updates: findings.updates,
    waits: findings.waits,
    failures: findings.failures,
  };
  return {
    name,
    text: markdownOf(finished, name),
    json: `${JSON.stringify(figures, null, 2)}\n`,
    svg: plotOf(finished),
  };
}
