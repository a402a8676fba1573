// @ts-check
/** `npm run shape`: measures the distance of the code from its goals. */

import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { measureFiles } from "./static.mjs";
import { renderTable } from "./table.mjs";
import { traceCalls } from "./trace.mjs";

const usage = `npm run shape -- [options]

  --json         print JSON, with the files, folders and calls behind each number
  --traced       only trace the calls; starts a redis-server of its own
  --static       only measure the files
  --root DIR     measure the files of another checkout; implies --static

Calls between files include getters, setters and constructors. A transfer is one file that
calls another, however often.

Not measured: the number of places where a rule is written. Copies differ in language and
form, so that no count of text finds them; the sizes of the command layer stand in for it.`;

const limitMs = 120_000;

const { values } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    traced: { type: "boolean", default: false },
    static: { type: "boolean", default: false },
    root: { type: "string" },
    help: { type: "boolean", short: "h", default: false },
  },
});

if (values.help) console.log(usage);
else await main();

async function main() {
  // The server is killed at the exit of this process.
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
  const limit = setTimeout(() => {
    console.error(`not measured within ${limitMs / 1000} s`);
    process.exit(1);
  }, limitMs);
  const here = fileURLToPath(new URL("../..", import.meta.url));
  const isTracing = !values.static && values.root === undefined;
  const rows = [
    ...(isTracing ? await traceCalls() : []),
    ...(values.traced ? [] : measureFiles(values.root ?? here)),
  ];
  clearTimeout(limit);
  console.log(values.json ? JSON.stringify(rows, undefined, 2) : renderTable(rows));
}
