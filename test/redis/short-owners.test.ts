import { expect, test } from "vitest";
import { Owners } from "../../src/core/owners.ts";
import { resolveStoreOptions } from "../../src/stores/redis/options.ts";
import { RedisGrant, SharedGrantFields } from "../../src/stores/redis/protocol/grant.ts";

const fields = new SharedGrantFields(resolveStoreOptions({}, 1));

function grantOf(owner: string): RedisGrant {
  return new RedisGrant(fields.of(10_000), { resources: ["a"], owner }, 1, 1, 0);
}

test("a grant returns its owner unchanged, whatever the label and the counter", () => {
  const owners = new Owners({ fraction: () => 0.5, uniqueBase: () => "0123456789-abcdef-_012" });
  const labels = [undefined, "host-1:4711", "a job|12", "größe@1", "-", "@", "x-1"];
  const more = Array.from({ length: 12 }, (_, index) => `worker-${index}`);
  const made = Array.from({ length: 3_000 }, (_, index) => {
    const all = [...labels, ...more];
    return owners.next(all[index % all.length]);
  });
  const others = [
    "hf:another-base-000000000-1",
    "hf:0123456789-abcdef-_012-01",
    "hf:0123456789-abcdef-_012-",
    "hf:0123456789-abcdef-_012-1@",
    "of another client",
    "",
  ];
  const all = [...made, ...others];
  const grants = all.map(grantOf);
  expect(grants.map(({ owner }) => owner)).toEqual(all);
  // Read in another order than they were made: the grants share what they have in common.
  expect(grants.toReversed().map(({ owner }) => owner)).toEqual(all.toReversed());
});
