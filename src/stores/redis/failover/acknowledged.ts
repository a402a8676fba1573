import type { RedisConnection } from "../../../clients/contract.ts";
import type { ReplicationError } from "../../../core/errors.ts";
import type { Emitter } from "../../../core/events.ts";
import { tooFewAcks } from "../commands/replication-faults.ts";
import { confirmsWrite, needsReplicas, withoutConfirmations } from "../commands/replica-writes.ts";
import type { ReplicaSettings } from "../protocol/store-settings.ts";

/**
 * Returns the same connection, but a grant or an extension counts only if enough replicas have it.
 *
 * Sends WAIT directly after the write, in the same turn, so WAIT costs no extra round trip. The
 * reply to WAIT is the number of replicas that have all writes of its own connection. A client with
 * the member `line` sends the commands of one turn in their order on one connection, so the write
 * is among them.
 *
 * If that connection has changed when the reply arrives, the driver may have sent WAIT again alone,
 * on a connection without any write, and the reply to WAIT is void. For the same reason an acquire
 * without a reply is not repeated (`acquiresMax`): the repeat would find the key, and write
 * nothing.
 */
export function acknowledged(
  connection: RedisConnection,
  replicas: ReplicaSettings,
  onAcks: (fault: ReplicationError | undefined) => void,
): RedisConnection {
  const { acks, timeoutMs } = replicas;
  const wait = ["WAIT", String(acks), String(timeoutMs)];
  const send = async (key: string, command: readonly string[]): Promise<unknown> => {
    const line = connection.line?.();
    const written = connection.send(key, command);
    const waited = connection.send(key, wait);
    // A rejection of WAIT is handled below, unless the write failed first.
    waited.catch(() => undefined);
    const reply = await written;
    const got = Number(await waited);
    if (line === undefined || connection.line?.() !== line) {
      throw new Error("the connection changed while the replicas were waited for");
    }
    // The reply to a plain SET is nil if the key was free, otherwise the value of the key.
    const isBare = command[0] === "SET";
    const counts = isBare ? (reply ?? undefined) === undefined : confirmsWrite(reply);
    if (!counts) return reply;
    const fault = got >= acks ? undefined : tooFewAcks(got, acks, timeoutMs);
    onAcks(fault);
    if (fault === undefined) return reply;
    if (isBare) throw fault;
    return withoutConfirmations(reply, `X NOACKS ${got}/${acks}/${timeoutMs}`);
  };
  return {
    ...restOf(connection),
    send: (key, command) =>
      needsReplicas(command) ? send(key, command) : connection.send(key, command),
  };
}

/**
 * Returns all members of the connection except `send`. Each is copied by its name, because a spread
 * leaves out the methods of a class.
 */
function restOf(connection: RedisConnection): Omit<RedisConnection, "send"> {
  const { library, topology } = connection;
  const rest = {
    firstConnect: connection.firstConnect?.bind(connection),
    line: connection.line?.bind(connection),
    resendEpoch: connection.resendEpoch?.bind(connection),
    subscribe: connection.subscribe?.bind(connection),
  };
  const present = Object.entries(rest).filter(([, method]) => method !== undefined);
  return { library, topology, ...(Object.fromEntries(present) as Partial<RedisConnection>) };
}

/** Returns a function that emits a warning when too few replicas confirm: once per outage. */
export function acksWarning(
  node: string,
  acks: number,
  events: Emitter,
): (fault: ReplicationError | undefined) => void {
  let short = false;
  return (fault) => {
    if (fault !== undefined && !short) {
      events.emit("warning", {
        level: "error",
        code: "acks-missing",
        node,
        what: fault.message,
        why: `with replicas.acks ${acks} nothing is granted or extended until so many confirm`,
        remedy: "see that the replicas are connected and keep up, or raise replicas.timeout",
      });
    }
    short = fault !== undefined;
  };
}
