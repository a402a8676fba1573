// @ts-check
/**
 * Records which file calls which other file while instrumented code runs (see instrument.mjs). The
 * stack holds the frames that are running now: a frame leaves it while its function awaits, and is
 * on top again when the function continues.
 */

/** @typedef {{ file: string, depth: number, running: boolean }} Frame */
/**
 * @typedef {object} Recording
 * @property {Set<string>} files entered, in this order
 * @property {Map<string, Map<string, number>>} calls from one file to another: caller, callee, count
 * @property {number} entries from outside: by the user, by the event loop, by a promise
 */

/** @type {Frame[]} */
const stack = [];
/** @type {Recording | undefined} */
let recording;

export function startRecording() {
  recording = { files: new Set(), calls: new Map(), entries: 0 };
}

/** @returns {Recording} */
export function stopRecording() {
  if (recording === undefined) throw new Error("nothing is being recorded");
  const stopped = recording;
  recording = undefined;
  return stopped;
}

/** Runs first in every function. @param {string} file @returns {Frame} */
export function enter(file) {
  if (recording !== undefined) record(recording, stack.at(-1)?.file, file);
  const frame = { file, depth: stack.length, running: true };
  stack.push(frame);
  return frame;
}

/** @param {Recording} into @param {string | undefined} caller @param {string} callee */
function record(into, caller, callee) {
  into.files.add(callee);
  if (caller === undefined) into.entries += 1;
  if (caller === undefined || caller === callee) return;
  const callees = into.calls.get(caller) ?? new Map();
  into.calls.set(caller, callees.set(callee, (callees.get(callee) ?? 0) + 1));
}

/** Runs last in every function, however it ends. @param {Frame} frame */
export function leave(frame) {
  if (frame.running) stack.length = frame.depth;
  frame.running = false;
}

/**
 * Runs just before a function awaits `value`, and returns it.
 *
 * @template T
 * @param {Frame} frame
 * @param {T} value
 */
export function pause(frame, value) {
  leave(frame);
  return value;
}

/**
 * Runs as soon as a function continues, also in its catch and finally blocks. Returns `value`.
 *
 * @template T
 * @param {Frame} frame
 * @param {T} [value]
 */
export function resume(frame, value) {
  if (frame.running) return value;
  frame.depth = stack.length;
  frame.running = true;
  stack.push(frame);
  return value;
}
