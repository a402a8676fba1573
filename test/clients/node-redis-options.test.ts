import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { commandOptionsOf } from "../../src/clients/node-redis-options.ts";

test("a broken connection aborts the remaining listeners, and no listener after that", () => {
  const client = new EventEmitter();
  const options = commandOptionsOf(client, "reconnecting");
  const { abortSignal } = options();
  const aborted: number[] = [];
  const listeners = Array.from({ length: 5000 }, (_, index) => () => aborted.push(index));
  for (const listener of listeners) abortSignal.addEventListener("abort", listener);
  // Removed in order of arrival, apart from an early one and one that was never added.
  const [first, ...rest] = listeners;
  for (const listener of [listeners[3000], first, ...rest.slice(0, 4000), () => undefined]) {
    if (listener !== undefined) abortSignal.removeEventListener("abort", listener);
  }
  client.emit("reconnecting");
  expect(aborted).toEqual(Array.from({ length: 999 }, (_, index) => 4001 + index));
  expect(abortSignal.aborted).toBe(true);
  expect(options().abortSignal.aborted).toBe(false);
  client.emit("reconnecting");
  expect(aborted).toHaveLength(999);
});

test("a client gets one listener, for any number of calls", () => {
  const client = new EventEmitter();
  const options = commandOptionsOf(client, "reconnecting");
  expect(commandOptionsOf(client, "reconnecting")).toBe(options);
  expect(client.listenerCount("reconnecting")).toBe(1);
});
