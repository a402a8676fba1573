import { expect, test } from "vitest";
import { createLocks, type Finding, renderFindings } from "../../src/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import {
  readServerInfo,
  configValue,
  localAddress,
} from "../../src/stores/redis/node/server-info.ts";

const findings: readonly Finding[] = [
  { level: "error", code: "replica", node: "node-2", what: "a", why: "b", remedy: "c" },
  { level: "info", code: "single-node", what: "d", why: "e", remedy: "f" },
];

test("findings are rendered as plain text, three lines each", () => {
  expect(renderFindings(findings)).toBe(
    "error    node-2: a [replica]\n  why    b\n  to do  c\n\n" +
      "info     d [single-node]\n  why    e\n  to do  f\n",
  );
  expect(renderFindings([])).toBe("nothing found\n");
});

test("findings can be converted to JSON and back without loss", () => {
  expect(JSON.parse(JSON.stringify(findings))).toEqual(findings);
});

test("a store without servers has no findings about servers", async () => {
  const locks = createLocks(memory());
  expect((await locks.doctor()).filter(({ code }) => code !== "event-loop-stall")).toEqual([]);
  await locks.close();
  await expect(locks.doctor()).rejects.toThrow("closed");
});

test("an INFO with few fields is read as far as possible", () => {
  expect(readServerInfo("")).toMatchObject({ runId: undefined, role: undefined, memoryMax: 0 });
  expect(readServerInfo("# Server\r\nrole:slave\r\nasync_loading:1\r\n")).toMatchObject({
    role: "replica",
    loading: true,
    masterLinkUp: false,
  });
});

test("CONFIG GET and CLIENT INFO are read in the forms that clients return", () => {
  expect(configValue(["save", "3600 1"])).toBe("3600 1");
  expect(configValue({ save: "" })).toBe("");
  expect(configValue(new Map([["save", "60 1"]]))).toBe("60 1");
  expect(configValue([{ key: "save", value: "5 1" }])).toBe("5 1");
  expect(configValue("OK")).toBeUndefined();
  expect(localAddress("id=1 addr=10.0.0.9:4 laddr=10.0.0.1:6379 fd=8")).toBe("10.0.0.1");
  expect(localAddress("id=1 laddr=[::1]:6379 fd=8")).toBe("[::1]");
  expect(localAddress("id=1 addr=10.0.0.9:4 fd=8")).toBeUndefined();
});
