import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { RedisClient } from "../../src/clients/redis-client.ts";
import { createLocks } from "../../src/index.ts";
import { redis } from "../../src/stores/redis/index.ts";
import { eventually } from "../support/redis-eventually.ts";
import { watchLeaks } from "../support/leaks.ts";
import { freePort } from "../../tools/network/free-port.mjs";
import { type RedisServer, startRedis } from "../../tools/redis/redis-server.mjs";
import { required } from "../support/requirements.ts";
import { projectRoot } from "../support/source-files.ts";
import { codesOf } from "./findings.ts";

/** A server with TLS only, for a user with a password and the least rights. */

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "holdfast-tls-"));
const page = readFileSync(join(projectRoot, "docs", "operate", "operations.md"), "utf8");
const rules = /^ACL SETUSER locks (.+\+hset.*)$/m.exec(page)?.[1]?.split(" ") ?? [];
let server: RedisServer | undefined;
let tlsPort = 0;
let whyNot = "";

beforeAll(async () => {
  const key = join(folder, "key.pem");
  const certificate = join(folder, "certificate.pem");
  try {
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
    const made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const files = ["-keyout", key, "-out", certificate, "-days", "2"];
    await run("openssl", ["req", "-x509", ...made, ...files, ...subject]);
  } catch (error) {
    whyNot = `no certificate: ${String(error).slice(0, 200)}`;
    return;
  }
  tlsPort = await freePort();
  const tls = ["--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file"];
  const args = [...tls, certificate, "--tls-port", String(tlsPort), "--tls-auth-clients", "no"];
  try {
    server = await startRedis({ args });
  } catch (error) {
    whyNot = `a redis-server without TLS: ${String(error).slice(0, 200)}`;
    return;
  }
  await server.command("ACL", "SETUSER", "locks", "reset", ...rules);
  // Only this user may connect, and only by TLS.
  await server.command("ACL", "SETUSER", "default", "off");
});

afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

watchLeaks();

const login = { username: "locks", password: "secret" };

function certificate(): Buffer {
  return readFileSync(join(folder, "certificate.pem"));
}

async function lockAndLook(client: RedisClient): Promise<string[]> {
  const locks = createLocks(redis(client, { prefix: "lock:" }));
  onTestFinished(() => locks.close());
  await locks.using(["a", "b"], { wait: 0 }, async (lease) => {
    expect(await lease.prove()).toBe(true);
  });
  return await codesOf(locks);
}

describe("TLS with a user and a password", () => {
  test("works with ioredis", async (context) => {
    required(context, `openssl and a redis-server with TLS (${whyNot})`, server);
    const tls = { ca: certificate() };
    const at = { host: "127.0.0.1", port: tlsPort, disconnectTimeout: 100 };
    // The ready check of ioredis is an INFO, which this user may run.
    const client = new Redis({ ...at, ...login, tls });
    client.on("error", () => undefined);
    onTestFinished(() => client.disconnect());
    await eventually(() => client.status === "ready");
    const codes = await lockAndLook(client);
    expect(codes).not.toContain("permission-missing");
    expect(codes).not.toContain("unauthenticated");
  });

  test("works with node-redis", async (context) => {
    required(context, `openssl and a redis-server with TLS (${whyNot})`, server);
    const socket = { host: "127.0.0.1", port: tlsPort, tls: true, ca: certificate() } as const;
    const client = createClient({ ...login, socket });
    client.on("error", () => undefined);
    onTestFinished(() => client.destroy());
    await client.connect();
    const codes = await lockAndLook(client);
    expect(codes).not.toContain("permission-missing");
    expect(codes).not.toContain("unauthenticated");
  });
});
