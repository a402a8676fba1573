import { describe, expect, test } from "vitest";
import { createLocks } from "../../src/index.ts";
import { knownOptions } from "../../src/core/known-options.ts";
import { memory } from "../../src/stores/memory/index.ts";

const names = ["ttl", "wait", "renew", "maxHold", "retry", "signal", "label"];

describe("an unknown option", () => {
  test.each([
    ["timeout", "wait"],
    ["tll", "ttl"],
    ["TTL", "ttl"],
    ["ttlMs", "ttl"],
    ["timeoutMs", "wait"],
    ["waitt", "wait"],
    ["maxhold", "maxHold"],
    ["retryCount", "retry"],
    ["autoExtend", "renew"],
    ["abortSignal", "signal"],
  ])("%s is refused, with the name that was meant: %s", (given, meant) => {
    const message = `there is no option "${given}" (did you mean ${meant}?); known: ttl, wait, `;
    expect(() => knownOptions("options", { [given]: 1 }, names)).toThrow(message);
  });

  test.each(["constructor", "toString", "colour", "", "x".repeat(10_000)])(
    "%s is refused without a guess",
    (given) => {
      const refusal = () => knownOptions("options", { [given]: 1 }, names);
      expect(refusal).toThrow(/^there is no option "[^"]{0,80}"; known: ttl, /);
      expect(refusal).toThrow(expect.objectContaining({ option: given, code: "INVALID_OPTION" }));
    },
  );

  test("meant for a call is refused by the call", async () => {
    const locks = createLocks(memory());
    const options = { timeout: 5 } as object;
    await expect(locks.acquire("r", options)).rejects.toThrow("did you mean wait?");
    await locks.close();
  });
});

describe("a ttl above the store's maxTtl", () => {
  test("is refused with the remedy, in acquire and in extend", async () => {
    const locks = createLocks(memory());
    const remedy = /is longer than this store's maxTtl, 30 s\. Leases are renewed .* set maxTtl/;
    await expect(locks.acquire("r", { ttl: "60s" })).rejects.toThrow(/^ttl "60s" is longer/);
    await expect(locks.acquire("r", { ttl: 60_000 })).rejects.toThrow(/^ttl 60000 ms is longer/);
    await expect(locks.acquire("r", { ttl: "60s" })).rejects.toThrow(remedy);
    const lease = await locks.acquire("r");
    await expect(lease.extend("2m")).rejects.toThrow(remedy);
    await expect(locks.acquire("s", { ttl: "soon" as "1s" })).rejects.toThrow("Expected `ttl`");
    await locks.close();
  });
});
