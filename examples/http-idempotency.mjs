/**
 * An HTTP service that handles a request with an `Idempotency-Key` once, however often it is sent.
 *
 * A repeated request gets the first response again. While the first one is handled, others get 409.
 * The same key with another body gets 422. No framework is needed: `once` does the work.
 */

import assert from "node:assert/strict";
import { once as emitted } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { createLocks, isHoldfastError } from "holdfast";
import { memory } from "holdfast/memory";
import { memoryMemo, once } from "holdfast/once";

const locks = createLocks(memory()); // with several processes: redis(client)
const memo = memoryMemo(); // with several processes: postgresMemo(pool)
let orders = 0;

const server = createServer((request, response) => {
  handle(request, response).catch((error) => response.writeHead(500).end(String(error)));
});

/**
 * @param {import("node:http").IncomingMessage} request
 * @param {import("node:http").ServerResponse} response
 */
async function handle(request, response) {
  const key = request.headers["idempotency-key"];
  if (typeof key !== "string") {
    response.writeHead(400).end("no Idempotency-Key");
    return;
  }
  const body = await text(request);
  try {
    const options = { memo, wait: 0, fingerprint: body };
    const { status, content } = await once(locks, `POST /orders ${key}`, options, async () => {
      await sleep(100); // stands for the work
      orders += 1;
      return { status: 201, content: `order ${orders}: ${body}` };
    });
    response.writeHead(status).end(content);
  } catch (error) {
    if (isHoldfastError(error, "ACQUIRE_TIMEOUT")) {
      response.writeHead(409, { "retry-after": "1" }).end("the first request is being handled");
    } else if (isHoldfastError(error, "KEY_REUSED")) {
      response.writeHead(422).end("this key was used for another body");
    } else throw error;
  }
}

server.listen(0, "127.0.0.1");
await emitted(server, "listening");
const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());

/**
 * @param {string} key
 * @param {string} body
 */
async function post(key, body) {
  const init = { method: "POST", body, headers: { "idempotency-key": key } };
  const response = await fetch(`http://127.0.0.1:${port}/orders`, init);
  const line = `${response.status} ${await response.text()}`;
  console.log(`${key}, ${body}: ${line}`);
  return line;
}

const first = post("k1", "one book");
await sleep(50);
assert.match(await post("k1", "one book"), /^409/); // while the first is handled
assert.equal(await first, "201 order 1: one book");
assert.equal(await post("k1", "one book"), "201 order 1: one book"); // the same response again
assert.match(await post("k1", "two books"), /^422/);
assert.equal(await post("k2", "two books"), "201 order 2: two books");
console.log(`${orders} orders of 5 requests`);

server.close();
server.closeAllConnections();
await locks.close();
