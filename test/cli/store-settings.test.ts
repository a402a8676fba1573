import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { watchLeaks } from "../support/leaks.ts";
import { builtCli } from "./cli-process.ts";

const cli = builtCli();
watchLeaks();

describe("holdfast store", () => {
  test("says which store is used, where that is set, and what is not used", async () => {
    const folder = cli.folder();
    writeFileSync(join(folder, "holdfast.json"), '{ "store": "embedded:./locks" }');
    const file = `embedded:${join(folder, "locks")} (from ${join(folder, "holdfast.json")})`;
    const plain = await cli.run(["store"], { cwd: folder });
    expect(plain).toMatchObject({ code: 0, stdout: `${file}\n`, stderr: "" });

    const env = { HOLDFAST_STORE: "redis://:secret@127.0.0.1:6380" };
    const variable = await cli.run(["store"], { cwd: folder, env });
    expect(variable.stdout).toBe(`redis 127.0.0.1:6380 (from HOLDFAST_STORE)\nnot used: ${file}\n`);

    const flag = await cli.run(["store", "--store", "embedded:/a", "--json"], { cwd: folder, env });
    const document = JSON.parse(flag.stdout) as { unused: { from: string }[] };
    expect(document).toMatchObject({ store: "embedded:/a", from: "from --store" });
    expect(document.unused[0]?.from).toBe("from HOLDFAST_STORE");
    expect(document.unused[1]?.from).toBe(`from ${join(folder, "holdfast.json")}`);
    expect(flag.stdout).not.toContain("secret");
  });

  test("names the default, and an unused address that is invalid", async () => {
    const folder = cli.folder();
    const usual = await cli.run(["store"], { cwd: folder });
    expect(usual.stdout).toMatch(/^embedded:.*locks \(the default\)\n$/);
    const env = { HOLDFAST_STORE: "redis:/secret" };
    const { code, stdout } = await cli.run(["store", "--store", "redis://a"], { env });
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: "redis a:6379 (from --store)\nnot used: an invalid address (from HOLDFAST_STORE)\n",
    });
  });
});

describe("holdfast init", () => {
  test("writes a holdfast.json that the other commands use", async () => {
    const folder = cli.folder();
    const path = join(folder, "holdfast.json");
    const made = await cli.run(["init", "--store", "embedded:./locks"], { cwd: folder });
    expect(made).toMatchObject({ code: 0, stderr: "" });
    expect(made.stdout).toBe(`${path}: embedded:${join(folder, "locks")}\n`);
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ store: "embedded:./locks" });
    const { stdout } = await cli.run(["store"], { cwd: folder });
    expect(stdout).toBe(`embedded:${join(folder, "locks")} (from ${path})\n`);
  });

  test("replaces an existing file only with --force", async () => {
    const folder = cli.folder();
    const path = join(folder, "holdfast.json");
    writeFileSync(path, '{ "ttl": "5s" }');
    const args = ["init", "--store", "redis://localhost"];
    const refused = await cli.run(args, { cwd: folder });
    expect(refused.code).toBe(64);
    expect(refused.stderr).toBe(`holdfast: ${path} exists: edit it, or replace it with --force\n`);
    expect(readFileSync(path, "utf8")).toBe('{ "ttl": "5s" }');
    expect((await cli.run([...args, "--force"], { cwd: folder })).code).toBe(0);
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ store: "redis://localhost" });
  });

  test("lets only its user read a file with a password, and never prints the password", async () => {
    const folder = cli.folder();
    const args = ["init", "--store", "redis://:secret@localhost"];
    const { code, stdout, stderr } = await cli.run(args, { cwd: folder });
    expect(code).toBe(0);
    expect(stdout + stderr).not.toContain("secret");
    expect(stderr).toContain("keep it out of version control");
    expect(statSync(join(folder, "holdfast.json")).mode & 0o777).toBe(0o600);
  });

  test("needs a valid store, and writes nothing otherwise", async () => {
    const folder = cli.folder();
    const missing = await cli.run(["init"], { cwd: folder });
    expect(missing.code).toBe(64);
    expect(missing.stderr).toContain("init needs a store: --store embedded:./locks");
    expect((await cli.run(["init", "--store", "bogus"], { cwd: folder })).code).toBe(64);
    expect((await cli.run(["store"], { cwd: folder })).stdout).toContain("(the default)");
  });

  test("says that HOLDFAST_STORE is used instead of the file", async () => {
    const env = { HOLDFAST_STORE: "redis://a" };
    const options = { cwd: cli.folder(), env };
    const { stderr } = await cli.run(["init", "--store", "embedded:./x"], options);
    expect(stderr).toContain("HOLDFAST_STORE is set");
  });
});

describe("embedded:DIR?maxTtl=…", () => {
  test("allows a longer or shorter TTL, and the default TTL fits", async () => {
    const folder = cli.folder();
    const store = `embedded:${folder}?maxTtl=1h`;
    const longer = ["exec", "r", "--store", store, "--ttl", "45m", "--", "true"];
    expect(await cli.run(longer)).toMatchObject({ code: 0, stderr: "" });
    const shorter = ["exec", "r", "--store", `embedded:${folder}?maxTtl=2s`, "--", "true"];
    expect(await cli.run(shorter)).toMatchObject({ code: 0, stderr: "" });
    const { stdout } = await cli.run(["store", "--store", store]);
    expect(stdout).toBe(`embedded:${folder} (from --store)\n`);
  });

  test("knows no other option, and leaves other question marks to the name", async () => {
    const folder = cli.folder();
    const bad = await cli.run(["ls", "--store", `embedded:${folder}?prefix=x`]);
    expect(bad.code).toBe(64);
    expect(bad.stderr).toContain("expected only maxTtl");
    const invalid = await cli.run(["ls", "--store", `embedded:${folder}?maxTtl=soon`]);
    expect(invalid.code).toBe(64);
    expect(invalid.stderr).toContain("maxTtl");
    const { stdout } = await cli.run(["store", "--store", `embedded:${folder}/what?`]);
    expect(stdout).toBe(`embedded:${folder}/what? (from --store)\n`);
  });
});
