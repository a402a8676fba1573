// @ts-check
/**
 * The lock as one writes it by hand, for any way of sending commands: SET NX PX, and a script that
 * deletes the key if the value is still ours. On several nodes a majority decides, as soon as it
 * is certain, and a failed attempt is undone on all nodes.
 */

import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * @import { Contender, Settings } from "../types.ts"
 * @typedef {{
 *   set(key: string, value: string, ttlMs: number): Promise<boolean>,
 *   unset(key: string, value: string): Promise<boolean>,
 *   renew(key: string, value: string, ttlMs: number): Promise<boolean>,
 * }} RawNode
 * @typedef {{ key: string, value: string, timer?: NodeJS.Timeout }} Held
 */

export const unsetScript =
  'if redis.call("get",KEYS[1])==ARGV[1] then return redis.call("del",KEYS[1]) end return 0';
export const renewScript =
  'if redis.call("get",KEYS[1])==ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) end ' +
  "return 0";

/**
 * @param {readonly RawNode[]} nodes
 * @param {(node: RawNode) => Promise<boolean>} call
 * @returns {Promise<boolean>}
 */
function majority(nodes, call) {
  const [only] = nodes;
  if (nodes.length === 1 && only !== undefined) return call(only);
  const needed = (nodes.length >> 1) + 1;
  return new Promise((resolve) => {
    let yes = 0;
    let no = 0;
    const settle = (/** @type {boolean} */ agreed) => {
      if (agreed) yes += 1;
      else no += 1;
      if (yes === needed) resolve(true);
      else if (no > nodes.length - needed) resolve(false);
    };
    for (const node of nodes) call(node).then(settle, () => settle(false));
  });
}

/**
 * @param {readonly RawNode[]} nodes
 * @param {Settings} settings
 * @param {() => Promise<void>} close
 * @returns {Contender}
 */
export function rawLock(nodes, { ttlMs, waitMs, pollMs = 10, renewEveryMs }, close) {
  // Unique without random bytes for each lock, as in the fastest hand-written one.
  const process = randomBytes(8).toString("hex");
  let count = 0;

  /** @param {string} key @returns {Promise<Held>} */
  async function acquire(key) {
    const deadlineMs = waitMs === 0 ? 0 : performance.now() + waitMs;
    for (;;) {
      const value = process + (count += 1);
      if (await majority(nodes, (node) => node.set(key, value, ttlMs))) return { key, value };
      if (nodes.length > 1) await majority(nodes, (node) => node.unset(key, value));
      if (performance.now() >= deadlineMs) throw new Error("held by another");
      await sleep(pollMs * (0.5 + Math.random()));
    }
  }

  /** @param {Held} held */
  async function release({ key, value }) {
    if (!(await majority(nodes, (node) => node.unset(key, value)))) throw new Error("was not ours");
  }

  return {
    acquire,
    release: (held) => release(/** @type {Held} */ (held)),
    async keep(resource) {
      const held = await acquire(resource);
      const renew = () => {
        void majority(nodes, (node) => node.renew(held.key, held.value, ttlMs));
      };
      held.timer = setInterval(renew, renewEveryMs);
      return held;
    },
    drop(kept) {
      const held = /** @type {Held} */ (kept);
      clearInterval(held.timer);
      return release(held);
    },
    close,
  };
}
