import type { NodeStatus } from "../../../core/store.ts";
import type { Examination } from "./examination.ts";
import {
  faultFinding,
  missingPermissions,
  noWakeUps,
  writesRefused,
} from "../node/fault-findings.ts";
import { infoFindings } from "../node/info-findings.ts";
import { clientIsOff, offClientSeen } from "../node/mixed-admission.ts";
import { persistenceFinding } from "./persistence-finding.ts";
import { duration, type NodeFinding } from "../node/node-finding.ts";
import { nodeTimeoutMs, type StoreSettings } from "../protocol/store-settings.ts";

export interface Case {
  readonly options: StoreSettings;
  /** Default TTL of leases. */
  readonly ttlMs: number;
}

/** Returns the findings about one node by itself. */
export function nodeFindings(
  about: Case,
  examination: Examination,
  status: NodeStatus | undefined,
): readonly NodeFinding[] {
  const { info, infoFault } = examination;
  const contact = contactFinding(examination);
  // If the server cannot be reached, no other finding is possible.
  if (contact !== undefined) return [contact];
  const findings: (NodeFinding | undefined)[] = [
    ...(info === undefined ? [infoDenied(about, infoFault)] : infoFindings(info)),
    info === undefined || info.role === "replica"
      ? undefined
      : persistenceFinding(about.options, info, examination.config),
    acksFinding(about, examination) ?? replicasFinding(about, examination),
    ...probeFindings(about, examination),
    ...recordFindings(about, examination, status),
    slowFinding(about, examination),
    hiddenFinding(examination),
  ];
  return findings.filter((each) => each !== undefined);
}

/** True if the node can vote, as far as the examination shows. */
export function canVote(examination: Examination, status: NodeStatus | undefined): boolean {
  const { probe } = examination;
  const admission = status?.admission ?? "off";
  return (
    probe !== undefined &&
    probe.writeRefusal === undefined &&
    (probe.denied ?? []).length === 0 &&
    (admission === "admitted" || admission === "off")
  );
}

function contactFinding({ infoFault, probeFault, info }: Examination): NodeFinding | undefined {
  if (info !== undefined || infoFault === undefined) return undefined;
  const finding = faultFinding(infoFault);
  if (finding?.code === "unauthenticated") return finding;
  if (infoFault !== probeFault) return undefined;
  return {
    level: "error",
    code: "unreachable",
    what: `no answer: ${infoFault.message}`,
    why: "a node that does not answer does not vote",
    remedy: "see that the server runs, and that this machine can reach it",
  };
}

function infoDenied({ options }: Case, fault: Error | undefined): NodeFinding | undefined {
  if (fault === undefined) return undefined;
  const strict = options.admission === "strict";
  return {
    level: strict ? "error" : "warning",
    code: "info-denied",
    what: `this user may not run INFO: ${fault.message}`,
    why: strict
      ? "without it a restart goes unnoticed, so the node refuses to vote"
      : "the same server given twice, its version, its role and its restarts are unknown",
    remedy: "ACL SETUSER <user> +info",
  };
}

function acksFinding({ options }: Case, { info }: Examination): NodeFinding | undefined {
  const acks = options.replicas?.acks ?? 0;
  if (info?.role !== "master" || info.replicaCount >= acks) return undefined;
  return {
    level: "error",
    code: "acks-missing",
    what: `replicas.acks is ${acks}, and ${info.replicaCount} replica(s) are connected`,
    why: "so many can never confirm: nothing is granted or extended",
    remedy: "connect the replicas, or set replicas.acks to what there is",
  };
}

function replicasFinding({ options }: Case, { info }: Examination): NodeFinding | undefined {
  if (info?.role !== "master" || info.replicaCount === 0) return undefined;
  const strict = options.admission === "strict";
  return {
    level: "info",
    code: "replicas",
    what: `the server has ${info.replicaCount} connected replica(s)`,
    why: strict
      ? "a replica promoted in its place may not vote until its quarantine is over"
      : options.replicas === undefined
        ? "a replica promoted in its place may not know a lock that was granted a moment before"
        : "of its replicas, one that did not confirm a lock may be promoted and not know it",
    remedy: strict
      ? "nothing, unless you counted on a failover to be quick"
      : options.replicas === undefined
        ? "guard writes by fence, set replicas.acks, or use independent servers instead"
        : "guard writes by fence; with acks for every replica none can be promoted without it",
  };
}

