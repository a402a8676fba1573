import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { isRunning, killChild, startChild } from "../../tools/processes/children.mjs";
import { eventually } from "../support/redis-eventually.ts";

const modulePath = new URL("../../tools/processes/children.mjs", import.meta.url).href;

interface Started {
  readonly parent: ChildProcess;
  readonly childPid: number;
  readonly folder: string;
  readonly ended: Promise<number | string | null>;
}

/** Starts a process that has a child and a folder, and runs `code` before it reports them. */
async function startParent(code: string): Promise<Started> {
  const script = `
    import { makeFolder, startChild } from ${JSON.stringify(modulePath)};
    ${code}
    const child = startChild("sleep", ["60"], { stdio: "ignore" });
    console.log(JSON.stringify([child.pid, makeFolder("holdfast-children-")]));
  `;
  const args = ["--input-type=module", "-e", script];
  const parent = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => killChild(parent));
  const ended = new Promise<number | string | null>((resolve) => {
    parent.once("exit", (exitCode, signal) => resolve(exitCode ?? signal));
  });
  const lines = createInterface({ input: parent.stdout });
  const line = await new Promise<string>((resolve) => {
    lines.once("line", resolve);
  });
  const [childPid, folder] = JSON.parse(line) as [number, string];
  return { parent, childPid, folder, ended };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test.each([
  ["is interrupted", "", "SIGTERM"],
  ["ends at a signal by itself", `process.once("SIGTERM", () => process.exit(3));`, 3],
  [
    "finishes its work after a signal",
    `process.once("SIGTERM", () => setTimeout(() => process.exit(4), 100));`,
    4,
  ],
])("a process that %s leaves no child and no folder", async (_, code, expected) => {
  const { parent, childPid, folder, ended } = await startParent(code);
  expect([isAlive(childPid), existsSync(folder)]).toEqual([true, true]);
  parent.kill("SIGTERM");
  expect(await ended).toBe(expected);
  await eventually(() => !isAlive(childPid));
  expect(existsSync(folder)).toBe(false);
});

test("a program that does not exist is not running, and can be killed", async () => {
  const child = startChild("no-such-program", [], { stdio: "ignore" });
  expect(isRunning(child)).toBe(false);
  await killChild(child);
});
