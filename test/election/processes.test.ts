import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { leaders } from "../../src/election/index.ts";
import { fencedGet } from "../../src/fencing/redis.ts";
import { shareBuild } from "../redis/child-holder.ts";
import { eventually } from "../support/redis-eventually.ts";
import { connect, shareRedis } from "../support/redis-harness.ts";

const bench = shareRedis(3);
const build = shareBuild();
const script = fileURLToPath(new URL("candidate.child.mjs", import.meta.url));

type Message =
  | { readonly kind: "ready" }
  | { readonly kind: "elected"; readonly fence: string }
  | { readonly kind: "deposed"; readonly reason: string }
  | { readonly kind: "resumed"; readonly outcomes: readonly string[]; readonly aborted: boolean };

/** A candidate in a process of its own. */
class Member {
  readonly name: string;
  readonly child: ChildProcess;
  readonly messages: Message[] = [];

  constructor(name: string, ports: readonly number[]) {
    this.name = name;
    this.child = fork(script, [build.folder, ports.join(","), name]);
    this.child.on("message", (message: Message) => this.messages.push(message));
  }

  /** Returns the first message of a kind, once there is one. */
  async first<Kind extends Message["kind"]>(kind: Kind): Promise<Extract<Message, { kind: Kind }>> {
    return await eventually(async () => {
      const found = this.messages.find((message) => message.kind === kind);
      if (found === undefined) throw new Error(`${this.name} has sent no message "${kind}"`);
      return found as Extract<Message, { kind: Kind }>;
    }, 30_000);
  }

  get fence(): bigint | undefined {
    const elected = this.messages.findLast((message) => message.kind === "elected");
    return elected === undefined ? undefined : BigInt(elected.fence);
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = once(this.child, "exit");
    this.child.kill("SIGCONT");
    if (this.child.connected) this.child.send("stop");
    const timer = setTimeout(() => this.child.kill("SIGKILL"), 10_000);
    await exited;
    clearTimeout(timer);
  }
}

/** Starts a process and waits until it stands for election. */
async function startMember(name: string, nodes: number): Promise<Member> {
  const ports = bench.servers.slice(0, nodes).map(({ port }) => port);
  const member = new Member(name, ports);
  onTestFinished(() => member.end());
  await member.first("ready");
  return member;
}

/** Starts a leader and two candidates behind it. */
async function startGroup(nodes: number): Promise<readonly [Member, readonly Member[]]> {
  // Runs after the members have ended.
  onTestFinished(async () => {
    await Promise.all(bench.servers.map((server) => server.command("FLUSHALL")));
  });
  const leader = await startMember("a", nodes);
  await leader.first("elected");
  return [leader, [await startMember("b", nodes), await startMember("c", nodes)]];
}

/** Returns the member of `others` that is elected next. */
async function successorOf(others: readonly Member[]): Promise<Member> {
  return await eventually(async () => {
    const found = others.find(({ fence }) => fence !== undefined);
    if (found === undefined) throw new Error("there is no successor");
    return found;
  }, 30_000);
}

async function guarded(): Promise<string | undefined> {
  const client = await connect(bench.server(0).port);
  return (await fencedGet(client, "guarded"))?.value;
}

describe.each([1, 3])("an election of processes on %i nodes", (nodes) => {
  test("has a successor with a greater term when the leader is killed", async () => {
    const [leader, others] = await startGroup(nodes);
    leader.child.kill("SIGKILL");
    const successor = await successorOf(others);
    expect(successor.fence).toBeGreaterThan(leader.fence ?? 0n);
    await eventually(async () => {
      expect(await guarded()).toBe(`${successor.name} ${successor.fence}`);
    });
  });

  test("refuses every write of a leader that was stopped past its lease", async () => {
    const [leader, others] = await startGroup(nodes);
    leader.child.kill("SIGSTOP");
    const successor = await successorOf(others);
    const written = `${successor.name} ${successor.fence}`;
    await eventually(async () => expect(await guarded()).toBe(written));
    leader.child.kill("SIGCONT");
    const { outcomes, aborted } = await leader.first("resumed");
    expect(outcomes).toEqual(Array.from({ length: 20 }, () => "FENCE_REJECTED"));
    expect(aborted).toBe(true);
    expect(await leader.first("deposed")).toMatchObject({ reason: "lost" });
    expect(await guarded()).toBe(written);
    // The old leader stands again, and is behind the others.
    expect(leader.messages.filter(({ kind }) => kind === "elected")).toHaveLength(1);
  });

  test("hands over when the leader resigns, and shows it to those who follow", async () => {
    const [leader, others] = await startGroup(nodes);
    const locks = await bench.locks(nodes);
    const seen: (string | undefined)[] = [];
    const over = (async () => {
      for await (const { label } of leaders(locks, "scheduler", { every: "20ms" })) {
        if (label !== undefined) seen.push(label);
        if (others.some(({ name }) => name === label)) return;
      }
    })();
    await eventually(async () => expect(seen).toEqual(["a"]));
    leader.child.send("resign");
    expect(await leader.first("deposed")).toMatchObject({ reason: "resigned" });
    const successor = await successorOf(others);
    await over;
    expect(seen.at(-1)).toBe(successor.name);
    expect(successor.fence).toBeGreaterThan(leader.fence ?? 0n);
  });
});
