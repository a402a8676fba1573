import { expect, test } from "vitest";
import { MissingScripts } from "../../src/simulator/missing-scripts.ts";
import { ReplyError } from "../../src/simulator/node/keyspace.ts";
import type { AttemptRecord } from "../../src/simulator/process/recording-store.ts";
import { SimulatedProcess } from "../../src/simulator/process/simulated-process.ts";
import { Scene } from "../../src/simulator/scene.ts";
import { SeededRandom } from "../../src/simulator/seeded-random.ts";

const batch = (name: string, ...owners: string[]): string[] => [name, "script", "0", ...owners];
const lacking = new ReplyError("NOSCRIPT No matching script. Please use EVAL.");

/** Returns a client with one pending attempt, "waits", and one decided attempt, "over". */
function watched() {
  const scene = new Scene(new SeededRandom("missing scripts"), "off");
  const machine = new SimulatedProcess(scene, "client-1", { rate: 1, wallSkewMs: 0 });
  const found: string[] = [];
  const watch = new MissingScripts(scene, (text) => found.push(text));
  const attempts = new Map(
    [false, true].map((isDecided) => {
      const attempt = attemptOf(machine, isDecided);
      return [attempt.owner, attempt] as const;
    }),
  );
  return {
    receive: (reply: unknown, ...owners: string[]) =>
      watch.onReceived(
        "client-1",
        "node-1",
        { command: batch("EVALSHA", ...owners), reply },
        attempts,
      ),
    send: (to: string, command: readonly string[]) => watch.onSent("client-1", to, command),
    decide: () => {
      for (const attempt of attempts.values()) attempt.isDecided = true;
    },
    judged: () => {
      while (scene.step() !== undefined);
      return found;
    },
  };
}

function attemptOf(machine: SimulatedProcess, isDecided: boolean): AttemptRecord {
  return {
    machine,
    owner: isDecided ? "over" : "waits",
    resources: ["a"],
    ttlMs: 100,
    startedMs: 0,
    startedMonotonicMs: 0,
    startedWallMs: 0,
    isDecided,
    completedMs: undefined,
    heldSinceMs: 0,
    fence: undefined,
    validUntilMonotonicMs: 100,
    validUntilWallMs: 100,
    validUntilSteadyMs: Infinity,
  };
}

test("a client that sends the full script to the node that lacks it breaks no rule", () => {
  const { receive, send, judged } = watched();
  receive(lacking, "waits", "over");
  send("node-1", batch("EVAL", "waits"));
  expect(judged()).toEqual([]);
});

test("a pending vote must not be given up, even if the attempt has failed", () => {
  const { receive, decide, judged } = watched();
  receive(lacking, "waits", "over");
  decide();
  expect(judged()).toEqual([expect.stringMatching(/^node-1 lacked .* client-1 .*\(waits\)$/)]);
});

test.each([
  ["to another node", "node-2", batch("EVAL", "waits")],
  ["for another attempt", "node-1", batch("EVAL", "over")],
  ["once more without the text", "node-1", batch("EVALSHA", "waits")],
])("a command sent %s does not count", (_, to, command) => {
  const { receive, send, judged } = watched();
  receive(lacking, "waits");
  send(to, command);
  expect(judged()).toHaveLength(1);
});

test("a command sent in a later turn is too late", () => {
  const { receive, send, judged } = watched();
  receive(lacking, "waits");
  expect(judged()).toHaveLength(1);
  send("node-1", batch("EVAL", "waits"));
  expect(judged()).toHaveLength(1);
});

test("nothing must be sent if no attempt waits for it, or after any other reply", () => {
  const { receive, judged } = watched();
  receive(lacking, "over", "of-another-client");
  receive(new ReplyError("ERR syntax error"), "waits");
  receive(["G"], "waits");
  expect(judged()).toEqual([]);
});
