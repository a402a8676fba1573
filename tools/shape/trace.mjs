// @ts-check
/**
 * Traces one acquire and one release on a real Redis server: the usual call for one resource,
 * without other callers, after the connection is open and the scripts are loaded. The sources are
 * compiled into another folder and instrumented there, so that every call is recorded.
 */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Redis } from "ioredis";
import { compile } from "../../scripts/build.mjs";
import { startRedis } from "../redis/redis-server.mjs";
import { instrument } from "./instrument.mjs";
import { startRecording, stopRecording } from "./recorder.mjs";
import { readFiles } from "./sources.mjs";
import { callCount, transferRows } from "./transfers.mjs";

/** @typedef {import("./recorder.mjs").Recording} Recording */
/** @typedef {import("./sources.mjs").SourceFile} SourceFile */
/** @typedef {import("./static.mjs").Row} Row */

const warmUpRounds = 5;
const rounds = 5;

/** @returns {Promise<Row[]>} */
export async function traceCalls() {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-shape-"));
  try {
    const files = buildInstrumented(folder);
    const { acquire, release } = await runCalls(folder);
    return [
      ...transferRows("acquire", acquire, files, { files: 20, pairs: 35 }),
      ...transferRows("release", release, files, { files: 15 }),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Compiles the sources into `folder` and returns the files as they were before they were changed.
 *
 * @param {string} folder
 * @returns {SourceFile[]} src/….js
 */
function buildInstrumented(folder) {
  // Without class fields, everything that `new` runs is in a constructor.
  const flags = ["--noCheck", "--useDefineForClassFields", "false"];
  const { status, output } = compile(join(folder, "src"), flags);
  if (status !== 0) throw new Error(`the sources do not compile:\n${output}`);
  const files = readFiles(folder, (path) => path.endsWith(".js"));
  for (const file of files) writeFileSync(join(folder, file.path), instrument(file));
  writeFileSync(join(folder, "package.json"), `{ "type": "module" }\n`);
  return files;
}

/** @param {string} folder @returns {Promise<{ acquire: Recording, release: Recording }>} */
async function runCalls(folder) {
  const source = pathToFileURL(join(folder, "src", "/"));
  /** @type {typeof import("../../src/index.ts")} */
  const { createLocks } = await import(new URL("index.js", source).href);
  /** @type {typeof import("../../src/stores/redis/index.ts")} */
  const { redis } = await import(new URL("stores/redis/index.js", source).href);
  const server = await startRedis();
  const client = new Redis(server.port, "127.0.0.1");
  client.on("error", () => undefined);
  const locks = createLocks(redis(client));
  try {
    // The first calls include the handshake with the server.
    for (let round = 0; round < warmUpRounds; round += 1) await traceRound(locks);
    /** @type {{ acquire: Recording, release: Recording }[]} */
    const traced = [];
    for (let round = 0; round < rounds; round += 1) traced.push(await traceRound(locks));
    return {
      acquire: shortest(traced.map(({ acquire }) => acquire)),
      release: shortest(traced.map(({ release }) => release)),
    };
  } finally {
    await locks.close();
    client.disconnect();
    await server.stop();
  }
}

/** @param {import("../../src/index.ts").Locks} locks */
async function traceRound(locks) {
  startRecording();
  const lease = await locks.acquire("resource");
  const acquire = stopRecording();
  startRecording();
  await lease.release();
  return { acquire, release: stopRecording() };
}

/**
 * Returns the recording with the fewest calls, because a timer during a round adds its own.
 *
 * @param {readonly Recording[]} recordings
 */
function shortest(recordings) {
  const [first] = recordings.toSorted((a, b) => callCount(a) - callCount(b));
  if (first === undefined) throw new Error("nothing was recorded");
  return first;
}
