import { wireFormat } from "./keys.ts";

/**
 * Identifies the layout that a node belongs to, and the node's group in it. A layout is the set of
 * groups (independent quorums that share the resources) that all clients use. The format is stored
 * in the node record as `fmt`. Every script that grants, extends or proves compares it with what
 * the client sent, so that a node refuses each call of a client with another layout.
 *
 *   1:crc16:1024                             one quorum, without groups; counts as layout 1
 *   1:crc16:1024/groups:2:89abcdef01234567:a   open: group "a" of layout 2
 *   1:crc16:1024/claim:2:89abcdef01234567:a    closed for all clients, until layout 2 opens
 */
export interface LayoutFormat {
  readonly state: "groups" | "claim";
  readonly version: number;
  readonly digest: string;
  readonly group: string;
}

export function formatOf({ state, version, digest, group }: LayoutFormat): string {
  return `${wireFormat}/${state}:${version}:${digest}:${group}`;
}

/** Parses a format. Returns undefined for a node without groups, and for an unknown wire format. */
export function parseFormat(text: string): LayoutFormat | undefined {
  const rest = text.startsWith(`${wireFormat}/`) ? text.slice(wireFormat.length + 1) : "";
  const [state, version, digest, group] = rest.split(":");
  if (state !== "groups" && state !== "claim") return undefined;
  if (version === undefined || digest === undefined || group === undefined) return undefined;
  return { state, version: Number(version), digest, group };
}

/** Returns the message for a client that a node with format `text` refuses: reason and remedy. */
export function otherFormat(text: string): string {
  const format = parseFormat(text);
  if (format !== undefined) {
    return (
      `this node belongs to group "${format.group}" of layout ${format.version} ` +
      `(${format.digest}), and this client does not: give every client the same groups, ids, ` +
      "maxTtl and `layout`; to change the groups, give the new ones with a greater `layout`"
    );
  }
  if (text === wireFormat) {
    return (
      "this node serves locks on one quorum without groups, which counts as layout 1: to turn it " +
      "into a group, give `layout: 2` or more to redlockGroups"
    );
  }
  return (
    `this node's record has wire format ${text}: clients of different Holdfast versions must not ` +
    "share a node"
  );
}
