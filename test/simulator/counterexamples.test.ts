import { expect, test } from "vitest";
import { SimulatedServer } from "../../src/simulator/node/server.ts";
import { SeededRandom } from "../../src/simulator/seeded-random.ts";
import { Register } from "../../src/simulator/workload/register.ts";
import { resolveStoreOptions } from "../../src/stores/redis/options.ts";
import { verdict, type NodeView } from "../../src/stores/redis/admission/admission-rule.ts";
import type { NodeRecord } from "../../src/stores/redis/admission/node-record.ts";
import * as lua from "../../src/stores/redis/scripts/generated.ts";

/**
 * The shortest ways to break weaker protocols, as found by a model checker, played by hand. Three
 * nodes, a quorum of two; "expires" means that a key is gone for any reason. Each must end at the
 * rule that forbids it. Random worlds look for the same gaps: `npm run sim:mutants`.
 */

const ttlMs = 10_000;
const record = "holdfast:node";

class Node {
  readonly #server: SimulatedServer;
  readonly #admission: "strict" | "off";
  #nowMs = 0;

  constructor(name: string, admission: "strict" | "off" = "off") {
    const random = new SeededRandom(name);
    this.#admission = admission;
    this.#server = new SimulatedServer(
      { version: "7.0.15", rate: 1, skewMs: 0, uptimeMs: 86_400_000 },
      { realMs: () => this.#nowMs, newRunId: () => random.hex(40) },
    );
  }

  acquire(owner: string, proposal = 0): string {
    return this.#run("A", ttlMs, [owner, String(proposal)]);
  }

  raise(owner: string, fence: number): string {
    return this.#run("T", 0, [`${owner}|${fence}`]);
  }

  extend(owner: string, fence: number): string {
    return this.#run("T", ttlMs, [`${owner}|${fence}`]);
  }

  release(owner: string): unknown {
    const args = ["1", "", "R 1 1", "0", owner];
    const reply = this.#server.execute(["EVAL", lua.plain.source, "2", "r", "queue", ...args]);
    return String(reply).split("\n")[1];
  }

  admit(quarantineMs: number): unknown {
    const kept = this.#server.data.hash(record);
    const [rid = "", since = ""] = [kept?.get("rid"), kept?.get("since")];
    const args = ["copy", rid, since, String(quarantineMs), "0"];
    return this.#server.execute(["EVAL", lua.admit.source, "1", record, ...args]);
  }

  expire(): void {
    this.#server.data.delete("r");
  }

  restartEmpty(): void {
    this.#server.restart(undefined);
  }

  pass(ms: number): void {
    this.#nowMs += ms;
  }

  pttl(): unknown {
    return this.#server.execute(["PTTL", "r"]);
  }

  #deployment(): string[] {
    return ["1", this.#admission, "1:crc16:1024", "30000"];
  }

