import type { RedisConnection } from "../../../clients/contract.ts";
import type { ReplicationError } from "../../../core/errors.ts";
import type { Emitter } from "../../../core/events.ts";
import { tooFewAcks } from "../commands/replication-faults.ts";
import * as scripts from "../scripts/generated.ts";
import type { ReplicaSettings } from "../protocol/store-settings.ts";

/** Scripts that only read or release: nothing is lost if no replica gets their writes. */
const unheeded = new Set(
  [scripts.release, scripts.inspect, scripts.probe, scripts.nodeRecord].flatMap((script) => [
    script.sha,
    script.source,
  ]),
);

/** Index of the TTL among the arguments of a script. */
const ttlPlaces = new Map([
  [scripts.touch.sha, 5],
  [scripts.touch.source, 5],
  [scripts.plainTouch.sha, 1],
  [scripts.plainTouch.source, 1],
]);

/**
 * Returns the same connection, but a grant or an extension counts only if enough replicas have it.
 *
 * WAIT is sent in the same turn, so it costs no round trip. It counts the replicas that have all
 * writes of its own connection. Commands of one turn leave by one connection in their order
 * (`line`), so the write is among them.
 *
 * If the connection is another one when the reply arrives, a driver may have sent WAIT again alone,
 * on a connection that never wrote: its reply is void. For the same reason an acquire without a
 * reply is not repeated (`acquiresMax`): the repeat would find the key, and write nothing.
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
    // Handled below, unless the write itself failed first.
    waited.catch(() => undefined);
    const reply = await written;
    const got = Number(await waited);
    if (line === undefined || connection.line?.() !== line) {
      throw new Error("the connection changed while the replicas were waited for");
    }
    // A plain SET that found no key replies with nil, otherwise with the value of the key.
    const isBare = command[0] === "SET";
    const counts = isBare ? (reply ?? undefined) === undefined : isConfirming(reply);
    if (!counts) return reply;
    const fault = got >= acks ? undefined : tooFewAcks(got, acks, timeoutMs);
    onAcks(fault);
    if (fault === undefined) return reply;
    if (isBare) throw fault;
    return refused(reply, `X NOACKS ${got}/${acks}/${timeoutMs}`);
  };
  return {
    ...restOf(connection),
    send: (key, command) =>
      mustReplicate(command) ? send(key, command) : connection.send(key, command),
  };
}

/** Returns everything but `send`. Copied one by one: a spread leaves out the methods of a class. */
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

/** True unless the command is known to need no replicas. */
export function mustReplicate(command: readonly string[]): boolean {
  const [name = "", script = "", count = "0"] = command;
  if (name === "SET") return true;
  if (name !== "EVALSHA" && name !== "EVAL") return false;
  const place = ttlPlaces.get(script);
  // Without a TTL it only proves the grant.
  if (place !== undefined) return command[3 + Number(count) + place] !== "0";
  return !unheeded.has(script);
}

/** True if a reply confirms a grant or an extension. */
function isConfirming(reply: unknown): boolean {
  if (Array.isArray(reply)) return reply.some(isConfirming);
  return typeof reply === "string" && /^[GK]( \d|$)|^V .*K/.test(reply);
}

/** Returns the same reply, with the refusal in place of every confirmation. */
function refused(reply: unknown, refusal: string): unknown {
  if (!Array.isArray(reply)) return refusal;
  return reply.map((each: unknown) => (isConfirming(each) ? refusal : each));
}

/** Emits a warning when replicas begin to confirm too little: once per outage. */
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
