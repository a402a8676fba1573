import type { Dialect } from "./dialect.ts";
import { PlainSetCall, ScriptCall } from "./node-call.ts";
import { holderOf, readPlainAcquire, readTouch, type AcquireReply } from "./replies.ts";
import * as scripts from "./scripts/generated.ts";

const granted: AcquireReply = { kind: "granted", fence: 0, runId: undefined };

/** `SET NX PX` without fences, and scripts only for several resources and for extending. */
export const plainDialect: Dialect = {
  fencing: false,
  batching: { script: scripts.plainBatch, recordKey: undefined, head: [], strict: false },
  acquire(keys, owner, ttlMs) {
    const args = [owner, String(ttlMs)];
    const part = { code: "A", keys, args } as const;
    const options = { read: readPlainAcquire, part };
    const script = new ScriptCall(scripts.plainAcquire, keys, args, options);
    const [key] = keys;
    if (keys.length > 1 || key === undefined) return script;
    return new PlainSetCall<AcquireReply>(script, { key, owner, ttlMs }, (value) => {
      // Nothing was there, or a repeat of this very acquire had already set it.
      if (value === undefined || value === owner) return granted;
      return { kind: "held", holder: holderOf(value, undefined) };
    });
  },
  touch(keys, owner, ttlMs) {
    const args = [owner, String(ttlMs)];
    const part = { code: "T", keys, args } as const;
    return new ScriptCall(scripts.plainTouch, keys, args, { read: readTouch, part });
  },
};
