import { setImmediate } from "node:timers/promises";
import { NotConnectedError } from "../../src/clients/contract.ts";
import { CallCancellation } from "../../src/core/acquire/cancellation.ts";
import type { Emitter, LockEvents } from "../../src/core/events.ts";
import { Listeners } from "../../src/core/listeners.ts";
import { Owners } from "../../src/core/owners.ts";
import type { Clock, Instant, SteadyRuntime } from "../../src/core/ports.ts";
import { TimerScheduler } from "../../src/core/time/scheduler.ts";
import { steadyClock, steadyRuntime } from "../../src/core/time/instant.ts";
import type { AttemptOutcome, ExtendOutcome, Grant, OpenStore } from "../../src/core/store.ts";
import type { RedisStoreOptions } from "../../src/stores/redis/options.ts";
import type { NodeCall } from "../../src/stores/redis/commands/node-call.ts";
import { wireFormat } from "../../src/stores/redis/commands/keys.ts";
import { redlock } from "../../src/stores/redis/redlock.ts";
import { eventually } from "../support/redis-eventually.ts";
import type { RedisServer } from "../../tools/redis/redis-server.mjs";
import { type Backend, type HeldCommand, HeldLine, type Mutations } from "./held-line.ts";

export const resource = "invoice:42";
export const ttlMs = 60_000;

export interface StageOptions extends RedisStoreOptions {
  readonly mutations?: Mutations;
  /** Operations and scripts that wait for the test. @default acquire, touch and release */
  readonly held?: readonly string[];
}

export interface ActorOptions {
  /** First proposal of the client. @default 1, which every node has exceeded after one grant */
  readonly proposes?: number;
  /** Nodes that this client cannot reach. */
  readonly cutOff?: readonly number[];
}

/** The clock of one client. Only the test moves it. */
export class StillClock implements Clock {
  nowMs = 0;
  readonly timerSlackMs = 0;
  readonly #wallUs: number;
  readonly #timers = new Set<{ readonly dueMs: number; readonly callback: () => void }>();

  constructor(wallUs: number) {
    this.#wallUs = wallUs;
  }

  monotonicMs(): number {
    return this.nowMs;
  }

  wallMs(): number {
    return this.#wallUs / 1_000 + this.nowMs;
  }

