// @ts-check
/** All contenders. */

import { openFloor } from "./floor.mjs";
import { before, openHoldfast } from "./holdfast.mjs";
import { openLimit } from "./limit.mjs";
import { openRedisSemaphore, openRedlock4, openRedlock5 } from "./peers.mjs";
import { openRedlockUniversal, openVerrou } from "./peers.mjs";

/** @import { ContenderKind, Settings } from "../types.ts" */

/** @type {readonly (1 | 5)[]} */
const oneOrFive = [1, 5];

/**
 * @param {string} id
 * @param {string} title
 * @param {boolean} fencing
 * @param {"ioredis" | "node-redis"} client
 * @param {string} [build]
 * @returns {ContenderKind}
 */
function holdfast(id, title, fencing, client, build) {
  const kind = { fencing, client, ...(build === undefined ? {} : { build }) };
  const open = (/** @type {Settings} */ settings) => openHoldfast(settings, kind);
  return { id, title, peer: false, nodes: oneOrFive, open };
}

/** @param {string} id @param {string} title @param {boolean} enableAutoPipelining */
function redisSemaphore(id, title, enableAutoPipelining) {
  const open = (/** @type {Settings} */ settings) =>
    openRedisSemaphore(settings, { enableAutoPipelining });
  return { id, title, peer: true, nodes: oneOrFive, open };
}

/** @type {readonly ContenderKind[]} */
export const contenderKinds = [
  { id: "floor", title: "F, raw ioredis", peer: false, nodes: oneOrFive, open: openFloor },
  { id: "limit", title: "limit, raw socket", peer: false, nodes: oneOrFive, open: openLimit },
  holdfast("fenced", "Holdfast, fenced", true, "ioredis"),
  holdfast("unfenced", "Holdfast, unfenced", false, "ioredis"),
  ...(before === undefined
    ? []
    : [
        holdfast("fenced-before", "Holdfast before, fenced", true, "ioredis", before),
        holdfast("unfenced-before", "Holdfast before, unfenced", false, "ioredis", before),
      ]),
  holdfast("fenced-node-redis", "Holdfast, fenced, node-redis", true, "node-redis"),
  holdfast("unfenced-node-redis", "Holdfast, unfenced, node-redis", false, "node-redis"),
  { id: "redlock4", title: "redlock 4", peer: true, nodes: oneOrFive, open: openRedlock4 },
  { id: "redlock5", title: "redlock 5", peer: true, nodes: oneOrFive, open: openRedlock5 },
  redisSemaphore("redis-semaphore", "redis-semaphore", false),
  redisSemaphore("redis-semaphore-auto", "redis-semaphore, autopipelining", true),
  {
    id: "redlock-universal",
    title: "redlock-universal",
    peer: true,
    nodes: oneOrFive,
    open: openRedlockUniversal,
  },
  { id: "verrou", title: "verrou", peer: true, nodes: [1], open: openVerrou },
];

/** @param {string} id */
export function kindOf(id) {
  const kind = contenderKinds.find((each) => each.id === id);
  if (kind === undefined) throw new Error(`no contender is called ${id}`);
  return kind;
}

/** @param {string} id */
export function titleOf(id) {
  const [name = id, variant] = id.split("@");
  const title = kindOf(name).title;
  return variant === undefined ? title : `${title}, ${variant}`;
}
