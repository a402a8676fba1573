import { ReplicationError } from "../../../core/errors.ts";
import type { NodeFinding } from "./node-finding.ts";

/** Error of Redis 7 for a denied command inside a script. */
const deniedInScript = /^ERR The user executing the script can't/;

/**
 * Returns the finding for an error reply. Undefined if the error does not point to a lasting fault
 * of the set-up.
 */
export function faultFinding(cause: unknown): NodeFinding | undefined {
  if (!(cause instanceof Error)) return undefined;
  // The cause of a ReplicationError is the error reply of the server.
  if (cause instanceof ReplicationError) return faultFinding(cause.cause);
  const { message } = cause;
  const code = /^[A-Z]+/.exec(message)?.[0];
  if (code === "NOPERM" || deniedInScript.test(message)) {
    // Cuts off the position in the script, which does not help a user.
    return missingPermissions(undefined, message.replace(/ script: \w+, on @.*/, ""));
  }
  switch (code) {
    case "NOAUTH":
    case "WRONGPASS":
      return {
        level: "error",
        code: "unauthenticated",
        what: `the server does not know this client: ${message}`,
        why: "without credentials nothing can be locked there",
        remedy: "give the client its username and password",
      };
    case "READONLY":
      return {
        level: "error",
        code: "replica",
        what: "the server is a replica, and refuses to write",
        why: "a replica cannot grant a lock",
        remedy: "connect to the master, or through Sentinel; for a quorum, use independent masters",
      };
    case "LOADING":
      return {
        level: "warning",
        code: "loading",
        what: "the server is still loading its data",
        why: "until that is done it does not vote",
        remedy: "wait; if it takes long each time, keep locks on a server of their own",
      };
    case "NOREPLICAS":
    case "MISCONF":
    case "OOM":
      return writesRefused(message);
    default:
      return undefined;
  }
}

/** Returns the finding for a master that refuses writes. */
export function writesRefused(message: string): NodeFinding {
  const code = /^[A-Z]+/.exec(message)?.[0] ?? "";
  const remedies: Readonly<Record<string, string>> = {
    NOREPLICAS: "bring its replicas back, or set min-replicas-to-write to 0",
    MISCONF: "see to its disk: the last snapshot failed (stop-writes-on-bgsave-error)",
    OOM: "raise maxmemory, or keep locks on a server of their own",
  };
  return {
    level: "error",
    code: "writes-refused",
    what: `the server refuses to write: ${message}`,
    why: "it cannot grant, extend or give back a lock",
    remedy: remedies[code] ?? "see to what the server says",
  };
}

/**
 * Returns the finding for denied commands. Shows the server's `message` if `names` is undefined.
 */
export function missingPermissions(
  names: readonly string[] | undefined,
  message = "",
): NodeFinding {
  const allow = names?.map((name) => `+${name.toLowerCase().replace(" ", "|")}`).join(" ");
  return {
    level: "error",
    code: "permission-missing",
    what:
      names === undefined
        ? `this user may not run all that is needed: ${message}`
        : `this user may not run ${names.join(", ")}`,
    why: "some of what a lock needs would be refused on this node",
    remedy:
      allow === undefined
        ? 'allow what docs/operate/operations.md lists under "The least rights"'
        : `ACL SETUSER <user> ${allow}; also look at the key patterns it is given`,
  };
}

/** Returns the finding for denied commands, or for the `cause` with which SUBSCRIBE failed. */
export function noWakeUps(names: readonly string[], cause?: unknown): NodeFinding {
  const level = "warning";
  const code = "no-wake-ups";
  const why =
    "waiters are not notified of a release: they try every retry.maxDelay, and get locks later";
  const message = cause instanceof Error ? cause.message : String(cause);
  if (cause !== undefined && !message.startsWith("NOPERM")) {
    return {
      level,
      code,
      what: `cannot subscribe to channels that begin with holdfast: (${message})`,
      why,
      remedy: `each client needs a second connection, for ${names.join(", ")}: see what stops it`,
    };
  }
  const allow = names.map((name) => `+${name.toLowerCase()}`).join(" ");
  return {
    level,
    code,
    what: `this user may not run ${names.join(", ")} on channels that begin with holdfast:`,
    why,
    remedy: `ACL SETUSER <user> ${allow} &holdfast:*`,
  };
}
