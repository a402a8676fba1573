import { NotConnectedError, type RedisConnection } from "../clients/contract.ts";
import type { Clock } from "../core/ports.ts";

/** A fault of one command. */
export type NodeFault =
  /** The command reaches the server only after `ms`. */
  | { readonly kind: "delay-request"; readonly ms: number }
  /** The command runs at once. Its reply arrives `ms` later. */
  | { readonly kind: "delay-reply"; readonly ms: number }
  /** The command never runs, and the call never settles. */
  | { readonly kind: "lose-request" }
  /** The command runs, but its reply never arrives. */
  | { readonly kind: "lose-reply" }
  /** The command runs at once. Its reply waits for `letGo()`. */
  | { readonly kind: "hold-reply" }
  /** The command waits for `letGo()`, and only then reaches the server. */
  | { readonly kind: "hold-request" }
  /** The server refuses with this text, such as `LOADING …`; the command does not run. */
  | { readonly kind: "error"; readonly message: string }
  /** The connection breaks after the command ran. The caller cannot know that it ran. */
  | { readonly kind: "break" }
  /** The client is not connected and rejects at once: the command is certainly not sent. */
  | { readonly kind: "disconnect" }
  /** The command runs twice, as after a resend by the client. The caller gets the second reply. */
  | { readonly kind: "duplicate" };

export interface SentCommand {
  readonly key: string;
  readonly command: readonly string[];
  /** Kind of the fault that was applied. Undefined if the command had no fault. */
  readonly fault: NodeFault["kind"] | undefined;
}

export interface FaultScope {
  /** True if a command gets the fault. @default all, also the `INFO` that a store begins with */
  readonly when?: (command: readonly string[], key: string) => boolean;
  /** Number of commands that get the fault. @default no end */
  readonly times?: number;
}

interface Injected {
  readonly fault: NodeFault;
  readonly when: (command: readonly string[], key: string) => boolean;
  left: number;
}

/** Limit for the commands in `sent`. At the limit, the oldest command is dropped. */
const recordedMax = 100_000;

/**
 * A connection with faults that a test injects. Pass it instead of a client: `redis(node)`,
 * `redlock([node, …])`. A command without a fault is sent on unchanged.
 */
export class FaultyNode implements RedisConnection {
  readonly library: string;
  readonly topology: RedisConnection["topology"];
  readonly firstConnect?: NonNullable<RedisConnection["firstConnect"]>;
  readonly subscribe?: NonNullable<RedisConnection["subscribe"]>;
  readonly #connection: RedisConnection;
  readonly #clock: Clock;
  readonly #faults = new Set<Injected>();
  readonly #sent: SentCommand[] = [];
  #epoch: object = {};
  #epochBehind: unknown;
  #held: (() => void)[] = [];

  constructor(connection: RedisConnection, clock: Clock) {
    this.#connection = connection;
    this.#clock = clock;
    this.library = connection.library;
    this.topology = connection.topology;
    if (connection.firstConnect !== undefined) {
      this.firstConnect = connection.firstConnect.bind(connection);
    }
    if (connection.subscribe !== undefined) {
      this.subscribe = connection.subscribe.bind(connection);
    }
  }

  /** Returns the commands since the start or the last `forget()`, in the order of sending. */
  get sent(): readonly SentCommand[] {
    return this.#sent;
  }

  /** Returns the number of commands and replies that wait for `letGo()`. */
  get heldCount(): number {
    return this.#held.length;
  }

  /** Applies `fault` to commands in `scope` from now on. Returns a function that ends it. */
  inject(fault: NodeFault, scope: FaultScope = {}): () => void {
    const { when = () => true, times = Infinity } = scope;
    const injected: Injected = { fault, when, left: times };
    this.#faults.add(injected);
    return () => {
      this.#faults.delete(injected);
    };
  }

  /** Ends every fault and lets held commands and replies go on. Lost ones stay lost. */
  heal(): void {
    this.#faults.clear();
    this.letGo();
  }

  /** Lets the oldest `count` held commands and replies go on. Without `count`, all of them. */
  letGo(count: number = this.#held.length): void {
    for (const go of this.#held.splice(0, count)) go();
  }

  /** Empties `sent`. */
  forget(): void {
    this.#sent.length = 0;
  }

  send(key: string, command: readonly string[]): Promise<unknown> {
    const fault = this.#faultFor(key, command);
    if (this.#sent.length >= recordedMax) this.#sent.shift();
    this.#sent.push({ key, command, fault: fault?.kind });
    return fault === undefined ? this.#pass(key, command) : this.#spoil(fault, key, command);
  }

  /**
   * Returns another object after each duplicated command, and after the resend epoch of the wrapped
   * connection has changed.
   */
  resendEpoch(): object {
    const connection = this.#connection;
    const behind = connection.resendEpoch?.() ?? connection.line?.();
    if (behind !== this.#epochBehind) this.#epoch = {};
    this.#epochBehind = behind;
    return this.#epoch;
  }

  /** Returns the oldest fault that matches the command. */
  #faultFor(key: string, command: readonly string[]): NodeFault | undefined {
    for (const injected of this.#faults) {
      if (injected.left <= 0 || !injected.when(command, key)) continue;
      injected.left -= 1;
      if (injected.left === 0) this.#faults.delete(injected);
      return injected.fault;
    }
    return undefined;
  }

  async #spoil(fault: NodeFault, key: string, command: readonly string[]): Promise<unknown> {
    switch (fault.kind) {
      case "delay-request":
        await this.#delay(fault.ms);
        return await this.#pass(key, command);
      case "delay-reply":
        return await this.#after(this.#pass(key, command), () => this.#delay(fault.ms));
      case "lose-request":
        return await never();
      case "lose-reply":
        return await this.#after(this.#pass(key, command), never);
      case "hold-request":
        await this.#hold();
        return await this.#pass(key, command);
      case "hold-reply":
        return await this.#after(this.#pass(key, command), () => this.#hold());
      case "error":
        throw new Error(fault.message);
      case "break":
        await settled(this.#pass(key, command));
        throw new Error("the connection was closed while a command was under way");
      case "disconnect":
        throw new NotConnectedError(this.library, "cut off by a fault");
      case "duplicate":
        await settled(this.#pass(key, command));
        this.#epoch = {};
        return await this.#pass(key, command);
      default:
        return fault satisfies never;
    }
  }

  #pass(key: string, command: readonly string[]): Promise<unknown> {
    return this.#connection.send(key, command);
  }

  /** Waits for the reply, then for `wait()`. Then returns the reply, or throws an error reply. */
  async #after(reply: Promise<unknown>, wait: () => Promise<unknown>): Promise<unknown> {
    await settled(reply);
    await wait();
    return await reply;
  }

  #delay(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.setTimer(ms, true, resolve);
    });
  }

  #hold(): Promise<void> {
    return new Promise((resolve) => {
      this.#held.push(resolve);
    });
  }
}

/** Wraps a connection, for example the adapter of a client. Delays use `clock`. */
export function faultyNode(connection: RedisConnection, clock: Clock): FaultyNode {
  return new FaultyNode(connection, clock);
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}

function settled(reply: Promise<unknown>): Promise<void> {
  return reply.then(
    () => undefined,
    () => undefined,
  );
}
