import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { watchLeaks } from "../support/leaks.ts";
import { required } from "../support/requirements.ts";
import { builtCli, type Ended } from "./cli-process.ts";

const cli = builtCli();
watchLeaks();

/** Expects one line on stderr that matches `message`, nothing on stdout, and no stack trace. */
function expectRefusal({ code, stdout, stderr }: Ended, wanted: number, message: RegExp): void {
  expect({ code, stdout }).toEqual({ code: wanted, stdout: "" });
  expect(stderr).toMatch(/^holdfast: [^\n]+\n$/);
  expect(stderr).toMatch(message);
  expect(stderr).not.toMatch(/^\s+at /m);
}

const misuses: readonly (readonly [string, RegExp])[] = [
  ["bogus", /unknown command 'bogus'/],
  ["wacth", /unknown command 'wacth'.*watch/],
  ["--bogus", /unknown option '--bogus'/],
  ["exec", /missing required argument 'resource'/],
  ["exec r", /needs a command after --/],
  ["exec r --", /needs a command after --/],
  ["exec r --ttl ten -- true", /expected --ttl to be a duration.*got "ten"/],
  ["exec r --ttl 1ms -- true", /expected --ttl/],
  ["exec r --ttl 10 -- true", /expected --ttl.*got "10"/],
  ["exec r --wait -1s -- true", /--wait/],
  ["exec r --grace 20s -- true", /expected --grace to be a duration from 0 ms to 10s/],
  ["exec r --bogus -- true", /unknown option '--bogus'/],
  ["exec r --ttl 40s -- true", /longer than this store.s maxTtl, 30 s/],
  ["inspect", /missing required argument 'resource'/],
  ["inspect a b", /too many arguments/],
  ["ls a", /too many arguments/],
  ["wait", /missing required argument 'resource'/],
  ["wait r --timeout soon", /expected --timeout/],
  ["break", /missing required argument 'resource'/],
  ["watch --interval 1", /expected --interval/],
  ["doctor --ttl x", /expected --ttl/],
  ["bench --duration 0s", /expected --duration/],
  ["bench --in-flight none", /expected --in-flight to be a number from 1 to 10000/],
  ["simulate --seed x", /expected --seed to be a number/],
  ["simulate --html /nowhere/at/all.html", /cannot write/],
  ["fence", /a command is missing/],
  ["fence check", /needs a fence/],
  ["fence lower 5", /required option '--file/],
  ["fence check 5", /needs --file PATH, or --redis URL/],
  ["fence check five --file f", /expected the fence to be a number above 0, got "five"/],
  ["fence check 5 --redis redis://127.0.0.1", /needs --key NAME/],
  ["fence check 5 --redis http://x --key k", /expected the store to be/],
  ["completion", /missing required argument 'shell'/],
  ["completion csh", /expected one of bash, zsh, fish, got "csh"/],
  ["help nothing", /no help about "nothing"/],
  ["ls --store mysql://x", /expected the store to be embedded:DIR/],
  ["ls --store embedded:", /lacks its directory/],
  ["ls --store redlock:redis://a", /at least two addresses/],
  ["ls --store redis://a/db", /expected a database number/],
  ["ls --store redis://a?bogus=1", /expected only prefix/],
  ["ls --store redis://a?ca=f", /need a rediss/],
  ["ls --store rediss://127.0.0.1:1?ca=/nowhere", /cannot read \/nowhere/],
  [
    "ls --store redis://127.0.0.1?fencing=perhaps",
    /expected fencing in a store address to be true or false/,
  ],
];

describe("misuse ends with exit code 64 and one line on stderr", () => {
  test.each(misuses)("%s", async (line, message) => {
    expectRefusal(await cli.run(line.split(" ")), 64, message);
  });

  test("an empty resource", async () => {
    expectRefusal(await cli.run(["inspect", ""]), 64, /`resource`/);
  });

  test.each([
    ["{", /is not JSON/],
    ["[]", /one JSON object/],
    ['{ "stroe": "x" }', /expected one of store.*got "stroe"/],
    ['{ "ttl": 5 }', /expected "ttl".*to be a text/],
    ['{ "store": "nothing" }', /expected the store to be/],
  ])("a config file that says %s", async (text, message) => {
    const folder = cli.folder();
    writeFileSync(join(folder, "holdfast.json"), text);
    expectRefusal(await cli.run(["ls"], { cwd: folder }), 64, message);
  });

  test("a config file that cannot be read, instead of another store", async () => {
    const folder = cli.folder();
    mkdirSync(join(folder, "holdfast.json"));
    const args = ["exec", "r", "--", "echo", "ran"];
    expectRefusal(await cli.run(args, { cwd: folder }), 64, /holdfast\.json cannot be read/);
    expectRefusal(await cli.run(["ls"], { cwd: folder }), 64, /holdfast\.json cannot be read/);
  });

  test("a config file that another user may not read", async (context) => {
    required(context, "the rights of root", process.getuid?.() === 0 ? 0 : undefined);
    const folder = cli.folder();
    chmodSync(folder, 0o755);
    writeFileSync(join(folder, "holdfast.json"), '{ "store": "embedded:./locks" }', {
      mode: 0o600,
    });
    const asOther = (command: readonly string[]): readonly string[] => {
      return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", ...command];
    };
    const args = ["exec", "r", "--", "echo", "ran"];
    const ended = await cli.run(args, { cwd: folder, through: asOther });
    expectRefusal(ended, 64, /holdfast\.json cannot be read: EACCES/);
  });

  test("a break that needs a confirmation but has no terminal", async () => {
    const store = `embedded:${cli.folder()}`;
    const inner = [process.execPath, cli.program, "break", "r", "--store", store];
    const ended = await cli.run(["exec", "r", "--store", store, "--", ...inner]);
    expectRefusal(ended, 64, /there is no terminal: use --yes/);
  });
});

test("--json prints errors as JSON, --debug adds a stack trace", async () => {
  const json = await cli.run(["ls", "--store", "nothing", "--json"]);
  expect(json.code).toBe(64);
  expect(JSON.parse(json.stderr)).toMatchObject({ error: { exit: "misuse", code: 64 } });
  const debug = await cli.run(["ls", "--store", "nothing", "--debug"]);
  expect(debug.stderr).toMatch(/^holdfast: [^\n]+\n[^]*^\s+at /m);
});

describe("a password never appears in a message", () => {
  const secret = "hidden";
  const addresses = [
    `redsi://user:${secret}@host`,
    `redis:/user:${secret}@host`,
    `user:${secret}@host`,
    `redis://user:a/${secret}@host`,
    `redlock:redis://user:a,${secret}@host,redis://other`,
    `redis://user:%${secret}@host`,
    `redis://user:1?${secret}@host`,
  ];

  test.each(addresses)("of %s", async (address) => {
    const folder = cli.folder();
    writeFileSync(join(folder, "holdfast.json"), JSON.stringify({ store: address }));
    const runs = [
      cli.run(["ls", "--debug", "--store", address]),
      cli.run(["ls", "--debug"], { env: { HOLDFAST_STORE: address } }),
      cli.run(["exec", "r", "--debug", "--", "true"], { cwd: folder }),
      cli.run(["demo", "--debug", "--store", address]),
      cli.run(["fence", "check", "1", "--debug", "--key", "k", "--redis", address]),
      cli.run(["ls", address]),
      cli.run([address]),
    ];
    for (const { code, stdout, stderr } of await Promise.all(runs)) {
      expect({ code, stdout }).toEqual({ code: 64, stdout: "" });
      expect(stderr).toMatch(/^holdfast: [^\n]+\n/);
      expect(stderr).not.toContain(secret);
    }
  });

  test("of a config file that is not JSON, which names the line", async () => {
    const folder = cli.folder();
    const text = `{\n  "store": "redis://user:${secret}@host"\n  "ttl": "10s"\n}\n`;
    writeFileSync(join(folder, "holdfast.json"), text);
    const { code, stderr } = await cli.run(["ls", "--debug"], { cwd: folder });
    expect(code).toBe(64);
    expect(stderr).toMatch(/holdfast\.json is not JSON: see line 3\n/);
    expect(stderr).not.toContain(secret);
  });
});

test("a directory that belongs to another user ends with 77", async (context) => {
  required(context, "root, to become another user", process.getuid?.() === 0 ? true : undefined);
  const folder = cli.folder();
  chmodSync(folder, 0o755);
  const asOther = (command: readonly string[]): readonly string[] => {
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", ...command];
  };
  const store = ["--store", `embedded:${folder}`];
  for (const args of [["ls"], ["exec", "r", ...store, "--", "true"]]) {
    const ended = await cli.run(args[0] === "ls" ? [...args, ...store] : args, {
      through: asOther,
    });
    expectRefusal(ended, 77, /no permission to keep locks in/);
  }
});

test("a directory that cannot be created is reported in one line", async () => {
  const file = join(cli.folder(), "file");
  writeFileSync(file, "");
  expectRefusal(await cli.run(["ls", "--store", `embedded:${file}`]), 64, /directory/);
});
