import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { projectRoot } from "./support/source-files.ts";

function ensureServers(path: string): { status: number | null; stdout: string; stderr: string } {
  const env = { ...process.env, PATH: path, NODE_OPTIONS: "" };
  const script = join(projectRoot, "scripts", "ensure-servers.mjs");
  return spawnSync(process.execPath, [script], { env, encoding: "utf8" });
}

test("does nothing and reports it if every server is installed", () => {
  const { status, stdout, stderr } = ensureServers(process.env["PATH"] ?? "");
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "", stderr: "" });
});

test("names the package of a server that is missing and cannot be installed", () => {
  const { status, stderr } = ensureServers("");
  expect(status).toBe(1);
  expect(stderr).toContain("Redis 7 or later: redis-server was not found");
  expect(stderr).toContain("package redis-server");
});

test("refuses a Redis that is too old", () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-servers-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const program = join(folder, "redis-server");
  writeFileSync(program, "#!/bin/sh\necho 'Redis server v=6.0.16 sha=00000000:0 bits=64'\n");
  chmodSync(program, 0o755);
  // Without apt-get on the PATH, nothing is installed.
  const { status, stderr } = ensureServers([folder, join(folder, "none")].join(delimiter));
  expect(status).toBe(1);
  expect(stderr).toContain("found version 6.0.16");
});
