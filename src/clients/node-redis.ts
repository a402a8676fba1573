import { addressOf } from "./address.ts";
import type { NotConnectedError, RedisConnection } from "./contract.ts";
import { firstConnectOf } from "./first-connect.ts";
import { withKeyPrefix } from "./key-prefix.ts";
import { lastErrorOf, notConnectedTo } from "./last-error.ts";
import { commandOptionsOf, type DisconnectEmitter } from "./node-redis-options.ts";
import { openNodeRedisSubscriber, type NodeRedisDuplicator } from "./node-redis-subscriber.ts";
import { neverSubscribed, Subscriptions } from "./subscriptions.ts";

/** The common part of all clients of node-redis 5 and 6 that is used here. */
interface NodeRedisBase extends DisconnectEmitter, Partial<NodeRedisDuplicator> {
  readonly isReady: boolean;
  readonly isOpen: boolean;
  /** The `keyPrefix` option in node-redis 6, which the library does not apply to raw commands. */
  readonly _keyPrefix?: string | Buffer | undefined;
  readonly options?: object;
}

/** Client of one server, from `createClient()`. */
export interface NodeRedisClient extends NodeRedisBase {
  sendCommand(args: readonly string[], options: object): Promise<unknown>;
}

/** Client of the master that Sentinel names, from `createSentinel()`. */
export interface NodeRedisSentinel extends NodeRedisBase {
  sendCommand(isReadonly: boolean, args: readonly string[], options: object): Promise<unknown>;
  readonly commandOptions?: object;
  /**
   * Internal method that `sendCommand` calls. It calls `run` with the master's client, and once
   * more if the connection broke meanwhile. The library does not document it.
   */
  _execute?(isReadonly: boolean, run: (master: MasterClient) => Promise<unknown>): Promise<unknown>;
}

type MasterClient = Pick<NodeRedisClient, "sendCommand">;

export const library = "node-redis";

/**
 * Returns the connection for one server. The library never repeats a command. It rejects a command
 * in flight on a broken connection.
 */
export function nodeRedisConnection(client: NodeRedisClient): RedisConnection {
  const options = commandOptionsOf(client, "reconnecting");
  return {
    ...connection(client, (command) => client.sendCommand(command, options())),
    // The options object stands for the connection: each connection has a new one. The library has
    // one queue and one socket, and rejects the commands that were in flight when the socket broke.
    line: options,
  };
}

const stringReplies = Object.freeze({ typeMapping: undefined });

/**
 * Returns the connection for a Sentinel client. A command that meets a failover is sent again to
 * the new master, so it may run late. The user's timeout (5 s in node-redis 6) stays in force,
 * because nothing else ends a command that waits for a master.
 */
export function nodeRedisSentinelConnection(client: NodeRedisSentinel): RedisConnection {
  if (typeof client._execute !== "function") {
    const send = (command: readonly string[]): Promise<unknown> =>
      client.sendCommand(false, command, stringReplies);
    // Without `_execute` a repeated command cannot be detected, so every reply counts as the reply
    // to a repeated command.
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
  lastErrorOf(client);
  const sender: RedisConnection = {
    library,
    topology: "standalone",
    address: addressOf(client.options),
    send(key, command) {
      if (!client.isReady) return refuse(client, client.isOpen);
      return send(prefix === "" ? command : withKeyPrefix(prefix, key, command));
    },
  };
  // The Sentinel client of node-redis 5 has no `duplicate`, and emits no event when it is ready.
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
      return neverSubscribed(listener, notConnected(client, client.isOpen));
    },
  };
}

function canDuplicate(client: NodeRedisBase): client is NodeRedisBase & NodeRedisDuplicator {
  return client.duplicate !== undefined;
}

export function refuse(client: object, isOpen: boolean): Promise<never> {
  return Promise.reject(notConnected(client, isOpen));
}

export function notConnected(client: object, isOpen: boolean): NotConnectedError {
  return notConnectedTo(client, library, isOpen ? "connecting" : "closed");
}
