import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { watchLeaks } from "../support/leaks.ts";
import { freePort } from "../../tools/network/free-port.mjs";
import {
  startRedis,
  startRedisServers,
  type RedisServer,
} from "../../tools/redis/redis-server.mjs";
import { required } from "../support/requirements.ts";
import { projectRoot } from "../support/source-files.ts";
import { builtCli, isRunning, linesOf, until, worker } from "./cli-process.ts";

const cli = builtCli();
let servers: readonly RedisServer[] = [];

beforeAll(async () => {
  servers = await startRedisServers(3);
});
afterAll(() => Promise.all(servers.map((server) => server.stop())));
watchLeaks();

function redlock(): string {
  return `redlock:${servers.map(({ url }) => `${url}?admission=off`).join(",")}`;
}

async function paused(): Promise<RedisServer> {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  return server;
}

/** Returns a command that writes its pid and the time of SIGTERM to `file`, and keeps running. */
function noting(file: string): readonly string[] {
  const script = `trap 'date +%s%3N >> ${file}' TERM; echo $$ >> ${file}; 
    while :; do sleep 0.01; done`;
  return ["sh", "-c", script];
}

describe("exec on Redis", () => {
  test("runs under a lock with a fence, on one server and on three", async () => {
    for (const store of [servers[0]?.url ?? "", redlock()]) {
      const args = ["exec", "r", "--store", store, "--", "printenv", "HOLDFAST_FENCE"];
      const { code, stdout, stderr } = await cli.run(args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(Number(stdout)).toBeGreaterThan(0);
    }
    expect(await servers[0]?.command("EXISTS", "r")).toBe(0);
  });

  test("with --no-fence takes a plain lock, and the command has no fence", async () => {
    const args = ["exec", "plain", "--no-fence", "--store", servers[0]?.url ?? "", "--"];
    const show = 'echo "${HOLDFAST_FENCE-none}"';
    expect(await cli.run([...args, "sh", "-c", show])).toMatchObject({ code: 0, stdout: "none\n" });
  });

  test("takes its database, prefix and password from the address", async () => {
    const server = await startRedis({ args: ["--requirepass", "se:cret/1"] });
    onTestFinished(() => server.stop());
    const store = `redis://:${encodeURIComponent("se:cret/1")}@127.0.0.1:${server.port}/3`;
    const look = `redis-cli -p ${server.port} -a se:cret/1 --no-auth-warning -n 3 EXISTS jobs:r`;
    const args = ["exec", "r", "--store", `${store}?prefix=jobs:`, "--", "sh", "-c", look];
    expect(await cli.run(args)).toMatchObject({ code: 0, stdout: "1\n" });
  });

  test("stops the command before the validity ends if the server stops answering", async () => {
    const server = await paused();
    const file = join(cli.folder(), "times");
    const args = ["exec", "r", "--store", server.url, "--ttl", "3s", "--grace", "500ms", "--"];
    const { ended } = cli.start([...args, ...noting(file)]);
    const [pid] = await linesOf(file, 1);
    const expiry = async (): Promise<number> => Number(await server.command("PEXPIRETIME", "r"));
    // Right after a renewal, so that no other one comes between reading the expiry and the pause.
    const first = await expiry();
    await until("it was renewed", async () => (await expiry()) > first);
    const expiresMs = await expiry();
    server.pause();
    const { code, stderr } = await ended;
    server.resume();
    expect(code).toBe(76);
    expect(stderr).toContain("stopping the command");
    const termMs = Number((await linesOf(file, 2))[1]);
    expect(termMs).toBeLessThan(expiresMs);
    expect(isRunning(Number(pid))).toBe(false);
  });

  test("goes on while a minority of the servers is paused", async () => {
    const three = await startRedisServers(3);
    onTestFinished(async () => {
      await Promise.all(three.map((server) => server.stop()));
    });
    const store = `redlock:${three.map(({ url }) => `${url}?admission=off`).join(",")}`;
    const file = join(cli.folder(), "pids");
    const args = ["exec", "r", "--store", store, "--ttl", "1s", "--"];
    const script = `echo >> ${file}; sleep 2.5; echo done`;
    const { ended } = cli.start([...args, "sh", "-c", script]);
    await linesOf(file, 1);
    three[2]?.pause();
    const { code, stdout } = await ended;
    three[2]?.resume();
    expect({ code, stdout }).toEqual({ code: 0, stdout: "done\n" });
  });

  test("that is killed leaves its command the grace, and its lock for the TTL", async () => {
    const file = join(cli.folder(), "pids");
    const store = servers[1]?.url ?? "";
    const args = ["exec", "orphan", "--store", store, "--ttl", "5s", "--grace", "3s", "--"];
    const { pid, ended } = cli.start([...args, ...worker(file, `echo term >> ${file}; exit 0`)]);
    const pids = await linesOf(file, 2);
    process.kill(pid, "SIGKILL");
    await ended;
    for (const one of pids) await until(`${one} has ended`, () => !isRunning(Number(one)));
    expect(readFileSync(file, "utf8")).toMatch(/term\n$/);
    expect(await servers[1]?.command("EXISTS", "orphan")).toBe(1);
    const broken = await cli.run(["break", "orphan", "--yes", "--store", store]);
    expect(broken).toMatchObject({ code: 0, stderr: "" });
    expect(await servers[1]?.command("EXISTS", "orphan")).toBe(0);
  });

  test("break on three servers makes guards refuse the old holder", async () => {
    const store = redlock();
    const file = join(cli.folder(), "pids");
    const args = ["exec", "r", "--store", store, "--ttl", "4s", "--json", "--", ...worker(file)];
    const { ended } = cli.start(args);
    await linesOf(file, 2);
    const broken = await cli.run(["break", "r", "--yes", "--json", "--store", store]);
    const { code, stderr } = await ended;
    expect(code).toBe(76);
    const { fence: old } = JSON.parse(stderr) as { fence: string };
    const { fence } = JSON.parse(broken.stdout) as { fence: string };
    expect(BigInt(fence)).toBeGreaterThan(BigInt(old));
  });
});

describe("a server with TLS, for a user with few rights", () => {
  test("is reached with its certificate, and refuses what the user may not do", async (context) => {
    const folder = cli.folder();
    const [key, certificate] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const files = ["-keyout", key, "-out", certificate, "-days", "2"];
    const made = spawnSync("openssl", ["req", "-x509", ...kind, ...files, ...subject]);
    required(context, "openssl", made.status === 0 ? made : undefined);
    const port = await freePort();
    const tls = ["--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file"];
    const args = [...tls, certificate, "--tls-port", String(port), "--tls-auth-clients", "no"];
    const server = await startRedis({ args });
    onTestFinished(() => server.stop());
    const page = readFileSync(join(projectRoot, "docs", "operate", "operations.md"), "utf8");
    const rules = /^ACL SETUSER locks (.+\+hset.*)$/m.exec(page)?.[1]?.split(" ") ?? [];
    await server.command("ACL", "SETUSER", "locks", "reset", ...rules);
    const address = `rediss://locks:secret@127.0.0.1:${port}?prefix=lock:`;
    const store = `${address}&ca=${certificate}`;
    const run = ["exec", "r", "--store", store, "--", "echo", "ran"];
    expect(await cli.run(run)).toMatchObject({ code: 0, stdout: "ran\n", stderr: "" });
    const denied = await cli.run(["ls", "--store", store]);
    expect(denied).toMatchObject({ code: 77, stdout: "" });
    expect(denied.stderr).toMatch(/^holdfast: .*NOPERM.*\n$/);
    await server.command("ACL", "SETUSER", "locks", "+scan");
    expect(await cli.run(["ls", "--store", store])).toMatchObject({ code: 0, stderr: "" });
    const strange = await cli.run(["ls", "--store", address]);
    expect(strange.code).toBe(69);
    expect(strange.stderr).toMatch(/^holdfast: cannot reach the store: .*certificate.*\n$/);
  });
});

describe("a store that cannot be used", () => {
  test("ends with 69 at once if the server refuses connections", async () => {
    const server = await startRedis();
    await server.stop();
    const args = ["exec", "r", "--store", server.url, "--", "true"];
    const { code, stdout, stderr } = await cli.run(args);
    expect({ code, stdout }).toEqual({ code: 69, stdout: "" });
    expect(stderr).toMatch(
      /^holdfast: cannot reach the store: 127\.0\.0\.1:\d+: .*ECONNREFUSED.*\n$/,
    );
  });

  test("ends with 69 within 5 s if a server accepts connections and never answers", async () => {
    const server = await paused();
    server.pause();
    const { code, stderr } = await cli.run(["ls", "--store", server.url]);
    server.resume();
    expect(code).toBe(69);
    expect(stderr).toMatch(/^holdfast: cannot reach the store: .*no answer within 5 s\n$/);
  });

  test("ends with 69 if only a minority is reachable, and works with a warning if a majority is", async () => {
    const gone = await startRedis();
    await gone.stop();
    const [one, other] = servers;
    const few = `redlock:${one?.url},${gone.url},${gone.url.replace("127.0.0.1", "127.0.0.2")}`;
    const refused = await cli.run(["ls", "--store", few]);
    expect(refused.code).toBe(69);
    expect(refused.stderr).toMatch(/^holdfast: cannot reach the store \(needs 2 of 3 servers\): /);
    const most = `redlock:${one?.url}?admission=off,${other?.url},${gone.url}`;
    const { code, stdout, stderr } = await cli.run([
      "exec",
      "r",
      "--store",
      most,
      "--",
      "echo",
      "x",
    ]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "x\n" });
    expect(stderr).toMatch(/^holdfast: warning: a server cannot be reached: .*\n$/);
  });

  test("is examined by the doctor, which reports each server that is down and ends with 2", async () => {
    const locked = await startRedis({ args: ["--requirepass", "right"] });
    onTestFinished(() => locked.stop());
    const gone = await startRedis();
    await gone.stop();
    const all = [
      `${servers[0]?.url}?admission=off`,
      gone.url,
      `redis://:wrong@127.0.0.1:${locked.port}`,
    ];
    for (const store of [`redlock:${all.join(",")}`, gone.url, all[2] ?? ""]) {
      const { code, stdout, stderr } = await cli.run(["doctor", "--json", "--store", store]);
      expect({ code, stderr }).toEqual({ code: 2, stderr: "" });
      const { findings } = JSON.parse(stdout) as { findings: { code: string; what: string }[] };
      const of = (name: string) => findings.filter(({ code: one }) => one === name);
      const isDown = store.includes(gone.url);
      expect(of("unreachable").map(({ what }) => what)).toEqual(
        isDown
          ? [expect.stringMatching(/^127\.0\.0\.1:\d+ cannot be reached: .*ECONNREFUSED/)]
          : [],
      );
      expect(of("wrong-password").map(({ what }) => what)).toEqual(
        store === gone.url ? [] : [expect.stringMatching(/ refuses the user: WRONGPASS/)],
      );
      // The others are examined.
      expect(of("persistence-off")).toHaveLength(store.startsWith("redlock:") ? 1 : 0);
    }
  });

  test("does not hold up a command if enough other servers have answered", async () => {
    const silent = await paused();
    silent.pause();
    onTestFinished(() => silent.resume());
    const two = await startRedisServers(2);
    onTestFinished(async () => void (await Promise.all(two.map((server) => server.stop()))));
    const urls = [...two, silent].map(({ url }) => `${url}?admission=off`);
    const store = `redlock:${urls.join(",")}`;
    const ended = await cli.run(["exec", "early", "--store", store, "--", "echo", "ran"]);
    // After five seconds without an answer it would have warned of the silent one.
    expect(ended).toMatchObject({ code: 0, stdout: "ran\n", stderr: "" });
  });

  test.each(["wrong", ""])(
    "ends with 77 if the password is wrong or missing (%j)",
    async (password) => {
      const server = await startRedis({ args: ["--requirepass", "right"] });
      onTestFinished(() => server.stop());
      const user = password === "" ? "" : `:${password}@`;
      const store = `redis://${user}127.0.0.1:${server.port}`;
      for (const args of [
        ["exec", "r", "--store", store, "--", "true"],
        ["ls", "-s", store],
      ]) {
        const { code, stdout, stderr } = await cli.run(args);
        expect({ code, stdout }).toEqual({ code: 77, stdout: "" });
        expect(stderr).toMatch(/^holdfast: the server refused us: .*(WRONGPASS|NOAUTH).*\n$/);
        expect(stderr).not.toContain("wrong@");
      }
    },
  );
});
