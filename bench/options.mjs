// @ts-check
/** The command line of the benchmark. */

import { parseArgs } from "node:util";
import { contenderKinds } from "./contenders/list.mjs";

/** @import { Options } from "./types.ts" */

export const workloadNames = [
  "sequential",
  "inflight",
  "contended",
  "killed",
  "sick",
  "renew",
  "held",
  "growth",
  "waiting",
  "import",
];

export const usage = `npm run bench -- [workload …] [options]

  workloads   ${workloadNames.join(", ")}; all of them unless some are named
  --quick     less than three minutes; prints, and writes to a temporary folder only
  --rounds N  rounds of every case (5, in a quick run 2)
  --only A,B  these contenders alone, and F, which is the measure of the others:
              ${contenderKinds.map(({ id }) => id).join(", ")}
  --nodes N   on 1 node or on 5 alone, instead of both
  --no-peers  without the published libraries, and without installing them
  --merge     these workloads replace theirs in the results of bench/, the others stay
  --out DIR   where results.md, results.json and plots/ go; bench/ unless it is a quick run
              or not everything was measured
  --scale X   multiplies every time that is measured, such as 0.2 to try something out
`;

/** @param {readonly string[]} args @returns {Options} */
export function readOptions(args) {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      quick: { type: "boolean", default: false },
      rounds: { type: "string" },
      only: { type: "string" },
      nodes: { type: "string" },
      "no-peers": { type: "boolean", default: false },
      merge: { type: "boolean", default: false },
      out: { type: "string" },
      scale: { type: "string", default: "1" },
    },
  });
  for (const name of positionals) {
    if (!workloadNames.includes(name)) throw new Error(`no workload is called ${name}\n\n${usage}`);
  }
  const only = values.only?.split(",") ?? [];
  for (const id of only) {
    if (!contenderKinds.some((kind) => kind.id === id)) {
      throw new Error(`no contender is called ${id}\n\n${usage}`);
    }
  }
  if (values.merge && (values.quick || values.scale !== "1" || only.length > 0)) {
    throw new Error(`--merge takes whole workloads: no --quick, no --scale, no --only\n\n${usage}`);
  }
  return {
    quick: values.quick,
    merge: values.merge,
    rounds: whole("--rounds", values.rounds ?? (values.quick ? "2" : "5"), 1, 100),
    names: positionals.length === 0 ? workloadNames : positionals,
    contenders: only.length === 0 || only.includes("floor") ? only : ["floor", ...only],
    nodes: nodesOf(values.nodes),
    out: values.out,
    scale: bounded("--scale", values.scale, 0.01, 100),
    peers: !values["no-peers"],
  };
}

/** @param {string | undefined} text @returns {readonly (1 | 5)[]} */
function nodesOf(text) {
  if (text === undefined) return [1, 5];
  if (text !== "1" && text !== "5") throw new Error(`--nodes is 1 or 5, not ${text}`);
  return text === "1" ? [1] : [5];
}

/** @param {string} name @param {string} text @param {number} least @param {number} most */
function bounded(name, text, least, most) {
  const value = Number(text);
  if (!(value >= least && value <= most)) {
    throw new Error(`${name} is a number from ${least} to ${most}, not ${text}`);
  }
  return value;
}

/** @param {string} name @param {string} text @param {number} least @param {number} most */
function whole(name, text, least, most) {
  const value = bounded(name, text, least, most);
  if (!Number.isInteger(value)) throw new Error(`${name} is a whole number, not ${text}`);
  return value;
}
