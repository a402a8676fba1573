import type { Batching } from "./batch.ts";
import { clusterDialect, clusterQueueKeyOf } from "./cluster-dialect.ts";
import { channelOf, inspectCall, queueKeyOf, type Dialect } from "./dialect.ts";
import { LonePartCall } from "./lone-part-call.ts";
import { PlainSetCall, ScriptCall, type NodeCall } from "./node-call.ts";
import { releaseCall } from "./release-call.ts";
import { holderOf, readPlainAcquire, readTouch, type AcquireReply } from "./replies.ts";
import * as scripts from "./scripts/generated.ts";

const granted: AcquireReply = { kind: "granted", fence: 0, runId: undefined };

const batching: Batching = {
  script: scripts.plainBatch,
  recordKey: undefined,
  head: [],
  strict: false,
};

/**
 * `SET NX PX` without fences, and scripts only for several resources, for waiting and extending. A
 * plain SET looks at no queue: whoever comes with it may get in before those who wait.
 */
export const plainDialect: Dialect = {
  fencing: false,
  batching,
  acquire(keys, owner, ttlMs, _proposal, place) {
    if (place === undefined) return plainAcquire(keys, keys.map(queueKeyOf), owner, ttlMs);
    const args = [owner, String(ttlMs), String(place.ticket), place.id];
    const queues = keys.map(queueKeyOf);
    return new LonePartCall(batching, { code: "W", keys, queues, args }, readPlainAcquire);
  },
  touch(keys, owner, ttlMs) {
    const args = [owner, String(ttlMs)];
    const part = { code: "T", keys, queues: [], args } as const;
    return new ScriptCall(scripts.plainTouch, keys, args, { read: readTouch, part });
  },
  release: (keys, owner, place) => releaseCall(batching, keys, owner, place),
  inspect: (key) => inspectCall(key, queueKeyOf(key)),
  channelOf,
};

/** The same in a Cluster, where it stands in no queue: those who wait ask again and again. */
export const plainClusterDialect: Dialect = {
  ...plainDialect,
  batching: undefined,
  acquire: (keys, owner, ttlMs) => {
    return plainAcquire(keys, keys.map(clusterQueueKeyOf), owner, ttlMs);
  },
  release: (keys, owner, place) => clusterDialect.release(keys, owner, place),
  inspect: (key) => clusterDialect.inspect(key),
  channelOf: (key, base) => clusterDialect.channelOf(key, base),
};

function plainAcquire(
  keys: readonly string[],
  queues: readonly string[],
  owner: string,
  ttlMs: number,
): NodeCall<AcquireReply> {
  const args = [owner, String(ttlMs)];
  const part = { code: "A", keys, queues, args } as const;
  const options = { read: readPlainAcquire, part };
  const script = new ScriptCall(scripts.plainAcquire, [...keys, ...queues], args, options);
  const [key] = keys;
  if (keys.length > 1 || key === undefined) return script;
  return new PlainSetCall<AcquireReply>(script, { key, owner, ttlMs }, (value) => {
    // Nothing was there, or a repeat of this very acquire had already set it.
    if (value === undefined || value === owner) return granted;
    return { kind: "held", holder: holderOf(value, undefined), freeInMs: undefined };
  });
}
