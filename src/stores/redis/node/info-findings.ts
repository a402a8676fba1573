import { megabytes, type NodeFinding } from "./node-finding.ts";
import type { ServerInfo } from "./server-info.ts";

/** Share of maxmemory above which a server without eviction will soon refuse writes. */
const fullShare = 0.95;

/**
 * Returns the findings that follow from INFO alone. Used on first contact, on reconnect, and by the
 * doctor.
 */
export function infoFindings(info: ServerInfo): readonly NodeFinding[] {
  return [versionFinding, loadingFinding, replicaFinding, memoryFinding].flatMap((rule) => {
    const finding = rule(info);
    return finding === undefined ? [] : [finding];
  });
}

function versionFinding({ version }: ServerInfo): NodeFinding | undefined {
  const major = Number.parseInt(version ?? "", 10);
  if (Number.isNaN(major) || major >= 7) return undefined;
  if (major < 6) {
    return {
      level: "error",
      code: "version-too-old",
      what: `the server's version is ${version}`,
      why: "the scripts use SET with KEEPTTL, which came with version 6",
      remedy: "upgrade to Redis 7 or Valkey",
    };
  }
  return {
    level: "info",
    code: "version-before-7",
    what: `the server's version is ${version}`,
    why:
      "servers before 7 may keep scripts across a restart: each call has to ask which process " +
      "it runs in, and costs more",
    remedy: "upgrade to Redis 7 or Valkey",
  };
}

function loadingFinding({ loading }: ServerInfo): NodeFinding | undefined {
  if (!loading) return undefined;
  return {
    level: "warning",
    code: "loading",
    what: "the server is still loading its data",
    why: "until that is done it answers LOADING, and does not vote",
    remedy: "wait; if it takes long each time, keep locks on a server of their own",
  };
}

function replicaFinding({ role, masterLinkUp }: ServerInfo): NodeFinding | undefined {
  if (role !== "replica") return undefined;
  return {
    level: "error",
    code: "replica",
    what: `the server is a replica (its link to the master is ${masterLinkUp ? "up" : "down"})`,
    why: "a replica refuses to write, and a writable one forgets what its master does not know",
    remedy: "connect to the master, or through Sentinel; for a quorum, use independent masters",
  };
}

function memoryFinding(info: ServerInfo): NodeFinding | undefined {
  const { evictionPolicy, memoryMax, memoryUsed } = info;
  if (evictionPolicy !== "noeviction") {
    // Locks have a TTL, so the volatile policies evict them like the allkeys policies do.
    const remedy = "CONFIG SET maxmemory-policy noeviction, or keep locks on a server of their own";
    const what = `maxmemory-policy is ${evictionPolicy}`;
    if (memoryMax === 0) {
      const why = "without maxmemory nothing is evicted; with it, locks would be, held or not";
      return { level: "info", code: "eviction-possible", what, why, remedy };
    }
    return {
      level: "warning",
      code: "eviction",
      what: `${what}, and maxmemory is ${megabytes(memoryMax)}`,
      why: "a full server may evict a lock while it is held, and grant it to another",
      remedy,
    };
  }
  if (memoryMax === 0 || memoryUsed < memoryMax * fullShare) return undefined;
  return {
    level: "warning",
    code: "memory-full",
    what: `${megabytes(memoryUsed)} of ${megabytes(memoryMax)} maxmemory are in use`,
    why: "a full server that does not evict answers OOM, and grants nothing",
    remedy: "raise maxmemory, or keep locks on a server of their own",
  };
}
