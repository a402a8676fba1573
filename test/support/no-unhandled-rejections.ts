import { setImmediate } from "node:timers/promises";
import { afterAll } from "vitest";

/**
 * Runs before every test file: an unhandled rejection, an uncaught exception or
 * a warning about a leak fails the file in which it happened.
 */

const seriousWarnings = new Set([
  "MaxListenersExceededWarning",
  "PromiseRejectionHandledWarning",
  "TimeoutNaNWarning",
  "TimeoutNegativeWarning",
  "TimeoutOverflowWarning",
]);

const problems: Error[] = [];

function onRejection(reason: unknown): void {
  problems.push(new Error("unhandled rejection", { cause: reason }));
}

function onException(error: unknown): void {
  problems.push(new Error("uncaught exception", { cause: error }));
}

function onWarning(warning: Error): void {
  if (seriousWarnings.has(warning.name)) problems.push(warning);
}

process.on("unhandledRejection", onRejection);
process.on("uncaughtExceptionMonitor", onException);
process.on("warning", onWarning);

// The first hook that is registered runs last: it sees the effects of the file's own clean-up.
afterAll(async () => {
  // Node reports rejections and warnings a turn after their cause.
  await setImmediate();
  await setImmediate();
  process.off("unhandledRejection", onRejection);
  process.off("uncaughtExceptionMonitor", onException);
  process.off("warning", onWarning);
  if (problems.length > 0) throw new AggregateError(problems, "left behind by this test file");
});