  /** Returns the letter and the last word of the verdict: "G 3", "N NEWER", "H o|2". */
  #run(code: "A" | "T", ownTtlMs: number, own: readonly string[]): string {
    // A touch frees nothing, so it has no queue.
    const keys = code === "T" ? ["2", record, "r"] : ["3", record, "r", "queue"];
    const args = [...this.#deployment(), "1", `${code} 1 1`, String(ownTtlMs), ...own, "0"];
    const reply = String(this.#server.execute(["EVAL", lua.fenced.source, ...keys, ...args]));
    const [kind, ...words] = (reply.split("\n")[1] ?? "").split(" ");
    // A grant with the proposal as fence does not repeat it.
    const last = words.at(-1) ?? (kind === "G" ? own[1] : kind);
    return `${kind} ${last}`;
  }
}

function nodes(): [Node, Node, Node] {
  return [new Node("n1"), new Node("n2"), new Node("n3")];
}

test("C1: a fence that only one node recorded is not given to a quorum", () => {
  const [n1, n2, n3] = nodes();
  expect(n1.acquire("A")).toBe("G 1");
  n1.expire();
  expect(n2.acquire("B", 3)).toBe("G 3");
  n2.expire();
  expect(n2.acquire("A")).toBe("G 4");
  // A has 1 and 4, so it must raise n1 to 4, where its key is gone.
  expect(n1.raise("A", 4)).toBe("N ABSENT");
  expect([n1.acquire("C"), n3.acquire("C")]).toEqual(["G 2", "G 1"]);
});

test("C2, C2a: a raise is refused by a key of another owner", () => {
  const [n1, n2] = nodes();
  n1.acquire("A");
  n1.expire();
  expect(n1.acquire("B")).toBe("G 2");
  expect(n2.acquire("B")).toBe("G 1");
  n2.expire();
  expect(n2.acquire("A")).toBe("G 2");
  expect(n1.raise("A", 2)).toBe("N OTHER");
  expect(n2.raise("B", 2)).toBe("N OTHER");
});

test("C3: an attempt that completes later may have the smaller fence, and the storage refuses it", () => {
  const register = new Register(true);
  expect(register.read(2n)).toBe(0);
  expect(register.write(2n, 0)).toBe(true);
  expect(register.read(1n)).toBeUndefined();
  expect(register.write(1n, 0)).toBe(false);
});

test("C4: a raise is refused by our own key with a greater fence, after a repeated acquire", () => {
  const [n1] = nodes();
  n1.acquire("A");
  n1.expire();
  expect(n1.acquire("A")).toBe("G 2");
  n1.expire();
  expect(n1.acquire("B")).toBe("G 3");
  expect(n1.raise("B", 2)).toBe("N NEWER");
});

test("C4a: a raise is refused by our own key with a greater fence, after a late grant that was not counted", () => {
  const [n1, n2, n3] = nodes();
  n1.acquire("A");
  n1.expire();
  expect(n1.acquire("B")).toBe("G 2");
  expect(n2.acquire("A")).toBe("G 1");
  n3.acquire("B");
  n3.expire();
  expect(n3.acquire("A")).toBe("G 2");
  expect(n2.raise("A", 2)).toMatch(/^K/);
  n2.expire();
  expect(n2.acquire("B")).toBe("G 3");
  expect(n2.raise("B", 2)).toBe("N NEWER");
});

test("C4b: a raise is refused by our own key with a greater fence, if the first of two replies was counted", () => {
  const [, n2] = nodes();
  n2.acquire("A");
  n2.expire();
  n2.acquire("B");
  n2.expire();
  expect(n2.acquire("A")).toBe("G 3");
  expect(n2.raise("A", 2)).toBe("N NEWER");
});

test("C6, C8a: a node that restarted empty does not vote", () => {
  const node = new Node("n1", "strict");
  expect(node.acquire("A")).toMatch(/^B/);
  node.pass(40_000);
  expect(node.admit(30_302)).toBe("A");
  expect(node.acquire("A")).toMatch(/^G/);
  node.restartEmpty();
  expect(node.acquire("B")).toMatch(/^B/);
});

test("C9: a node is not admitted before its quarantine is over", () => {
  const node = new Node("n1", "strict");
  node.acquire("A");
  node.pass(30_301);
  expect(node.admit(30_302)).toBe("L 1");
  expect(node.acquire("A")).toMatch(/^B/);
  node.pass(1);
  expect(node.admit(30_302)).toBe("A");
});

test("C11, C11b: a node does not count itself among those it copies from", () => {
  const options = resolveStoreOptions({ admission: "strict" }, 3);
  const own = view(false, 60_000);
  expect(verdict(options, [own, view(true), view(true)], 0, 2)).toMatchObject({ mode: "copy" });
  // With one other node it cannot copy. It waits until the shortage has lasted as long as a
  // quarantine.
  const short: NodeView[] = [own, view(true), { kind: "silent", forMs: 0 }];
  expect(verdict(options, short, 0, 2)).toMatchObject({ kind: "wait" });
});

test("C12, C13: an extend does not create a missing key", () => {
  const [n1] = nodes();
  n1.acquire("A");
  n1.expire();
  n1.acquire("B");
  n1.release("B");
  expect(n1.extend("A", 1)).toBe("N ABSENT");
});

test("C14: an extend is refused by a key that our own late acquire created again", () => {
  const [, , n3] = nodes();
  n3.acquire("B");
  expect(n3.raise("B", 2)).toMatch(/^K/);
  n3.expire();
  expect(n3.acquire("A")).toBe("G 3");
  expect(n3.extend("A", 1)).toBe("N NEWER");
});

test("C15: the late release of one attempt does not delete the next one's key", () => {
  const [n1] = nodes();
  n1.acquire("x-1");
  n1.release("x-1");
  n1.acquire("x-10");
  expect(n1.release("x-1")).toBe("R 0 1");
  expect(n1.acquire("C")).toMatch(/^H/);
});

test("C21: a repeated acquire does not refresh the life that began with the first", () => {
  const [n1] = nodes();
  n1.acquire("A");
  n1.pass(3_000);
  expect(n1.acquire("A")).toBe("G 1");
  expect(n1.pttl()).toBe(ttlMs - 3_000);
});

function view(admitted: boolean, blankForMs = 0): NodeView {
  const kept: NodeRecord = {
    runId: "r",
    admitted,
    everAdmitted: true,
    mode: undefined,
    since: "0",
    serverMs: blankForMs,
    uptimeMs: 0,
    ttlMaxMs: 30_000,
    floor: 0,
    counters: new Map(),
  };
  return { kind: "record", record: kept };
}
