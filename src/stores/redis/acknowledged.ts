import type { RedisConnection } from "../../clients/contract.ts";
import type { ReplicationError } from "../../core/errors.ts";
import { tooFewAcks } from "./replication-faults.ts";
import type { ResolvedReplicas } from "./replicas-option.ts";
import * as scripts from "./scripts/generated.ts";

/** Scripts that only look or give back: nothing is lost if no replica ever hears of them. */
const unheeded = new Set(
  [scripts.release, scripts.inspect, scripts.probe, scripts.nodeRecord].flatMap((script) => [
    script.sha,
    script.source,
  ]),
);

/** Where a script has the new life of a key, counted from its first argument. */
const ttlPlaces = new Map([
  [scripts.touch.sha, 5],
  [scripts.touch.source, 5],
  [scripts.plainTouch.sha, 1],
  [scripts.plainTouch.source, 1],
]);

/**
 * The same connection, on which a grant or an extension counts only once so many replicas have it.
 *
 * WAIT is sent in the same turn, so it costs no round trip of its own. It counts the replicas that
 * have all that its own connection wrote; commands of one turn leave by one connection in their
 * order (`line`), so the write is among that. Where the line is another one when the answer comes,
 * a driver may have sent WAIT again alone, on a connection that never wrote: its answer is void.
 * For the same reason a lost answer is not asked for again (see `attempt`): the repeat would find
 * the key, and write nothing.
 */
export function acknowledged(
  connection: RedisConnection,
  replicas: ResolvedReplicas,
  onAcks: (fault: ReplicationError | undefined) => void,
): RedisConnection {
  const { acks, timeoutMs } = replicas;
  const wait = ["WAIT", String(acks), String(timeoutMs)];
  const send = async (key: string, command: readonly string[]): Promise<unknown> => {
    const line = connection.line?.();
    const written = connection.send(key, command);
    const waited = connection.send(key, wait);
    // Handled below, where the write itself did not fail first.
    waited.catch(() => undefined);
    const reply = await written;
    const got = Number(await waited);
    if (line === undefined || connection.line?.() !== line) {
      throw new Error("the connection changed while the replicas were waited for");
    }
    // A plain SET that found nothing replies with nil, and with the value that it found otherwise.
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

/** Everything but `send`. Named one by one: a spread leaves out the methods of a class. */
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

/** Whatever is not known to be harmless is waited for. */
export function mustReplicate(command: readonly string[]): boolean {
  const [name = "", script = "", count = "0"] = command;
  if (name === "SET") return true;
  if (name !== "EVALSHA" && name !== "EVAL") return false;
  const place = ttlPlaces.get(script);
  // Without a new life it is only a question.
  if (place !== undefined) return command[3 + Number(count) + place] !== "0";
  return !unheeded.has(script);
}

/** Whether a script tells of a grant or an extension. */
function isConfirming(reply: unknown): boolean {
  if (Array.isArray(reply)) return reply.some(isConfirming);
  return typeof reply === "string" && /^[GK]( \d|$)|^V .*K/.test(reply);
}

/** The same reply, with a refusal in the place of every yes. */
function refused(reply: unknown, refusal: string): unknown {
  if (!Array.isArray(reply)) return refusal;
  return reply.map((each: unknown) => (isConfirming(each) ? refusal : each));
}
