import { onTestFinished } from "vitest";
import type { RedisConnection } from "../../src/clients/contract.ts";
import { connectionOf } from "../../src/clients/recognise.ts";
import type { ClientKind, OpenClient } from "./client-kinds.ts";

/** A connection with all optional methods. */
export type FullConnection = Required<RedisConnection>;

/** Returns the adapter of a client, which is closed when the test is over. */
export function adapt(opened: OpenClient): FullConnection {
  const connection = connectionOf(opened.client);
  if (connection === undefined) throw new Error("the client was not recognised");
  onTestFinished(async () => {
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

/**
 * Subscribes, and resolves to a function that unsubscribes, once the server has confirmed. Rejects
 * if the subscription is lost before, and calls `onLost` if it is lost later. Ended after the
 * test.
 */
export function subscribed(
  connection: FullConnection,
  channel: string,
  onMessage: (message: string) => unknown = () => undefined,
  onLost: (cause: unknown) => void = () => undefined,
): Promise<() => Promise<void>> {
  return new Promise((resolve, reject) => {
    const end = connection.subscribe(channel, {
      onReady: () => resolve(end),
      onMessage,
      onLost(cause) {
        reject(cause instanceof Error ? cause : new Error(String(cause)));
        onLost(cause);
      },
    });
    onTestFinished(end);
  });
}
