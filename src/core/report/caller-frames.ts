import { isHoldfastError } from "../errors.ts";

/**
 * Problem: an error that is created in a timer or in the callback of a socket has a stack without
 * the code that made the failed call.
 *
 * Idea: the stack of an async function shows the functions that await its promise. So a call that
 * fails passes its error through `withCallerFrames`, which adds these functions to the error. A
 * call that succeeds pays nothing.
 *
 * Limit: a promise that no function awaits yet when it rejects has no such functions.
 */

/** Number of turns until a promise that was resolved with another one is linked to it. */
const linkTurns = 3;

/** Errors that have their frames. */
const complete = new WeakSet<object>();

/** Rejects with `reason`, after adding the frames of the functions that await this promise. */
export async function withCallerFrames(reason: unknown): Promise<never> {
  for (let turn = 0; turn < linkTurns; turn += 1) await Promise.resolve();
  // An error of the user, such as the reason of an abort, is left as it is. An error that several
  // calls reject with has the frames of the first.
  if (isHoldfastError(reason) && !complete.has(reason)) {
    complete.add(reason);
    addFrames(reason);
  }
  throw reason;
}

function addFrames(error: Error): void {
  const here: { stack?: string } = {};
  Error.captureStackTrace(here, withCallerFrames);
  const [, ...lines] = (here.stack ?? "").split("\n");
  const frames = lines.filter((line) => !line.includes("node:internal/"));
  if (frames.length === 0 || error.stack === undefined) return;
  // The outermost functions may be in both stacks.
  const origin = error.stack.split("\n").filter((line) => !frames.includes(line));
  error.stack = [...origin, ...frames].join("\n");
}
