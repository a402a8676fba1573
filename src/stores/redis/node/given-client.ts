import type { RedisConnection } from "../../../clients/contract.ts";
import { connectionOf } from "../../../clients/recognise.ts";
import { InvalidOptionError } from "../../../core/errors.ts";

/**
 * Returns the connection of a user's client. Throws an error with the option's name if `client` is
 * not a supported client.
 */
export function connectionAt(option: string, client: unknown): RedisConnection {
  const connection = connectionOf(client);
  if (connection !== undefined) return connection;
  throw new InvalidOptionError(
    option,
    "a client of ioredis, iovalkey, node-redis or @valkey/valkey-glide",
    client,
  );
}
