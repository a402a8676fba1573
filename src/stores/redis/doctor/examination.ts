import { NotConnectedError } from "../../../clients/contract.ts";
import type { Scheduler } from "../../../core/scheduler.ts";
import type { NodeReply } from "../node-reply.ts";
import type { RedisNode } from "../node.ts";
import type { ResolvedStoreOptions } from "../options.ts";
import { Round } from "../quorum/round.ts";
import { probeCall, type Probe } from "./probe.ts";
import {
  configValue,
  localAddress,
  readServerInfo,
  type ServerConfig,
  type ServerInfo,
} from "./server-info.ts";

/** What was found out about one node. */
export interface Examination {
  readonly node: RedisNode;
  /** Undefined where INFO was denied or not answered: `infoFault` says which. */
  readonly info: ServerInfo | undefined;
  readonly infoFault: Error | undefined;
  readonly config: ServerConfig;
  /** The server's own address, as it sees our connection. */
  readonly address: string | undefined;
  /** What this user may not look at, though nothing depends on it but this examination. */
  readonly hidden: readonly string[];
  readonly probe: Probe | undefined;
  readonly probeFault: Error | undefined;
  /** One for each call, without the first. */
  readonly roundTripsMs: readonly number[];
  /** The server's clock less our monotonic one, and by how much that may be wrong. */
  readonly clock: { readonly offsetMs: number; readonly errorMs: number } | undefined;
}

export interface ExaminationContext {
  readonly scheduler: Scheduler;
  readonly options: ResolvedStoreOptions;
  /** How long to wait for one answer, and for all the samples. */
  readonly limitMs: number;
}

type Answer = { readonly reply: unknown } | { readonly error: Error };

const sampleCount = 5;
const dialPauseMs = 50;

/** Asks a node everything. Settles within five times the limit, and never rejects. */
export async function examine(context: ExaminationContext, node: RedisNode): Promise<Examination> {
  const info = await askWhenConnected(context, node, ["INFO"]);
  const nothing = { node, hidden: [], address: undefined, roundTripsMs: [], clock: undefined };
  if ("error" in info && !isReply(info.error)) {
    const config = { save: undefined, appendFsync: undefined };
    const faults = { infoFault: info.error, probeFault: info.error };
    return { ...nothing, ...faults, info: undefined, config, probe: undefined };
  }
  const [save, appendFsync, client] = await Promise.all([
    ask(context, node, ["CONFIG", "GET", "save"]),
    ask(context, node, ["CONFIG", "GET", "appendfsync"]),
    ask(context, node, ["CLIENT", "INFO"]),
  ]);
  const hidden = [
    ...(isDenied(save) || isDenied(appendFsync) ? ["CONFIG GET"] : []),
    ...(isDenied(client) ? ["CLIENT INFO"] : []),
  ];
  return {
    node,
    info: "reply" in info ? readServerInfo(info.reply) : undefined,
    infoFault: "error" in info ? info.error : undefined,
    config: {
      save: "reply" in save ? configValue(save.reply) : undefined,
      appendFsync: "reply" in appendFsync ? configValue(appendFsync.reply) : undefined,
    },
    address: "reply" in client ? localAddress(client.reply) : undefined,
    hidden,
    ...(await sample(context, node)),
  };
}

/** An answer of the server, though not the one that was hoped for. */
export function isReply(error: Error): boolean {
  return /^[A-Z]{2,} /.test(error.message) && !("syscall" in error);
}

function isDenied(answer: Answer): boolean {
  // Managed servers rename or remove a command rather than deny it.
  return "error" in answer && /^(NOPERM|ERR unknown)/.test(answer.error.message);
}

type Samples = Pick<Examination, "probe" | "probeFault" | "roundTripsMs" | "clock">;

/** The same call several times: what it finds out, and how long it takes. */
async function sample(context: ExaminationContext, node: RedisNode): Promise<Samples> {
  const { clock } = context.scheduler;
  const beganMs = clock.monotonicMs();
  const roundTripsMs: number[] = [];
  let best: Examination["clock"];
  let probe: Probe | undefined;
  for (let count = 0; count <= sampleCount; count += 1) {
    const sentMs = clock.monotonicMs();
    const answer = await probeOnce(context, node);
    const nowMs = clock.monotonicMs();
    if (answer.kind !== "reply") {
      return { probe, probeFault: answer.error, roundTripsMs, clock: best };
    }
    probe = answer.reply;
    // The first may have had to send the script itself.
    if (count > 0) roundTripsMs.push(nowMs - sentMs);
    const errorMs = (nowMs - sentMs) / 2;
    if (probe.serverMs !== undefined && (best === undefined || errorMs < best.errorMs)) {
      best = { offsetMs: probe.serverMs - (sentMs + nowMs) / 2, errorMs };
    }
    if (roundTripsMs.length > 0 && nowMs - beganMs > context.limitMs) break;
  }
  return { probe, probeFault: undefined, roundTripsMs, clock: best };
}

function probeOnce(context: ExaminationContext, node: RedisNode): Promise<NodeReply<Probe>> {
  const { scheduler, options, limitMs } = context;
  return new Promise((resolve) => {
    const round: Round<Probe> = new Round({
      nodes: [node],
      call: probeCall(options, node.connection.topology === "cluster"),
      scheduler,
      timeoutMs: limitMs,
      wanted: () => true,
      onReply(_, reply) {
        round.end();
        resolve(reply);
      },
    });
  });
}

/** A client that was only just made is given a moment to connect. */
async function askWhenConnected(
  context: ExaminationContext,
  node: RedisNode,
  command: readonly string[],
): Promise<Answer> {
  const { scheduler, limitMs } = context;
  const untilMs = scheduler.clock.monotonicMs() + limitMs;
  for (;;) {
    const answer = await ask(context, node, command);
    const nowMs = scheduler.clock.monotonicMs();
    if ("reply" in answer || nowMs >= untilMs || !isNotConnected(answer.error)) return answer;
    await new Promise<void>((resolve) => {
      scheduler.at(Math.min(untilMs, nowMs + dialPauseMs), true, resolve);
    });
  }
}

function isNotConnected(error: Error): boolean {
  return error instanceof NotConnectedError || error.name === "NotConnectedError";
}

function ask(
  { scheduler, limitMs }: ExaminationContext,
  node: RedisNode,
  command: readonly string[],
): Promise<Answer> {
  return new Promise((resolve) => {
    const timer = scheduler.at(scheduler.clock.monotonicMs() + limitMs, true, () =>
      resolve({ error: new Error(`no answer within ${Math.round(limitMs)} ms`) }),
    );
    const settle = (answer: Answer): void => {
      scheduler.cancel(timer);
      resolve(answer);
    };
    node.connection.send("", command).then(
      (reply) => settle({ reply }),
      (error: unknown) =>
        settle({ error: error instanceof Error ? error : new Error(String(error)) }),
    );
  });
}
