import { ForeignHolderError } from "../../../core/errors.ts";
import { quoted } from "../../../core/report/quoted.ts";

/** Usual contents of a key by its type, for the types that no lock of Holdfast has. */
const usually: Readonly<Record<string, string>> = {
  hash: "a lock of Redisson (RLock)",
  zset: "a semaphore of redis-semaphore",
  list: "a queue of jobs",
  set: "a set of members, and no lock",
  stream: "a stream of events, and no lock",
};

/** Returns the error for a key of another type. `type` is "-" if the script may not read it. */
export function wrongType(type: string, key: string): ForeignHolderError {
  const what = type === "-" ? "something that is no text" : `a ${type}`;
  const use = usually[type];
  return new ForeignHolderError(
    type === "-" ? "unknown" : type,
    `the key ${quoted(key)} holds ${what}${use === undefined ? "" : `, usually ${use}`}: it ` +
      "cannot be locked together with that, and waiting does not help. Use another name, or give " +
      "the store a prefix",
  );
}
