// @ts-check
/** Starts the process that makes a node slow. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("../proxy-process.mjs", import.meta.url));

/** @param {number} target */
export async function startProxy(target) {
  const child = spawn(process.execPath, [program, String(target)], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const end = () => child.kill("SIGKILL");
  process.once("exit", end);
  const [{ port }] = await once(child, "message", { signal: AbortSignal.timeout(20_000) });
  return {
    port: Number(port),
    /** @param {number} delayMs each way */
    async delay(delayMs) {
      const started = once(child, "message", { signal: AbortSignal.timeout(20_000) });
      child.send(delayMs);
      await started;
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      process.off("exit", end);
      const exited = once(child, "exit");
      end();
      await exited;
    },
  };
}
