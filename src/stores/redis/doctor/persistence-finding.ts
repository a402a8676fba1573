import type { ServerConfig, ServerInfo } from "../node/server-info.ts";
import type { NodeFinding } from "../node/node-finding.ts";
import type { StoreSettings } from "../protocol/store-settings.ts";

/**
 * Returns the finding about what a restart would lose. With admission, a restarted node waits until
 * every lease it may have forgotten is over. Without admission, the data on disk is the only
 * protection.
 */
export function persistenceFinding(
  options: StoreSettings,
  info: ServerInfo,
  config: ServerConfig,
): NodeFinding | undefined {
  const snapshots = config.save !== undefined && config.save !== "";
  if (options.admission === "strict") return snapshots ? undefined : strictFinding(info);
  const remedy =
    'appendonly yes with appendfsync always, or admission: "strict"; and guard writes by fence';
  if (info.appendOnly) {
    const { appendFsync } = config;
    if (appendFsync === undefined || appendFsync === "always") return undefined;
    return {
      level: "info",
      code: "persistence-lagging",
      what: `appendfsync is ${appendFsync}`,
      why: "a crash forgets the locks of the last second or more, and grants them to others",
      remedy,
    };
  }
  if (snapshots) {
    return {
      level: "warning",
      code: "persistence-snapshots",
      what: `the server keeps snapshots only (save ${config.save})`,
      why: "a restart forgets the locks granted since the last one, and grants them to others",
      remedy,
    };
  }
  return {
    level: "warning",
    code: "persistence-off",
    what: config.save === undefined ? "appendonly is off" : "the server keeps nothing on disk",
    why: "a restart forgets every lock, held or not, and grants it to others",
    remedy,
  };
}

function strictFinding(info: ServerInfo): NodeFinding | undefined {
  if (info.appendOnly) return undefined;
  return {
    level: "info",
    code: "persistence-off",
    what: "appendonly is off",
    why:
      "one restart costs a quarantine; if a majority restarts at once, the counters are gone and " +
      "fences rest on clocks",
    remedy: "appendonly yes",
  };
}
