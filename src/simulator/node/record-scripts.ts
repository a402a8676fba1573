import {
  atOf,
  nowMsOf,
  proposalMaxOf,
  type ScriptBody,
  type ScriptContext,
} from "./script-context.ts";

/** Result of the first check in every script that grants locks. */
export interface MayVote {
  /** Reply to every acquire and touch if the node may not vote. Undefined if it may vote. */
  readonly refusal: string | undefined;
  /** First characters of the server's run id, or "-" if the script did not check it. */
  readonly rid: string;
}

/** Long field value of the node record. It makes a real server store the record as a table. */
const note = "holdfast-node-record:a-value-of-this-length-makes-it-a-table-and-no-list";

const hourMs = 3_600_000;

/**
 * Works like `_record.lua`: decides if this node may vote, and updates the node record (the hash
 * that Holdfast keeps on each server).
 */
export function mayVote(context: ScriptContext): MayVote {
  const { data, keys, args, runId } = context;
  const [record = ""] = keys;
  const [verify, admission, format = "", ttlMax = ""] = args;
  const kept = data.hash(record);
  const fmt = kept?.get("fmt");
  let rid = kept?.get("rid");
  let st = kept?.get("st");
  let since = kept?.get("since");
  let max = kept?.get("max");
  const isOff = admission !== "strict";
  const strict = !isOff || st !== undefined;
  const isNew = strict && st === undefined;
  if (verify === "1" || rid === undefined || isNew || (strict && isOff)) {
    if (rid !== runId || isNew) {
      kept?.delete("st");
      data.hset(record, ["rid", runId, "note", note]);
      if (fmt === undefined) data.hset(record, ["fmt", format]);
      if (strict) {
        if (max === undefined) {
          max = ttlMax;
          data.hset(record, ["max", max]);
        }
        since = String(nowMsOf(context));
        st = "Q";
        data.hset(record, ["st", st, "since", since]);
      }
      rid = runId;
    }
  }
  if (fmt !== undefined && fmt !== format) return { refusal: `X FORMAT ${fmt}`, rid: "-" };
  if (st !== undefined && isOff) noteOff(context);
  const cut = strict ? rid.slice(0, 12) : "-";
  if (strict && st !== "A") {
    const ever = kept?.get("ever") ?? "0";
    return { refusal: `B ${since ?? ""} ${ever} ${max ?? ttlMax}`, rid: cut };
  }
  return { refusal: undefined, rid: cut };
}

/** Records when a client with admission off last used a node with strict admission. */
function noteOff(context: ScriptContext): void {
  const { data, keys } = context;
  const [record = ""] = keys;
  const nowMs = nowMsOf(context);
  const seen = data.hash(record)?.get("off");
  if (seen === undefined || nowMs - Number(seen) >= hourMs) {
    data.hset(record, ["off", String(nowMs)]);
  }
}

/** Works like `node-record.lua`. */
export const nodeRecord: ScriptBody = (context) => {
  const { refusal } = mayVote(context);
  if (refusal?.startsWith("X") === true) return refusal;
  const all = [...(context.data.hash(context.keys[0] ?? "") ?? [])].flat();
  return ["W", atOf(context), String(context.uptimeSeconds), all.join(" ")].join(" ");
};

/** Works like `admit.lua`. */
export const admit: ScriptBody = (context) => {
  const { data, keys, args, runId } = context;
  const [record = ""] = keys;
  const [mode = "", seenRid, seenSince, quarantine, known = "0", wallUs = "0"] = args;
  const kept = data.hash(record);
  if (kept === undefined || kept.get("rid") !== seenRid) return "C";
  if (kept.get("st") === "A") return "A";
  const since = kept.get("since");
  if (since !== seenSince) return "C";
  if (runId !== kept.get("rid")) return "C";
  let waitedMs = nowMsOf(context) - Number(since);
  if (mode === "bootstrap") {
    if (kept.has("ever")) return "C";
    waitedMs = Math.max(waitedMs, (context.uptimeSeconds - 1) * 1_000);
  }
  const leftMs = Number(quarantine) - waitedMs;
  if (leftMs > 0) return `L ${leftMs}`;
  const floor = Math.max(Number(known), Math.min(Number(wallUs), proposalMaxOf(context)));
  if (Number(kept.get("floor") ?? 0) < floor) {
    data.hset(record, ["floor", floor.toFixed(0)]);
  }
  for (let index = 6; index + 1 < args.length; index += 2) {
    const [shard = "", counter = ""] = args.slice(index, index + 2);
    if (Number(kept.get(shard) ?? 0) < Number(counter)) data.hset(record, [shard, counter]);
  }
  data.hset(record, ["st", "A", "ever", "1", "mode", mode]);
  return "A";
};
