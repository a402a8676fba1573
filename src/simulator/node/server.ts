import { DriftingClock } from "../drifting-clock.ts";
import { Keyspace, ReplyError, type Snapshot } from "./keyspace.ts";
import { scriptsBySha, scriptsBySource, type KnownScript } from "./scripts.ts";

export interface ServerPlan {
  readonly version: string;
  /** Rate of the server's clock relative to the world's time: 1.001 gains 1 ms per second. */
  readonly rate: number;
  readonly skewMs: number;
  readonly uptimeMs: number;
}

export interface ServerPorts {
  /** Returns the world's time. */
  readonly realMs: () => number;
  readonly newRunId: () => string;
  /** Delivers a message to subscribers and returns their number. Undefined: no subscribers. */
  readonly publish?: (channel: string, message: string) => number;
  /** Returns the number of subscribers of a channel. Undefined: no subscribers. */
  readonly listeners?: (channel: string) => number;
}

/** Time that a wall clock without skew shows when a simulation begins. */
export const epochMs = 1_800_000_000_000;

/** Model of a Redis server: the commands and scripts that Holdfast uses, expiry, restarts. */
export class SimulatedServer {
  readonly clock: DriftingClock;
  readonly data: Keyspace;
  readonly #plan: ServerPlan;
  readonly #ports: ServerPorts;
  #cache = new Set<string>();
  #runId: string;
  /** Start of the server process by its own wall clock, in whole seconds as in Redis. */
  #startedSeconds: number;

  constructor(plan: ServerPlan, ports: ServerPorts) {
    this.#plan = plan;
    this.#ports = ports;
    this.clock = new DriftingClock(epochMs + plan.skewMs, plan.rate);
    this.data = new Keyspace(() => Math.floor(this.clock.at(ports.realMs())));
    this.#runId = ports.newRunId();
    this.#startedSeconds = this.#seconds(ports.realMs() - plan.uptimeMs);
  }

  get runId(): string {
    return this.#runId;
  }

  /**
   * Starts a new server process with the data in `kept`. Before version 7, snapshots of Redis also
   * contain the cached scripts.
   */
  restart(kept: Snapshot | undefined): void {
    this.#runId = this.#ports.newRunId();
    this.#startedSeconds = this.#seconds(this.#ports.realMs());
    if (kept === undefined || this.#major >= 7) this.#cache = new Set();
    if (kept === undefined) this.data.clear();
    else this.data.load(kept);
  }

  /** Runs one command and returns its reply, or throws a ReplyError. */
  execute(command: readonly string[]): unknown {
    const [name = "", ...args] = command;
    switch (name.toUpperCase()) {
      case "EVALSHA":
        return this.#evalsha(args);
      case "EVAL":
        return this.#eval(args);
      case "SCRIPT":
        return this.#script(args);
      case "INFO":
        return this.#info();
      case "SET":
        return this.#set(args);
      case "FLUSHALL":
        this.data.clear();
        return "OK";
      case "PING":
        return "PONG";
      default:
        return this.#simple(name.toUpperCase(), args);
    }
  }

  get #major(): number {
    return Number.parseInt(this.#plan.version, 10);
  }

  #simple(name: string, args: readonly string[]): unknown {
    const [key = "", second = "", ...rest] = args;
    switch (name) {
      case "GET":
        return this.data.get(key) ?? null;
      case "DEL":
        return args.reduce((deleted, each) => deleted + this.data.delete(each), 0);
      case "EXISTS":
        return args.filter((each) => this.data.pttl(each) !== -2).length;
      case "PTTL":
        return this.data.pttl(key);
      case "PEXPIRE":
        return this.data.pexpire(key, wholeNumber(second));
      case "HGET":
        return this.data.hash(key)?.get(second) ?? null;
      case "HSET":
        return this.data.hset(key, [second, ...rest]);
      case "ZADD":
        return this.#zadd(key, args.slice(1));
      case "HGETALL":
        return [...(this.data.hash(key) ?? [])].flat();
      default:
        throw new ReplyError(`ERR unknown command '${name}'`);
    }
  }

