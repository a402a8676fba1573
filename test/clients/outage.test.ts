import { setImmediate } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { NotConnectedError } from "../../src/clients/contract.ts";
import { eventually } from "../support/redis-eventually.ts";
import { type RedisServer, startRedis } from "../../tools/redis/redis-server.mjs";
import { allKinds, ioredisKinds, nodeRedisKinds } from "./client-kinds.ts";
import { adapt, openConnection, subscribed } from "./open-connection.ts";

async function startOwn(): Promise<RedisServer> {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  return server;
}

describe.each(allKinds)("$name", (kind) => {
  test("rejects while the server is down, recovers afterwards, and sends no command late", async () => {
    const server = await startOwn();
    const connection = await openConnection(kind, server.port);
    await connection.send("k", ["SET", "k", "before"]);
    await server.kill();
    // Until the client has detected the outage, an error of its own is fine as well.
    await eventually(async () => {
      const error = await connection.send("k", ["PING"]).catch((e: unknown) => e);
      return kind.showsState ? error instanceof NotConnectedError : error instanceof Error;
    });
    const attempts = Array.from({ length: 5 }, (_, index) =>
      connection.send(`late${index}`, ["SET", `late${index}`, "x"]),
    );
    for (const attempt of await Promise.allSettled(attempts)) {
      expect(attempt.status).toBe("rejected");
      if (attempt.status === "rejected" && kind.showsState) {
        expect(attempt.reason).toBeInstanceOf(NotConnectedError);
      }
    }
    await server.restart();
    await eventually(() => connection.send("k", ["SET", "k", "after"]));
    expect(await server.command("KEYS", "*")).toEqual(["k"]);
  });

  test("rejects after its client was closed", async () => {
    const server = await startOwn();
    const opened = await kind.open(server.port);
    const connection = adapt(opened);
    await opened.close();
    await expect(connection.send("k", ["SET", "k", "x"])).rejects.toThrow(NotConnectedError);
    await expect(subscribed(connection, "c")).rejects.toThrow(NotConnectedError);
    expect(await server.command("EXISTS", "k")).toBe(0);
  });
});

describe.each(allKinds.filter((kind) => kind.openIdle !== undefined))("idle $name", (kind) => {
  test("rejects before its client is connected, and never sends that command", async () => {
    const server = await startOwn();
    const opened = kind.openIdle?.(server.port);
    if (opened === undefined) return;
    const connection = adapt(opened);
    await expect(connection.send("k", ["SET", "early", "x"])).rejects.toThrow(NotConnectedError);
    // A lazy ioredis client was woken by that command, so it may be connecting already.
    await opened.connect().catch(() => undefined);
    await eventually(() => connection.send("k", ["SET", "k", "x"]));
    expect(await server.command("KEYS", "*")).toEqual(["k"]);
  });
});

describe.each(ioredisKinds)("$name", (kind) => {
  test("wakes a lazy client with the command that it refuses", async () => {
    const server = await startOwn();
    const opened = kind.openIdle?.(server.port);
    if (opened === undefined) return;
    const connection = adapt(opened);
    await expect(connection.send("k", ["PING"])).rejects.toThrow("is not connected (wait)");
    expect(await eventually(() => connection.send("k", ["PING"]))).toBe("PONG");
  });

  test("wakes a lazy client of a dead server without an unhandled rejection", async () => {
    const server = await startOwn();
    await server.kill();
    const opened = kind.openIdle?.(server.port);
    if (opened === undefined) return;
    const connection = adapt(opened);
    await expect(connection.send("k", ["PING"])).rejects.toThrow(NotConnectedError);
    await server.restart();
    expect(await eventually(() => connection.send("k", ["PING"]))).toBe("PONG");
  });

  test("does not enter the offline queue if the socket ends before the client's status changes", async () => {
    const server = await startOwn();
    const opened = await kind.open(server.port);
    const connection = adapt(opened);
    const client = opened.client as unknown as { status: string; stream: { end(): void } };
    client.stream.end();
    expect(client.status).toBe("ready");
    await expect(connection.send("k", ["SET", "late", "x"])).rejects.toThrow(NotConnectedError);
    await eventually(() => connection.send("k", ["SET", "k", "x"]));
    expect(await server.command("KEYS", "*")).toEqual(["k"]);
  });

  test("runs a command in flight after the reconnect, as ioredis resends it", async () => {
    const server = await startOwn();
    const connection = await openConnection(kind, server.port);
    server.pause();
    const inFlight = connection.send("k", ["SET", "k", "resent"]);
    await server.restart();
    expect(await inFlight).toBe("OK");
    expect(await server.command("GET", "k")).toBe("resent");
  });
});

describe.each(nodeRedisKinds)("$name", (kind) => {
  test("rejects a command in flight when the connection breaks, and never sends it again", async () => {
    const server = await startOwn();
    const connection = await openConnection(kind, server.port);
    server.pause();
    const inFlight = connection.send("k", ["SET", "k", "x"]);
    const outcome = inFlight.then(
      () => "resolved",
      () => "rejected",
    );
    // Waits until the command is written, and no longer queued in the library.
    await new Promise((resolve) => setTimeout(resolve, 50));
    await server.restart();
    expect(await outcome).toBe("rejected");
    await eventually(() => connection.send("k", ["PING"]));
    expect(await server.command("EXISTS", "k")).toBe(0);
  });

  test("rejects a command not yet written when the connection breaks, and never sends it", async () => {
    const server = await startOwn();
    const opened = await kind.open(server.port);
    const connection = adapt(opened);
    const client = opened.client as unknown as { readonly isReady: boolean };
    const outcomes: Promise<unknown>[] = [];
    const killed = server.kill();
    // The library writes a command one turn of the event loop after accepting it. With a command in
    // every turn, the last one is accepted but not written when the connection breaks.
    while (client.isReady) {
      const sent = connection.send("late", ["SET", "late", "x"]);
      outcomes.push(sent.catch((error: unknown) => error));
      await setImmediate();
    }
    await killed;
    const last = (await Promise.all(outcomes)).at(-1);
    expect(last).toBeInstanceOf(Error);
    await server.restart();
    await eventually(() => connection.send("k", ["PING"]));
    expect(await server.command("EXISTS", "late")).toBe(0);
  });
});
