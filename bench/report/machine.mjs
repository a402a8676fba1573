// @ts-check
/** Describes the machine and the versions of a run. */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import { fileURLToPath } from "node:url";

/** @import { Machine } from "../types.ts" */

const root = fileURLToPath(new URL("../../", import.meta.url));

/** @param {string} program @param {readonly string[]} args */
function outputOf(program, args) {
  try {
    const stdio = /** @type {const} */ (["ignore", "pipe", "ignore"]);
    return execFileSync(program, [...args], {
      cwd: root,
      encoding: "utf8",
      stdio: [...stdio],
    }).trim();
  } catch {
    return "unknown";
  }
}

/** @returns {Machine} */
export function describeMachine() {
  const changed = outputOf("git", ["status", "--porcelain", "--", "src"]) === "" ? "" : ", changed";
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 1e9),
    system: `${type()} ${release()}`,
    node: process.version,
    redis: /v=([\d.]+)/.exec(outputOf("redis-server", ["--version"]))?.[1] ?? "unknown",
    date: new Date().toISOString().slice(0, 16).replace("T", " "),
    commit: outputOf("git", ["rev-parse", "--short", "HEAD"]) + changed,
    loadBefore: loadavg(),
  };
}

/**
 * Returns the versions of the contenders. @param {boolean} peers @returns {Record<string, string>}
 */
export function versionsInUse(peers) {
  /** @type {Record<string, string>} */
  const versions = {};
  const own = ["ioredis", "redis"].map((name) => [name, `node_modules/${name}`]);
  const others = ["redlock4", "redlock5", "redis-semaphore", "redlock-universal", "@verrou/core"];
  const added = others.map((name) => [name, `bench/node_modules/${name}`]);
  for (const [name = "", folder] of [...own, ...(peers ? added : [])]) {
    const { version } = JSON.parse(readFileSync(`${root}${folder}/package.json`, "utf8"));
    versions[name.replace(/^redlock[45]$/, (text) => `redlock ${text.slice(-1)}:`)] = version;
  }
  return versions;
}
