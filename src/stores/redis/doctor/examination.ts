import { NotConnectedError } from "../../../clients/contract.ts";
import type { Scheduler } from "../../../core/time/scheduler.ts";
import type { NodeReply } from "../node/node-reply.ts";
import type { RedisNode } from "../node/node.ts";
import { Rounds } from "../protocol/round.ts";
import { probeCall, type Probe } from "./probe.ts";
import {
  configValue,
  localAddress,
  readServerInfo,
  type ServerConfig,
  type ServerInfo,
} from "../node/server-info.ts";
import type { StoreSettings } from "../protocol/store-settings.ts";

/** Results of the examination of one node. */
export interface Examination {
  readonly node: RedisNode;
  /** Undefined if INFO was denied or has no reply: `infoFault` is the reason. */
  readonly info: ServerInfo | undefined;
  readonly infoFault: Error | undefined;
  readonly config: ServerConfig;
  /** Address of the server at which it accepted our connection. */
  readonly address: string | undefined;
  /** Commands that this user may not run and that only the examination uses. */
  readonly hidden: readonly string[];
  readonly probe: Probe | undefined;
  readonly probeFault: Error | undefined;
  /** Round trip of each probe except the first one. */
  readonly roundTripsMs: readonly number[];
  /** Server time minus our monotonic time, and the greatest error of this difference. */
  readonly clock: { readonly offsetMs: number; readonly errorMs: number } | undefined;
}

export interface ExaminationContext {
  readonly scheduler: Scheduler;
  readonly options: StoreSettings;
  /** Time limit for one reply, and for all calls of the probe script together. */
  readonly limitMs: number;
}

type Answer = { readonly reply: unknown } | { readonly error: Error };

const sampleCount = 5;
const dialPauseMs = 50;

/**
 * Sends a node all requests of the doctor. Settles within five times the limit, and never rejects.
 */
export async function examine(context: ExaminationContext, node: RedisNode): Promise<Examination> {
  const info = await sendWhenConnected(context, node, ["INFO"]);
  const nothing = { node, hidden: [], address: undefined, roundTripsMs: [], clock: undefined };
  if ("error" in info && !isReply(info.error)) {
    const config = { save: undefined, appendFsync: undefined };
    const faults = { infoFault: info.error, probeFault: info.error };
    return { ...nothing, ...faults, info: undefined, config, probe: undefined };
  }
  const [save, appendFsync, client] = await Promise.all([
    send(context, node, ["CONFIG", "GET", "save"]),
    send(context, node, ["CONFIG", "GET", "appendfsync"]),
    send(context, node, ["CLIENT", "INFO"]),
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

/** True if the error is a reply of the server. */
export function isReply(error: Error): boolean {
  return /^[A-Z]{2,} /.test(error.message) && !("syscall" in error);
}

function isDenied(answer: Answer): boolean {
  // Managed servers rename or remove commands instead of denying them.
  return "error" in answer && /^(NOPERM|ERR unknown)/.test(answer.error.message);
}

type Samples = Pick<Examination, "probe" | "probeFault" | "roundTripsMs" | "clock">;

/** Runs the probe several times and measures the round trips. */
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
    // The first call is not measured, because it may have had to send the text of the script.
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
    const call = probeCall(options, node.connection.topology === "cluster");
    const round = new Rounds([node], 1, scheduler).toAll(call, limitMs, {
      wanted: () => true,
      onReply(_, reply) {
        round.end();
        resolve(reply);
      },
    });
  });
}

/**
 * Sends a command, and retries while the client is not connected: the client may have been created
 * a moment ago.
 */
async function sendWhenConnected(
  context: ExaminationContext,
  node: RedisNode,
  command: readonly string[],
): Promise<Answer> {
  const { scheduler, limitMs } = context;
  const untilMs = scheduler.clock.monotonicMs() + limitMs;
  for (;;) {
    const answer = await send(context, node, command);
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

function send(
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
