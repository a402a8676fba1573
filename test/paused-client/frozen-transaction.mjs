// @ts-check
/**
 * A process that writes by `withGuard` and waits inside its transaction until a byte arrives on
 * stdin. Prints "inside" then, and "committed" or "failed" at the end.
 */

import { once } from "node:events";
import { writeSync } from "node:fs";
import mysql from "mysql2/promise";
import { Pool } from "pg";
import { loadPackage } from "./client-writes.mjs";

const { packageFolder, kind, address, fence, remainingMs } = JSON.parse(process.argv[2] ?? "");
const holdfast = await loadPackage(packageFolder);
const lease = { fence: BigInt(fence), resources: ["report"], remainingMs: () => remainingMs };

/** @param {{ query(sql: string): Promise<unknown> }} tx */
async function work(tx) {
  await tx.query("UPDATE report SET note = 'frozen'");
  writeSync(1, "inside\n");
  await once(process.stdin, "data");
  await tx.query("UPDATE report SET note = 'frozen, and too late'");
}

try {
  if (kind === "postgres") {
    await holdfast.postgres.withGuard(new Pool(address), lease, work);
  } else {
    await holdfast.mysql.withGuard(mysql.createPool(address), lease, work);
  }
  writeSync(1, "committed\n");
} catch {
  writeSync(1, "failed\n");
}
// Ends the pool as well.
process.exit();
