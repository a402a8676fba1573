import { onTestFinished } from "vitest";
import type { RedisConnection } from "../../src/clients/contract.ts";
import { connectionOf } from "../../src/clients/recognise.ts";
import type { ClientKind, OpenClient } from "./client-kinds.ts";

/** What a test needs of a connection that can subscribe and close. */
export type FullConnection = Required<RedisConnection>;

/** The adapter of a client; both are closed when the test is over. */
export function adapt(opened: OpenClient): FullConnection {
  const connection = connectionOf(opened.client);
  if (connection === undefined) throw new Error("the client was not recognised");
  onTestFinished(async () => {
    await connection.close?.();
    await opened.close();
  });
  return connection as FullConnection;
}

export async function openConnection(
  kind: ClientKind,
  port: number,
  options?: object,
): Promise<FullConnection> {
  return adapt(await kind.open(port, options));
}
