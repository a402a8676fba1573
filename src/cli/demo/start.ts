/** The demo alone, as `npm start` runs it: `[--store <address>] [--json]`. */
import { parseArgs } from "node:util";
import { runDemo } from "./run-demo.ts";

try {
  const { values } = parseArgs({
    options: {
      store: { type: "string" },
      json: { type: "boolean", default: false },
      // For tests: the demo must notice.
      "without-fence-check": { type: "boolean", default: false },
    },
  });
  const { stdout: out } = process;
  process.exitCode = await runDemo({
    ...(values.store === undefined ? {} : { store: values.store }),
    json: values.json,
    color: out.isTTY && !process.env["NO_COLOR"] && process.env["TERM"] !== "dumb",
    columns: out.columns ?? 80,
    out,
    checkFences: !values["without-fence-check"],
  });
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
