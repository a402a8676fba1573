import { conformanceCase } from "./bench.ts";
import { present, same, sameList } from "./check.ts";
import type { ConformanceCase } from "./harness.ts";

const lengthy = 1_000;

/** Names that have broken lock libraries before: by encoding, separators, patterns or length. */
const oddNames: readonly (readonly [what: string, suffix: string])[] = [
  ["spaces", "  two words and an end "],
  ["braces", "{}{a}}{"],
  ["colons and bars", ":a::b|c|"],
  ["line breaks", "a\nb\r\nc\td"],
  ["quotes and backslashes", `"a" 'b' \\ \`c\``],
  ["patterns", "*?[a-z]%_^$"],
  ["slashes", "/a//b/../c."],
  ["other scripts", "ключ-鍵-مفتاح-κλειδί"],
  ["an emoji of several code points", "👩‍👩‍👧‍👦🏳️‍🌈"],
  ["an accent apart from its letter", "e\u0301"],
  ["a zero character", "a\u0000b"],
];

export const naming: readonly ConformanceCase[] = [
  ...oddNames.map(([what, suffix]) =>
    conformanceCase(`takes a resource name with ${what}`, async (bench) => {
      const [ours, theirs] = [await bench.open(), await bench.open()];
      const resource = bench.resource(suffix);
      const lease = await ours.acquire(resource, { label: suffix });
      sameList(lease.resources, [resource], "the resources");
      same(await theirs.tryAcquire(resource), undefined, "a rival");
      const { state, label, resource: seen } = await theirs.inspect(resource);
      same(seen, resource, "the name in the inspection");
      same(state, "held", "the state in the store");
      same(label, suffix, "the label in the store");
      same(await lease.prove(), true, "the proof");
      await lease.extend();
      same((await lease.release()).released, true, "the release");
      present(await theirs.tryAcquire(resource), "a rival after the release");
    }),
  ),

  conformanceCase(`distinguishes names of ${lengthy} characters by their last`, async (bench) => {
    const locks = await bench.open();
    const filler = "x".repeat(lengthy - bench.resource("").length - 1);
    const [one, other] = [bench.resource(`${filler}1`), bench.resource(`${filler}2`)];
    same(one.length, lengthy, "the length");
    const lease = await locks.acquire(one);
    present(await locks.tryAcquire(other), "the other");
    same(await locks.tryAcquire(one), undefined, "the same again");
    same((await lease.release()).released, true, "the release");
  }),

  conformanceCase("distinguishes names that only look alike", async (bench) => {
    const locks = await bench.open();
    const alike = ["\u00e9", "e\u0301", "E\u0301", "\u00c9", " e", "e ", "e"];
    for (const suffix of alike) {
      present(await locks.tryAcquire(bench.resource(suffix)), JSON.stringify(suffix));
    }
  }),
];
