import type { Dialect } from "./dialect.ts";
import { PlainSetCall, ScriptCall } from "./node-call.ts";
import { holderOf, readPlainAcquire, readTouch, type AcquireReply } from "./replies.ts";
import * as scripts from "./scripts/generated.ts";

const granted: AcquireReply = { kind: "granted", fence: 0, runId: undefined };

const acquireForm = {
  script: scripts.plainAcquire,
  read: readPlainAcquire,
  code: "A",
} as const;
const touchForm = { script: scripts.plainTouch, read: readTouch, code: "T" } as const;

/** Nothing was there, or a repeat of this very acquire had already set it. */
function readValue(value: string | undefined, owner: string): AcquireReply {
  if (value === undefined || value === owner) return granted;
  return { kind: "held", holder: holderOf(value, undefined) };
}

/** `SET NX PX` without fences, and scripts only for several resources and for extending. */
export const plainDialect: Dialect = {
  fencing: false,
  batching: { script: scripts.plainBatch, recordKey: undefined, head: [], strict: false },
  acquire(keys, owner, ttlMs) {
    const args = [owner, String(ttlMs)];
    if (keys.length > 1) return new ScriptCall<AcquireReply>(acquireForm, keys, args);
    return new PlainSetCall(acquireForm, keys, args, readValue);
  },
  touch(keys, owner, ttlMs) {
    return new ScriptCall(touchForm, keys, [owner, String(ttlMs)]);
  },
};