  setTimer(delayMs: number, _keepAlive: boolean, callback: () => void): () => void {
    const timer = { dueMs: this.nowMs + delayMs, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /**
   * Moves the clock and runs the timers that are due. A test that sets `nowMs` itself runs none.
   */
  advance(ms: number): void {
    this.nowMs += ms;
    for (const timer of this.#timers) {
      if (timer.dueMs > this.nowMs) continue;
      this.#timers.delete(timer);
      timer.callback();
    }
  }
}

let bases = 0;

function runtimeOf(clock: Clock): SteadyRuntime {
  bases += 1;
  const base = `base${bases}`.padEnd(22, "-");
  return steadyRuntime({
    clock,
    random: { fraction: () => 0.5, uniqueBase: () => base },
    diagnostics: {
      hasSubscribers: () => false,
      publish: () => undefined,
      listenerFailed: (error) => {
        throw error;
      },
    },
  });
}

/** Lets all promises settle that can settle. */
export async function quiet(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await setImmediate();
}

/** One client: the real store, on connections that the test holds. Nodes are counted from 1. */
export class Actor {
  readonly clock: StillClock;
  readonly store: OpenStore;
  readonly events: Emitter;
  readonly lines: readonly HeldLine[];
  outcome: AttemptOutcome | undefined;
  begun = false;
  /** Moment at which the attempt began, by this client's clock. */
  started: Instant;
  extended: ExtendOutcome | undefined;
  readonly #owners: Owners;

  constructor(backends: readonly Backend[], options: StageOptions, actor: ActorOptions) {
    const { mutations = {}, held = ["acquire", "touch", "release"], ...storeOptions } = options;
    this.clock = new StillClock(actor.proposes ?? 1);
    this.started = steadyClock(this.clock).now();
    const cutOff = () => Promise.reject(new NotConnectedError("held", "cut off"));
    this.lines = backends.map((backend, index) => {
      const reaches = actor.cutOff?.includes(index + 1) !== true;
      return new HeldLine(reaches ? backend : cutOff, mutations, reaches ? held : []);
    });
    const runtime = runtimeOf(this.clock);
    this.#owners = new Owners(runtime.random);
    this.events = new Listeners<LockEvents>(runtime.diagnostics);
    this.store = redlock(this.lines, storeOptions).open({
      runtime,
      scheduler: new TimerScheduler(this.clock),
      events: this.events,
      reconsider: () => undefined,
      doubt: () => undefined,
    });
  }

  get grant(): Grant | undefined {
    return this.outcome?.kind === "granted" ? this.outcome.grant : undefined;
  }

  get fence(): bigint | undefined {
    return this.grant?.fence;
  }

  /** Starts an attempt. When this resolves, its acquires have been sent and are held. */
  async begins(owner: string = this.#owners.next(undefined)): Promise<void> {
    const started = steadyClock(this.clock).now();
    const cancellation = new CallCancellation();
    const request = { resources: [resource], owner, ttlMs, started, cancellation };
    this.started = started;
    this.begun = true;
    this.outcome = undefined;
    void this.store.attempt(request).then((outcome) => {
      this.outcome = outcome;
    });
    await quiet();
    await eventually(
      () => this.outcome !== undefined || this.lines.some(({ pending }) => pending.length > 0),
    );
    await quiet();
  }

  /** Breaks the connection before the client has received a reply: the outcome is unknown. */
  async getsNoReply(script: string, n: number): Promise<void> {
    (await this.#find(script, n)).fail(new Error("the connection was closed"));
    await quiet();
  }

  async extends(): Promise<void> {
    if (this.grant === undefined) throw new Error("nothing to extend");
    void this.store.extend(this.grant, ttlMs).then((outcome) => {
      this.extended = outcome;
    });
    await quiet();
  }

  /** Executes a held command on node `n`. The client does not receive the reply yet. */
  async executes(script: string, n: number): Promise<string> {
    const held = await this.#find(script, n);
    return String(await this.#line(n).execute(held));
  }

  /**
   * Gives the client the reply of an executed command: of the first execution, or of number
   * `which`.
   */
  async receives(script: string, n: number, which = 0): Promise<void> {
    const held = this.#pending(script, n).find(({ replies }) => replies.length > which);
    if (held === undefined) throw new Error(`node ${n} has executed no ${script}`);
    held.answer(held.replies[which]);
    await quiet();
  }

  /** Executes a command and gives the client its reply. Returns the reply. */
  async runs(script: string, n: number): Promise<string> {
    const reply = await this.executes(script, n);
    await this.receives(script, n);
    return reply;
  }

  /** The same for a step that is not sent if an earlier reply made it unnecessary. */
  async runsIfSent(script: string, n: number): Promise<string | undefined> {
    await quiet();
    if (this.#pending(script, n).length === 0) return undefined;
    return await this.runs(script, n);
  }

  async close(): Promise<void> {
    for (let left = true; left;) {
      for (const line of this.lines) await line.letGo();
      await quiet();
      left = this.lines.some(({ pending }) => pending.length > 0);
    }
    await this.store.close();
  }

  async #find(script: string, n: number): Promise<HeldCommand> {
    return await eventually(() => {
      const [held] = this.#pending(script, n);
      if (held === undefined) throw new Error(`no ${script} is under way to node ${n}`);
      return held;
    }, 5_000);
  }

  #pending(script: string, n: number): HeldCommand[] {
    return this.#line(n).pending.filter((held) => held.script === script);
  }

  #line(n: number): HeldLine {
    const line = this.lines[n - 1];
    if (line === undefined) throw new Error(`there is no node ${n}`);
    return line;
  }
}

/** Real servers, and clients whose every step the test makes. */
export class Stage {
  readonly #servers: readonly RedisServer[];
  readonly #options: StageOptions;
  readonly #actors: Actor[] = [];

  constructor(servers: readonly RedisServer[], options: StageOptions) {
    this.#servers = servers;
    this.#options = { maxTtl: ttlMs, nodeTimeout: ttlMs, ...options };
  }

  actor(actor: ActorOptions = {}, options: Partial<StageOptions> = {}): Actor {
    const backends = this.#servers.map(
      (server) => (command: readonly string[]) => server.command(...command),
    );
    const made = new Actor(backends, { ...this.#options, ...options }, actor);
    this.#actors.push(made);
    return made;
  }

  /** Empties the servers. With admission, each gets the record of an admitted node. */
  async clear(): Promise<void> {
    for (const server of this.#servers) {
      await server.command("FLUSHALL");
      if (this.#options.admission === "off") continue;
      const rid = /run_id:(\w+)/.exec(String(await server.command("INFO", "server")))?.[1] ?? "";
      const state = ["st", "A", "ever", "1", "mode", "bootstrap", "since", "0"];
      const format = ["fmt", wireFormat, "max", String(ttlMs)];
      await server.command("HSET", "holdfast:node", "rid", rid, ...state, ...format);
    }
  }

  server(n: number): RedisServer {
    const server = this.#servers[n - 1];
    if (server === undefined) throw new Error(`there is no node ${n}`);
    return server;
  }

  /** Deletes the key, as its TTL, a release or an operator would. */
  async expires(n: number): Promise<void> {
    await this.server(n).command("DEL", resource);
  }

  /** Deletes key and record, as a restart without persistence does. */
  async losesData(n: number): Promise<void> {
    await this.server(n).command("FLUSHALL");
  }

  /** Moves the start of a quarantine so far back that it is over. */
  async quarantinePasses(n: number): Promise<void> {
    await this.server(n).command("HSET", "holdfast:node", "since", "1");
  }

  /** Sends one call to one node, apart from all actors. */
  async send<Reply>(n: number, call: NodeCall<Reply>): Promise<Reply> {
    const backend: Backend = (command) => this.server(n).command(...command);
    const line = new HeldLine(backend, this.#options.mutations ?? {}, []);
    return call.read(await line.send(call.key, call.first(true)), false);
  }

  async close(): Promise<void> {
    for (const actor of this.#actors) await actor.close();
  }
}

/** Plays the schedule on the servers with these options and scripts. */
export async function play<Result>(
  servers: readonly RedisServer[],
  options: StageOptions,
  schedule: (stage: Stage) => Promise<Result>,
): Promise<Result> {
  const stage = new Stage(servers, options);
  await stage.clear();
  try {
    return await schedule(stage);
  } finally {
    await stage.close();
  }
}
