// @ts-check
/**
 * A process that charges once. Started with the folder of a build of the library, the port of the
 * lock server, the kind and address of the memo, its table or prefix, and the moment at which it stops
 * to be killed or frozen: `before-begun`, `after-begun`, `after-work` or `after-done`.
 */
import { pathToFileURL } from "node:url";
import { Redis } from "ioredis";

const [build = "", lockPort = "", kind = "", url = "", place = "", moment = ""] =
  process.argv.slice(2);
const { createLocks } = await import(pathToFileURL(`${build}/index.js`).href);
const { redis } = await import(pathToFileURL(`${build}/stores/redis/index.js`).href);
const { once, mysqlMemo, postgresMemo, redisMemo } = await import(
  pathToFileURL(`${build}/once/index.js`).href
);

const client = new Redis({ host: "127.0.0.1", port: Number(lockPort) });
const locks = createLocks(redis(client), { ttl: 1_000 });

async function openMemo() {
  if (kind === "redis") {
    return redisMemo(new Redis(url), { prefix: `${place}:` });
  }
  if (kind === "postgres") {
    const { default: pg } = await import("pg");
    return postgresMemo(new pg.Pool({ connectionString: url }), { table: place });
  }
  const { default: mysql } = await import("mysql2/promise");
  return mysqlMemo(mysql.createPool(url), { table: place });
}

/** @param {object} message */
function send(message) {
  process.send?.(message);
}

/** Reports the moment, and waits for the parent. @param {string} reached */
async function at(reached) {
  if (reached !== moment) return;
  const resumed = new Promise((resolve) => process.once("message", resolve));
  send({ reached });
  await resumed;
}

const inner = await openMemo();
const memo = {
  read: (/** @type {string} */ key) => inner.read(key),
  /** @param {[lease: any, key: string, record: { state: string }, keepMs: number]} given */
  async write(...given) {
    const [, , { state }] = given;
    if (state === "begun") await at("before-begun");
    const outcome = await inner.write(...given);
    await at(`after-${state}`);
    return outcome;
  },
};

try {
  const receipt = await once(locks, "charge:42", { memo }, async () => {
    await client.incr("charges");
    await at("after-work");
    return { by: process.pid };
  });
  send({ receipt });
} catch (error) {
  const { code, cause } = /** @type {any} */ (error);
  send({ code, cause: cause?.code });
}
