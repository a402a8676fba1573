import type { Batching } from "./batch.ts";
import { clusterDialect, clusterQueueKeyOf } from "./cluster-dialect.ts";
import { channelOf, inspectCall, queueKeyOf, type Dialect } from "./dialect.ts";
import { LonePartCall } from "./lone-part-call.ts";
import { PlainSetCall, ScriptCall, type NodeCall, type ScriptForm } from "./node-call.ts";
import { releaseCall } from "./release-call.ts";
import {
  holderOf,
  plainlyGranted,
  readPlainAcquire,
  readRenew,
  readTouch,
  renewAfterResend,
  touchAfterResend,
  type AcquireReply,
} from "./replies.ts";
import * as scripts from "./scripts/generated.ts";

const batching: Batching = {
  script: scripts.plainBatch,
  recordKey: undefined,
  head: [],
  strict: false,
};
const acquireForm = {
  script: scripts.plainAcquire,
  read: readPlainAcquire,
  code: "A",
  queueOf: queueKeyOf,
} as const;
const clusterForm = {
  script: scripts.plainAcquire,
  read: readPlainAcquire,
  queueOf: clusterQueueKeyOf,
};
const touchForm = {
  script: scripts.plainTouch,
  read: readTouch,
  code: "T",
  afterResend: touchAfterResend,
} as const;
const renewForm = { script: scripts.plainRenew, read: readRenew, afterResend: renewAfterResend };

/** Nothing was there, or a repeat of this very acquire had already set it. */
function readValue(value: string | undefined, owner: string): AcquireReply {
  if (value === undefined || value === owner) return plainlyGranted;
  return { kind: "held", holder: holderOf(value, undefined), freeInMs: undefined, rank: undefined };
}

/**
 * `SET NX PX` without fences, and scripts only for several resources, for waiting and extending. A
 * plain SET looks at no queue: whoever comes with it may get in before those who wait.
 */
export const plainDialect: Dialect = {
  fencing: false,
  batching,
  acquire(keys, owner, ttlMs, _proposal, place) {
    if (place === undefined) return plainAcquire(acquireForm, keys, owner, ttlMs);
    const args = [owner, String(ttlMs), String(place.ticket), place.id];
    const part = { code: "W", keys, queueOf: queueKeyOf, args } as const;
    return new LonePartCall(batching, part, readPlainAcquire);
  },
  touch(keys, owner, ttlMs) {
    return new ScriptCall(touchForm, keys, [owner, String(ttlMs)]);
  },
  renew(keys, held, ttlMs) {
    const args = [String(ttlMs)];
    for (const { owner } of held) args.push(owner);
    return new ScriptCall(renewForm, keys, args);
  },
  release: (keys, owner, place) => releaseCall(batching, keys, owner, place),
  inspect: (key) => inspectCall(key, queueKeyOf(key)),
  channelOf,
};

/** The same in a Cluster, where it stands in no queue: those who wait ask again and again. */
export const plainClusterDialect: Dialect = {
  ...plainDialect,
  batching: undefined,
  renew: undefined,
  acquire: (keys, owner, ttlMs) => plainAcquire(clusterForm, keys, owner, ttlMs),
  release: (keys, owner, place) => clusterDialect.release(keys, owner, place),
  inspect: (key) => clusterDialect.inspect(key),
  channelOf: (key, base) => clusterDialect.channelOf(key, base),
};

function plainAcquire(
  form: ScriptForm<AcquireReply>,
  keys: readonly string[],
  owner: string,
  ttlMs: number,
): NodeCall<AcquireReply> {
  const args = [owner, String(ttlMs)];
  if (keys.length > 1) return new ScriptCall(form, keys, args);
  return new PlainSetCall(form, keys, args, readValue);
}
