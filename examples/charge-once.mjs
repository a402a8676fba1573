/**
 * A charge that is made once, although its request is sent several times and its first worker dies.
 *
 * The worker is killed after the charge and before it could store the receipt. The next worker finds
 * that the work began and did not end. It asks the payment provider, which knows the charge by an
 * idempotency key that all workers share, instead of charging again.
 */

import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once as emitted } from "node:events";
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PGlite } from "@electric-sql/pglite";
import { createLocks } from "holdfast";
import { embedded } from "holdfast/embedded";
import { once, postgresMemo, postgresMemoSql } from "holdfast/once";

const [, , folder, name] = process.argv;

if (folder === undefined) await requests();
else await worker(folder, name);

/**
 * One worker, which handles the request to charge order 42.
 *
 * @param {string} folder
 * @param {string} name
 */
async function worker(folder, name) {
  const locks = createLocks(embedded(join(folder, "locks")), { ttl: "1s" });
  const database = new PGlite(join(folder, "database")); // stands for a Postgres server: new Pool()
  await database.exec(postgresMemoSql());
  const options = { memo: postgresMemo(database), fingerprint: { order: 42, amount: 99 } };

  const receipt = await once(locks, "charge:42", options, async () => {
    const charged = charge(folder, { key: "order-42", amount: 99 });
    if (name === "first") process.kill(process.pid, "SIGKILL"); // dies with the receipt in its hand
    return charged;
  });
  process.send?.({ name, receipt });

  if (name === "last") {
    const other = { ...options, fingerprint: { order: 42, amount: 1 } };
    const reused = once(locks, "charge:42", other, () => charge(folder, { key: "x", amount: 1 }));
    await assert.rejects(reused, { code: "KEY_REUSED" });
    console.log("the same key with another amount: refused, KEY_REUSED");
  }
  await database.close();
  await locks.close();
  process.disconnect();
}

/**
 * Stands for a payment provider that remembers keys.
 *
 * @param {string} folder
 * @param {{ key: string, amount: number }} order
 */
function charge(folder, { key, amount }) {
  const ledger = join(folder, "charges");
  const charges = existsSync(ledger) ? readFileSync(ledger, "utf8").trim().split("\n") : [];
  if (!charges.includes(key)) appendFileSync(ledger, `${key}\n`);
  return { id: `charge of ${key}`, amount };
}

async function requests() {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-example-charge-"));
  try {
    for (const name of ["first", "second", "last"]) {
      const child = fork(fileURLToPath(import.meta.url), [folder, name]);
      /** @type {{ receipt: { id: string } } | undefined} */
      let message;
      child.on("message", (sent) => (message = sent));
      const [code, signal] = await emitted(child, "exit");
      if (signal !== null) console.log(`${name} worker: killed after the charge`);
      else console.log(`${name} worker: ${message?.receipt.id}`);
      assert.equal(code ?? 0, 0);
    }
    const charges = readFileSync(join(folder, "charges"), "utf8").trim().split("\n");
    assert.deepEqual(charges, ["order-42"]);
    console.log("3 requests, 1 charge");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
