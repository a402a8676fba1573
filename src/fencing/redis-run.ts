import { type RedisConnection, NotConnectedError } from "../clients/contract.ts";
import { connectionOf } from "../clients/recognise.ts";
import { InvalidOptionError, StoreError } from "../core/errors.ts";
import type { Script } from "./redis-scripts.ts";

export function redisConnection(client: unknown): RedisConnection {
  const connection = connectionOf(client);
  if (connection !== undefined) return connection;
  throw new InvalidOptionError(
    "client",
    "an ioredis, node-redis, GLIDE or iovalkey client",
    client,
  );
}

/**
 * Runs a script by its hash, or by its source if the server does not have it yet. Waits for a
 * client that connects for the first time. Rejects with a StoreError whose message states if the
 * script may have run; its `cause` is the error of the client.
 */
export async function runScript(
  connection: RedisConnection,
  { source, sha }: Script,
  key: string,
  args: readonly string[],
): Promise<unknown> {
  try {
    await connection.firstConnect?.();
    return await connection.send(key, ["EVALSHA", sha, "1", key, ...args]);
  } catch (error) {
    // NOSCRIPT means that the script did not run, so sending it again cannot run it twice.
    if (!messageOf(error).includes("NOSCRIPT")) throw explained(key, error);
  }
  try {
    return await connection.send(key, ["EVAL", source, "1", key, ...args]);
  } catch (error) {
    throw explained(key, error);
  }
}

/** Returns the time of the server that has the key, in ms since 1970. */
export async function redisMs(connection: RedisConnection, key: string): Promise<number> {
  try {
    await connection.firstConnect?.();
    const [seconds, micros] = (await connection.send(key, ["TIME"])) as readonly unknown[];
    return Number(seconds) * 1_000 + Number(micros) / 1_000;
  } catch (error) {
    throw explained(key, error);
  }
}

function explained(key: string, cause: unknown): StoreError {
  const message = messageOf(cause);
  const name = JSON.stringify(key.slice(0, 200));
  if (cause instanceof NotConnectedError) {
    return new StoreError(`the guard of ${name} did not run: ${message}`, { cause });
  }
  // The server's error replies start with a code in capital letters.
  if (/^[A-Z]{3,} /.test(message)) {
    const text = `the server refused the guard of ${name}, and nothing was written: ${message}`;
    return new StoreError(text, { cause });
  }
  return new StoreError(
    `the guard of ${name} had no reply and may have run (${message}): call again, because the ` +
      "same fence is accepted again",
    { cause },
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
