import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hashOf, hexOf } from "../../src/stores/redis/groups/hash.ts";
import { Rendezvous } from "../../src/stores/redis/groups/rendezvous.ts";

const id = fc.stringMatching(/^[\w.-]{1,40}$/);
const ids = fc.uniqueArray(id, { minLength: 2, maxLength: 12 });

function homes(groups: readonly string[], keys: readonly string[]): (string | undefined)[] {
  const rendezvous = new Rendezvous(groups);
  return keys.map((key) => groups[rendezvous.homeOf(key)]);
}

// Part of the wire format: a change here is a change of layout for all clients.
const hashes = {
  "": "ab3e7c0bebb6c228",
  a: "1a80b1b310c18171",
  "invoice:42": "0ce73defd984bf23",
  größe: "cda1b73cc9063314",
  "🔒": "39a8d91e17222dd8",
};

test.each(Object.entries(hashes))("the hash of %j never changes", (text, expected) => {
  expect(hexOf(hashOf(text))).toBe(expected);
});

test("the groups of some keys never change", () => {
  const keys = ["invoice:42", "account:7", "nightly", "größe", "🔒", "a", "b", "c"];
  expect(homes(["1", "2", "3", "4"], keys).join("")).toBe("31441231");
});

test("text beyond ASCII is hashed by its UTF-8 bytes", () => {
  const bytes = new TextEncoder().encode("ü");
  expect([...bytes]).toEqual([0xc3, 0xbc]);
  expect(hexOf(hashOf("xü"))).not.toBe(hexOf(hashOf("xu")));
  expect(hexOf(hashOf("xü"))).toBe(hexOf(hashOf("x\u00fc")));
});

/** Typical keys, and those that a weak hash would spread worst. */
const shapes: Record<string, (n: number) => string> = {
  "numbers at the end": (n) => `invoice:${n}`,
  "numbers in front": (n) => `${n}:lock`,
  "one letter apart": (n) => String.fromCodePoint(33 + (n % 90), 33 + (Math.floor(n / 90) % 90)),
  "the same long prefix": (n) => `${"tenant/".repeat(30)}${n.toString(36)}`,
  "beyond ASCII": (n) => `größe-${n}-🔒`,
};

describe.each(Object.entries(shapes))("keys with %s", (_name, shape) => {
  test("are spread evenly over any groups", () => {
    const count = 8_000;
    const keys = Array.from({ length: count }, (_, n) => shape(n));
    fc.assert(
      fc.property(ids, (groups) => {
        const counts = new Map<string | undefined, number>();
        for (const home of homes(groups, keys)) counts.set(home, (counts.get(home) ?? 0) + 1);
        const fair = count / groups.length;
        // Six times the spread of fair dice: the shares of a good hash never reach that.
        const spread = 6 * Math.sqrt(fair * (1 - 1 / groups.length));
        for (const group of groups) {
          expect(Math.abs((counts.get(group) ?? 0) - fair)).toBeLessThan(spread);
        }
      }),
      { numRuns: 20, seed: 5 },
    );
  });
});

test("a new group takes keys only for itself, and a removed one leaves the other keys in place", () => {
  fc.assert(
    fc.property(ids, fc.array(fc.string({ unit: "binary" }), { minLength: 50 }), (groups, keys) => {
      const [last] = groups.slice(-1);
      const fewer = groups.slice(0, -1);
      const before = homes(fewer, keys);
      for (const [index, home] of homes(groups, keys).entries()) {
        if (home !== last) expect(home).toBe(before[index]);
      }
    }),
    { numRuns: 50 },
  );
});

test("the order in which groups are given does not matter", () => {
  fc.assert(
    fc.property(ids, fc.array(fc.string()), (groups, keys) => {
      expect(homes(groups.toReversed(), keys)).toEqual(homes(groups, keys));
    }),
  );
});

test("resources with the same hash tag are in the same group", () => {
  const groups = ["1", "2", "3", "4", "5"];
  const keys = Array.from({ length: 100 }, (_, n) => `{account:7}:${n}`);
  expect(new Set(homes(groups, keys)).size).toBe(1);
  expect(homes(groups, ["account:7"])).toEqual(homes(groups, keys.slice(0, 1)));
  const untagged = keys.map((key) => `{}${key}`);
  expect(new Set(homes(groups, untagged)).size).toBe(5);
});
