import { NotConnectedError, type RedisConnection } from "./contract.ts";
import { firstConnectOf } from "./first-connect.ts";
import { withKeyPrefix } from "./key-prefix.ts";
import { commandOptionsOf, type DisconnectEmitter } from "./node-redis-options.ts";
import { openNodeRedisSubscriber, type NodeRedisDuplicator } from "./node-redis-subscriber.ts";
import { neverSubscribed, Subscriptions } from "./subscriptions.ts";

/** What all clients of node-redis 5 and 6 have in common. */
interface NodeRedisBase extends DisconnectEmitter, Partial<NodeRedisDuplicator> {
  readonly isReady: boolean;
  readonly isOpen: boolean;
  /** Node-redis 6 keeps its `keyPrefix` option here, and applies it to no raw command. */
  readonly _keyPrefix?: string | Buffer | undefined;
}

/** One server: `createClient()`. */
export interface NodeRedisClient extends NodeRedisBase {
  sendCommand(args: readonly string[], options: object): Promise<unknown>;
}

/** The master that Sentinel names: `createSentinel()`. */
export interface NodeRedisSentinel extends NodeRedisBase {
  sendCommand(isReadonly: boolean, args: readonly string[], options: object): Promise<unknown>;
  readonly commandOptions?: object;
  /**
   * What `sendCommand` goes through: calls `run` with the client of the master, and once more where
   * the connection broke meanwhile. Not part of the documented interface.
   */
  _execute?(isReadonly: boolean, run: (master: MasterClient) => Promise<unknown>): Promise<unknown>;
}

type MasterClient = Pick<NodeRedisClient, "sendCommand">;

export const library = "node-redis";

/** A command that was under way when the connection broke is rejected and not sent again. */
export function nodeRedisConnection(client: NodeRedisClient): RedisConnection {
  const options = commandOptionsOf(client, "reconnecting");
  return {
    ...connection(client, (command) => client.sendCommand(command, options())),
    // One queue, one socket; and what was under way when that broke is rejected.
    line: options,
  };
}

const stringReplies = Object.freeze({ typeMapping: undefined });

/**
 * A command that meets a failover is sent again to the new master, so it may run late. The user's
 * timeout (five seconds in node-redis 6) stays: nothing else ends a command that waits for one.
 */
export function nodeRedisSentinelConnection(client: NodeRedisSentinel): RedisConnection {
  if (typeof client._execute !== "function") {
    const send = (command: readonly string[]): Promise<unknown> =>
      client.sendCommand(false, command, stringReplies);
    // Nothing shows which commands ran twice: any of them may have.
    return { ...connection(client, send), resendEpoch: () => ({}) };
  }
  let resends = 0;
  const send = async (command: readonly string[]): Promise<unknown> => {
    let isFirst = true;
    return await client._execute?.(false, (master) => {
      if (!isFirst) resends += 1;
      isFirst = false;
      return master.sendCommand(command, { ...client.commandOptions, ...stringReplies });
    });
  };
  return { ...connection(client, send), resendEpoch: () => resends };
}

function connection(
  client: NodeRedisBase,
  send: (command: readonly string[]) => Promise<unknown>,
): RedisConnection {
  const prefix = String(client._keyPrefix ?? "");
  const sender: RedisConnection = {
    library,
    topology: "standalone",
    send(key, command) {
      if (!client.isReady) return refuse(client.isOpen);
      return send(prefix === "" ? command : withKeyPrefix(prefix, key, command));
    },
  };
  // Not so the Sentinel client of node-redis 5, which emits nothing when it is ready, either.
  if (!canDuplicate(client)) return sender;
  const subscriptions = new Subscriptions((events) =>
    openNodeRedisSubscriber(client, "shared", events),
  );
  return {
    ...sender,
    firstConnect: firstConnectOf(client, {
      library,
      readyEvent: "ready",
      failedEvents: ["reconnecting", "terminated", "end"],
      state() {
        if (client.isReady) return "over";
        return client.isOpen ? "connecting" : "idle";
      },
    }),
    subscribe(channel, listener) {
      if (client.isReady) return subscriptions.subscribe(channel, listener);
      return neverSubscribed(listener, notConnected(client.isOpen));
    },
  };
}

function canDuplicate(client: NodeRedisBase): client is NodeRedisBase & NodeRedisDuplicator {
  return client.duplicate !== undefined;
}

export function refuse(isOpen: boolean): Promise<never> {
  return Promise.reject(notConnected(isOpen));
}

export function notConnected(isOpen: boolean): NotConnectedError {
  return new NotConnectedError(library, isOpen ? "connecting" : "closed");
}
