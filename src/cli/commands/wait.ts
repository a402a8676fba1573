import { setTimeout as sleep } from "node:timers/promises";
import type { Connected } from "../connect.ts";
import { interruptible } from "../interruptible.ts";
import { Failure, Interrupted } from "../failure.ts";
import { holderText } from "../lock-view.ts";
import { flagDuration, type AddCommand, type Session } from "../session.ts";

const examples = `
Examples:
  holdfast wait deploy && echo "free at the moment"
  holdfast wait deploy --timeout 5m

Free now may be held a moment later: to do something alone, use exec.`;

const lookMs = 100;

export const addWait: AddCommand = (program, host) => {
  program
    .command("wait")
    .summary("wait until a resource is free")
    .description("Wait until a resource is free.")
    .argument("<resource>", "what to wait for")
    .option("--timeout <duration>", "give up after this, with exit code 75 (default: forever)")
    .addHelpText("after", examples)
    .action(
      host.act((session, resource: string, flags: { timeout?: string }) =>
        wait(session, resource, flags.timeout),
      ),
    );
};

async function wait(
  session: Session,
  resource: string,
  timeout: string | undefined,
): Promise<"ok"> {
  const timeoutMs =
    timeout === undefined || timeout === "forever"
      ? Infinity
      : flagDuration("--timeout", timeout === "0" ? "0ms" : timeout);
  return await session.using<"ok">(async (connected) => {
    const outcome = await interruptible((signal) => free(connected, resource, timeoutMs, signal));
    if ("interrupted" in outcome) throw new Interrupted(outcome.interrupted);
    const waitedMs = Math.round(outcome.result);
    if (session.output.json) session.output.document({ resource, state: "free", waitedMs });
    return "ok";
  });
}

/**
 * Waits until the resource is free and returns the time waited. Throws Failure after `timeoutMs`.
 */
async function free(
  { locks }: Connected,
  resource: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<number> {
  const beganMs = performance.now();
  for (;;) {
    const seen = await locks.inspect(resource);
    const passedMs = performance.now() - beganMs;
    if (seen.state === "free") return passedMs;
    if (passedMs >= timeoutMs) {
      if (seen.state === "unknown") {
        throw new Failure("unavailable", `too few servers answered about "${resource}"`);
      }
      throw new Failure("held", `"${resource}" is still held by ${holderText(seen)}`);
    }
    await sleep(Math.min(lookMs, timeoutMs - passedMs), undefined, { signal });
  }
}