  /** Adds members. `pairs` is: score, member, score, member, and so on. */
  #zadd(key: string, pairs: readonly string[]): number {
    const before = this.data.sortedSet(key)?.size ?? 0;
    for (let index = 0; index + 1 < pairs.length; index += 2) {
      this.data.zadd(key, pairs[index + 1] ?? "", Number(pairs[index]));
    }
    return (this.data.sortedSet(key)?.size ?? 0) - before;
  }

  #set(args: readonly string[]): unknown {
    const [key = "", value = "", ...options] = args;
    let onlyNew = false;
    let wantsOld = false;
    let ttlMs: number | "keep" | undefined;
    for (let index = 0; index < options.length; index += 1) {
      const option = options[index]?.toUpperCase();
      if (option === "NX") onlyNew = true;
      else if (option === "GET") wantsOld = true;
      else if (option === "KEEPTTL") ttlMs = "keep";
      else if (option === "PX") {
        index += 1;
        ttlMs = wholeNumber(options[index]);
        if (ttlMs <= 0) throw new ReplyError("ERR invalid expire time in 'set' command");
      } else throw new ReplyError("ERR syntax error");
    }
    if (onlyNew && wantsOld && this.#major < 7) throw new ReplyError("ERR syntax error");
    // The read comes first: with GET, a value of another type is an error and SET writes nothing.
    const old = wantsOld ? (this.data.get(key) ?? null) : null;
    const refused = onlyNew && this.data.pttl(key) !== -2;
    if (!refused) this.data.set(key, value, ttlMs);
    if (wantsOld) return old;
    return refused ? null : "OK";
  }

  #evalsha(args: readonly string[]): unknown {
    const [sha = "", ...rest] = args;
    const script = this.#cache.has(sha) ? scriptsBySha.get(sha) : undefined;
    if (script === undefined) {
      throw new ReplyError("NOSCRIPT No matching script. Please use EVAL.");
    }
    return this.#run(script, rest);
  }

  #eval(args: readonly string[]): unknown {
    const [source = "", ...rest] = args;
    const script = scriptsBySource.get(source);
    if (script === undefined) throw new ReplyError("ERR this script has no simulated twin");
    this.#cache.add(script.sha);
    return this.#run(script, rest);
  }

  #run(script: KnownScript, args: readonly string[]): unknown {
    const keyCount = wholeNumber(args[0]);
    const realMs = this.#ports.realMs();
    const micros = Math.floor(this.clock.at(realMs) * 1_000);
    return script.body({
      data: this.data,
      keys: args.slice(1, 1 + keyCount),
      args: args.slice(1 + keyCount),
      time: { seconds: Math.floor(micros / 1_000_000), micros: micros % 1_000_000 },
      runId: this.#runId,
      uptimeSeconds: this.#uptimeSeconds(realMs),
      publish: this.#ports.publish ?? (() => 0),
      listeners: this.#ports.listeners ?? (() => 0),
    });
  }

  #script(args: readonly string[]): unknown {
    if (args[0]?.toUpperCase() === "FLUSH") {
      this.#cache = new Set();
      return "OK";
    }
    if (args[0]?.toUpperCase() === "EXISTS") {
      return args.slice(1).map((sha) => (this.#cache.has(sha) ? 1 : 0));
    }
    throw new ReplyError("ERR unknown subcommand");
  }

  #info(): string {
    const uptime = this.#uptimeSeconds(this.#ports.realMs());
    const lines = ["# Server", `redis_version:${this.#plan.version}`, `run_id:${this.#runId}`];
    return [...lines, `uptime_in_seconds:${uptime}`, ""].join("\r\n");
  }

  /**
   * Returns the uptime as the difference of two readings in whole seconds. It can be up to one
   * second too long.
   */
  #uptimeSeconds(realMs: number): number {
    return this.#seconds(realMs) - this.#startedSeconds;
  }

  #seconds(realMs: number): number {
    return Math.floor(this.clock.at(realMs) / 1_000);
  }
}

function wholeNumber(text: string | undefined): number {
  const value = Number(text);
  if (text !== undefined && text !== "" && Number.isSafeInteger(value)) return value;
  throw new ReplyError("ERR value is not an integer or out of range");
}
