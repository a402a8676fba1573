import { spawn } from "node:child_process";
import { onTestFinished } from "vitest";

export interface ProgramEnd {
  readonly code: number | null;
  /** All that the program wrote to stdout and stderr. */
  readonly output: string;
}

/** Runs a program of Node.js to its end. It is killed if the test is over before. */
export function runProgram(
  path: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<ProgramEnd> {
  const child = spawn(process.execPath, [path, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env,
  });
  onTestFinished(() => void child.kill());
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  return new Promise((resolve) => {
    child.once("close", (code) => resolve({ code, output }));
  });
}