function* probeFindings(_: Case, examination: Examination): Generator<NodeFinding> {
  const { probe, probeFault, info } = examination;
  if (probe === undefined) {
    const finding = faultFinding(probeFault);
    const known = info?.loading === true || info?.role === "replica";
    if (finding !== undefined && !known) yield finding;
    else if (probeFault !== undefined && !known) {
      yield {
        level: "error",
        code: "probe-failed",
        what: `a harmless script failed: ${probeFault.message}`,
        why: "locks are scripts: they are likely to fail there as well",
        remedy: "see to what the server says",
      };
    }
    return;
  }
  const { denied = [], wakeUpsDenied, writeRefusal } = probe;
  if (denied.length > 0) yield missingPermissions(denied);
  if (wakeUpsDenied.length > 0) yield noWakeUps(wakeUpsDenied);
  if (writeRefusal !== undefined && info?.role !== "replica") {
    yield faultFinding(new Error(writeRefusal)) ?? writesRefused(writeRefusal);
  }
}

function* recordFindings(
  { options }: Case,
  { probe }: Examination,
  status: NodeStatus | undefined,
): Generator<NodeFinding> {
  if (probe === undefined || !options.fencing) return;
  const { format, ttlMaxMs, mode, everAdmitted } = probe.record;
  if (format !== undefined && format !== options.wireFormat) {
    yield {
      level: "error",
      code: "wire-format",
      what: `its record has wire format ${format}, this client ${options.wireFormat}`,
      why: "the node refuses: clients that count fences differently must not share it",
      remedy: "use one version of Holdfast for all clients of these nodes",
    };
  }
  if (options.admission !== "strict") {
    if (probe.record.state !== undefined) yield clientIsOff;
    return;
  }
  const { serverMs = 0 } = probe;
  const mixed = offClientSeen(serverMs - (probe.record.offSeenMs ?? -Infinity));
  if (mixed !== undefined) yield mixed;
  if (ttlMaxMs !== undefined && ttlMaxMs !== options.ttlMaxMs) {
    yield {
      level: "warning",
      code: "max-ttl-mismatch",
      what: `its record says maxTtl ${ttlMaxMs} ms, this client's option ${options.ttlMaxMs} ms`,
      why: "the node refuses TTLs above its own; a quarantine lasts as long as the greater one",
      remedy: "give every client the same maxTtl, and set the field max of holdfast:node to it",
    };
  }
  if (status?.admission === "quarantined") yield quarantineFinding(status, everAdmitted);
  else if (status?.admission === "admitted" && mode === "clock") {
    yield {
      level: "info",
      code: "admitted-by-clock",
      what: "it was last admitted without a copy of the counters",
      why: "too few other nodes were left to copy from: fences from before it rest on clocks",
      remedy: "find out why so many nodes lost their data at once; keep appendonly on",
    };
  }
}

function quarantineFinding(
  { quarantineRemainingMs }: NodeStatus,
  everAdmitted: boolean,
): NodeFinding {
  const left =
    quarantineRemainingMs === undefined
      ? "its end is not known yet"
      : `for about ${Math.ceil(quarantineRemainingMs / 1_000)} s`;
  return {
    level: "warning",
    code: everAdmitted ? "node-quarantined" : "node-blank",
    what: `it may not vote, ${left}`,
    why: everAdmitted
      ? "it restarted, or another server took its place: it may have forgotten held locks"
      : "it has no record of its own: a first start, or its data is gone",
    remedy: "wait: it is admitted by itself. It needs the other nodes to answer",
  };
}

function slowFinding(
  { options, ttlMs }: Case,
  { roundTripsMs }: Examination,
): NodeFinding | undefined {
  const usualMs = median(roundTripsMs);
  const limitMs = nodeTimeoutMs(options, ttlMs);
  if (usualMs === undefined || usualMs * 2 <= limitMs) return undefined;
  const late = usualMs > limitMs;
  return {
    level: late ? "error" : "warning",
    code: "slow-node",
    what: `a round trip takes ${duration(usualMs)}, and nodeTimeout is ${duration(limitMs)}`,
    why: late
      ? "its answers come too late: it has no vote"
      : "a little more load, and its answers come too late to count",
    remedy: "raise nodeTimeout and ttl, move the client nearer, or find what slows the server",
  };
}

/** Returns the median, so that one slow call does not count. */
export function median(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)];
}

function hiddenFinding({ hidden }: Examination): NodeFinding | undefined {
  if (hidden.length === 0) return undefined;
  return {
    level: "info",
    code: "not-visible",
    what: `this user may not run ${hidden.join(", ")}`,
    why: "locks do not need it; only how it is persisted, or where it runs, could not be read",
    remedy: "nothing; for a full examination use a user that may",
  };
}
