import { ReplicationError } from "../../../core/errors.ts";
import type { Told } from "./told.ts";

/** How Redis 7 says that a command inside a script is denied. */
const deniedInScript = /^ERR The user executing the script can't/;

/**
 * What an error reply tells about the set-up, and what to do. Undefined where it tells nothing
 * that would still be so a moment later.
 */
export function faultFinding(cause: unknown): Told | undefined {
  if (!(cause instanceof Error)) return undefined;
  // What the server said itself; what it means for a lock was put around it.
  if (cause instanceof ReplicationError) return faultFinding(cause.cause);
  const { message } = cause;
  const code = /^[A-Z]+/.exec(message)?.[0];
  if (code === "NOPERM" || deniedInScript.test(message)) {
    // Without the place in the script, which only its author could read.
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

/** The server is a master, and yet takes no writes. */
export function writesRefused(message: string): Told {
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

/** Either the names of commands, or what the server said. */
export function missingPermissions(names: readonly string[] | undefined, message = ""): Told {
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

/** What may not be run, or, with `cause`, what SUBSCRIBE failed with. */
export function noWakeUps(names: readonly string[], cause?: unknown): Told {
  const level = "warning";
  const code = "no-wake-ups";
  const why =
    "waiters are not notified of a release: they ask every retry.maxDelay, and get locks later";
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
