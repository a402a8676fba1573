/**
 * A short tour on the memory store, without a server. Ends with exit code 0 only if everything
 * happened as shown.
 */

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createLocks, FenceRejectedError, LeaseLostError } from "holdfast";
import { memory } from "holdfast/memory";

const locks = createLocks(memory(), { ttl: "1s", wait: "5s" });

await takeTurns();
const stale = await loseALease();
await refuseTheStale(stale);
await locks.close();

console.log("\nAll of it happened as shown. What to try next:");
console.log(
  "  npm test                  everything, on real Redis, PostgreSQL and MariaDB servers",
);
console.log("  less README.md            how to use it, and what can go wrong");
console.log("  less docs/README.md       every page, by the question it answers");

async function takeTurns() {
  console.log('1. Three workers want "printer". Each holds it alone, with a greater fence.');
  let inside = 0;
  /** @type {bigint[]} */
  const fences = [];
  await Promise.all(
    ["ann", "bob", "cy"].map((name) =>
      locks.using("printer", { label: name }, async (lease) => {
        inside += 1;
        assert.equal(inside, 1, "two workers were inside at once");
        fences.push(lease.fence);
        console.log(`   ${name.padEnd(3)} prints with fence ${lease.fence}`);
        await sleep(150);
        inside -= 1;
      }),
    ),
  );
  assert.equal(fences.length, 3);
  assert.ok(fences.every((fence, turn) => turn === 0 || fence > (fences[turn - 1] ?? fence)));
}

async function loseALease() {
  console.log("\n2. A worker blocks its event loop for 400 ms while its lease lasts 200 ms.");
  let fence = 0n;
  const work = locks.using("register", { ttl: "200ms", label: "slow" }, (lease) => {
    fence = lease.fence;
    block(400);
    console.log(`   slow wakes up: state ${lease.state}, ${lease.remainingMs()} ms left`);
    assert.equal(lease.state, "lost");
    return "done";
  });
  const error = await work.then(
    () => assert.fail("work that outlived its lease was reported as a success"),
    (/** @type {unknown} */ reason) => reason,
  );
  assert.ok(error instanceof LeaseLostError);
  assert.equal(error.result, "done");
  console.log(`   using() rejects with ${error.code}: ${error.message}`);
  return fence;
}

/** @param {bigint} stale */
async function refuseTheStale(stale) {
  console.log("\n3. Another worker takes over and writes. Then the slow one's write arrives.");
  const register = guardedRegister();
  await locks.using("register", { label: "next" }, (lease) => {
    register.write(lease.fence, "from next");
    console.log(`   next writes with fence ${lease.fence}: accepted`);
  });
  assert.throws(() => register.write(stale, "from slow"), FenceRejectedError);
  console.log(`   slow writes with fence ${stale}: refused, ${register.last} was seen`);
  assert.equal(register.value, "from next");
  console.log(`   the register holds "${register.value}"`);
}

/**
 * Returns a guarded resource: it stores the greatest fence with the value, and refuses smaller
 * ones.
 */
function guardedRegister() {
  const register = {
    last: 0n,
    value: "",
    /**
     * @param {bigint} fence
     * @param {string} value
     */
    write(fence, value) {
      if (fence < register.last) throw new FenceRejectedError("register", fence, register.last);
      register.last = fence;
      register.value = value;
    },
  };
  return register;
}

/**
 * Blocks the only thread of this process, as a long computation or pause would.
 *
 * @param {number} ms
 */
function block(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
