import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createLocks, FenceRejectedError } from "holdfast";
import { throwIfFenceRejected, withFence } from "holdfast/fencing/http";
import { memory } from "holdfast/memory";

/**
 * Two clients of a guarded service: the first loses its lease and writes after the second. Throws
 * unless the service refuses that write.
 *
 * @param {string} url of a document that can be PUT and GET as text
 */
export async function writeLate(url) {
  const locks = createLocks(memory());

  const slow = await locks.acquire("document:1", { ttl: "100ms", label: "slow" });
  await sleep(150); // stands for an upload that took too long
  assert.equal(slow.state, "lost");

  const quick = await locks.acquire("document:1", { label: "quick" });
  await put(url, quick, "from quick");
  console.log(`quick writes with fence ${quick.fence}: accepted`);

  // `slow.state` is "lost" here, but a holder that checked it just before the end would still
  // write.
  await assert.rejects(put(url, slow, "from slow"), (error) => {
    assert.ok(error instanceof FenceRejectedError);
    console.log(`slow writes with fence ${error.fence}: refused, ${error.seen} was seen`);
    return true;
  });

  const unguarded = await fetch(url, { method: "PUT", body: "without a fence" });
  console.log(`a write without a fence: ${unguarded.status} ${unguarded.statusText}`);
  assert.equal(unguarded.status, 428);

  const text = await (await fetch(url)).text();
  console.log(`the document says: ${text}`);
  assert.equal(text, "from quick");
  await locks.close();
}

/**
 * @param {string} url
 * @param {import("holdfast").Lease} lease
 * @param {string} body
 */
async function put(url, lease, body) {
  const response = await fetch(url, withFence(lease, { method: "PUT", body }));
  await throwIfFenceRejected(response, lease);
  assert.ok(response.ok, `the service answered ${response.status}`);
}
