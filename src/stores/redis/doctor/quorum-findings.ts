import type { Finding } from "../../../core/report/doctor.ts";
import { quorumOf } from "../protocol/ballot.ts";
import type { Examination } from "./examination.ts";
import { median, type Case } from "./node-findings.ts";
import { aboutNode, duration } from "../node/node-finding.ts";
import { driftMs } from "../protocol/store-settings.ts";

/** Returns the findings about all nodes together. */
export function quorumFindings(
  about: Case,
  examinations: readonly Examination[],
  votingCount: number,
  clientOffsetMs: number,
): readonly Finding[] {
  return [
    ...sizeFindings(examinations, votingCount),
    ...twinFindings(examinations),
    ...hostFindings(examinations),
    ...clockFindings(about, examinations, clientOffsetMs),
    ...shortTtlFinding(about, examinations),
    ...clusterFinding(examinations),
  ];
}

function* sizeFindings(
  examinations: readonly Examination[],
  votingCount: number,
): Generator<Finding> {
  const count = examinations.length;
  const size = quorumOf(count);
  if (votingCount < size) {
    yield {
      level: "error",
      code: "no-quorum",
      what: `${votingCount} of ${count} nodes can vote; ${size} are needed`,
      why: "nothing can be locked now",
      remedy: "see to the findings about the nodes",
    };
  }
  if (count === 1) {
    yield {
      level: "info",
      code: "single-node",
      what: "there is one node",
      why: "while it is down nothing can be locked, and what it forgets is lost",
      remedy: "use three or five independent servers where that is not enough",
    };
  } else if (count % 2 === 0) {
    yield {
      level: "warning",
      code: "even-nodes",
      what: `there are ${count} nodes`,
      why:
        `a quorum of ${count} needs ${size}: it survives no more failures than ${count - 1} ` +
        "nodes would, and two rivals can split it evenly",
      remedy: "use an odd number of nodes",
    };
  }
}

function* twinFindings(examinations: readonly Examination[]): Generator<Finding> {
  for (const names of sharing(examinations, ({ info }) => info?.runId).values()) {
    yield {
      level: "error",
      code: "same-server",
      what: `${names.join(" and ")} are the same server`,
      why: "a server that votes twice makes a majority of a minority: locks are refused",
      remedy: "give each server once",
    };
  }
}

function* hostFindings(examinations: readonly Examination[]): Generator<Finding> {
  const runIds = sharing(examinations, ({ info }) => info?.runId);
  for (const [address, names] of sharing(examinations, (each) => each.address)) {
    // Skip nodes that were already reported as the same server.
    if ([...runIds.values()].some((same) => names.every((name) => same.includes(name)))) continue;
    yield {
      level: "warning",
      code: "same-host",
      what: `${names.join(" and ")} accept connections at the same address, ${address}`,
      why: "servers on one host fail together, and their clocks are one clock",
      remedy:
        "run each on a machine of its own; containers on different machines that happen to have " +
        "the same inner address are no reason to worry",
    };
  }
}

/** Returns the names of nodes with the same value, by value. Unknown values are skipped. */
function sharing(
  examinations: readonly Examination[],
  value: (examination: Examination) => string | undefined,
): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const examination of examinations) {
    const found = value(examination);
    if (found === undefined) continue;
    groups.set(found, [...(groups.get(found) ?? []), examination.node.name]);
  }
  for (const [found, names] of groups) if (names.length < 2) groups.delete(found);
  return groups;
}

/**
 * Reports clocks that are apart. Locks use differences of time, so an offset does no harm by
 * itself. But one day the clock is corrected, and that step ends locks early.
 */
function* clockFindings(
  { options, ttlMs }: Case,
  examinations: readonly Examination[],
  clientMs: number,
): Generator<Finding> {
  const allowedMs = driftMs(options, ttlMs);
  const seen = examinations.flatMap(({ node, clock }) =>
    clock === undefined ? [] : [{ name: node.name, ...clock }],
  );
  // One node is compared with this client, several with the median of all nodes and this client.
  const all = [...seen.map(({ offsetMs }) => offsetMs), clientMs];
  const middleMs = (seen.length === 1 ? clientMs : median(all)) ?? clientMs;
  const others = seen.length === 1 ? "the one of this client" : "most of the others";
  for (const { name, offsetMs, errorMs } of seen) {
    const apartMs = offsetMs - middleMs;
    if (Math.abs(apartMs) - errorMs <= allowedMs) continue;
    yield aboutNode(name, {
      level: "warning",
      code: "clock-offset",
      what: `its clock is ${apart(apartMs)} ${others}, give or take ${duration(errorMs)}`,
      why:
        `more than the ${duration(allowedMs)} allowed for drift: when it is set right at one ` +
        "stroke, locks end early or late there",
      remedy: "run NTP on every server, slewing instead of stepping",
    });
  }
  const errorMs = Math.max(0, ...seen.map((clock) => clock.errorMs));
  const apartMs = clientMs - middleMs;
  if (seen.length < 2 || Math.abs(apartMs) - errorMs <= allowedMs) return;
  yield {
    level: "warning",
    code: "client-clock-offset",
    what: `this client's clock is ${apart(apartMs)} most of the nodes'`,
    why: "fences are proposed by it, and rest on it alone when every node has lost its counters",
    remedy: "run NTP on this machine, slewing instead of stepping",
  };
}

function apart(ms: number): string {
  return `${duration(Math.abs(ms))} ${ms > 0 ? "ahead of" : "behind"}`;
}

/**
 * Reports a default TTL that is too short. An acquire takes one round trip to a quorum, sometimes
 * two, and must leave time for the work.
 */
function* shortTtlFinding(
  { ttlMs }: Case,
  examinations: readonly Examination[],
): Generator<Finding> {
  const trips = examinations.flatMap(({ roundTripsMs }) => median(roundTripsMs) ?? []);
  const size = quorumOf(examinations.length);
  const quorumMs = trips.toSorted((a, b) => a - b)[size - 1];
  if (quorumMs === undefined || quorumMs * 10 <= ttlMs) return;
  yield {
    level: "warning",
    code: "short-ttl",
    what: `a round trip to a quorum takes ${duration(quorumMs)}, and the ttl is ${ttlMs} ms`,
    why: "too much of each lease is over before it is granted, and renewals have little room",
    remedy: "use a ttl of at least ten round trips, or servers nearer by",
  };
}

function* clusterFinding(examinations: readonly Examination[]): Generator<Finding> {
  for (const { node } of examinations) {
    if (node.connection.topology !== "cluster") continue;
    yield aboutNode(node.name, {
      level: "info",
      code: "cluster-sampled",
      what: "of the Cluster, one server was examined",
      why: "what is said here need not hold for its other servers",
      remedy: "give each server a client of its own, and run the doctor for each",
    });
  }
}
