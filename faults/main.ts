import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { findingsOf } from "./check/summary.ts";
import { readRun } from "./kept-run.ts";
import { lockVersion } from "./locks/open-lock.ts";
import { readOptions, UsageError, type Options } from "./options.ts";
import { reportOf } from "./report/report.ts";
import { writeReport } from "./report/write.ts";
import { run } from "./run.ts";

const failuresShown = 20;

/** Runs `npm run faults`. Returns the exit code: 0, 1 for a failure, 2 for wrong options. */
export async function main(args: readonly string[], root: string): Promise<number> {
  try {
    const options = readOptions(args);
    if (options.check !== undefined) return judge(options.check, options, root);
    return await runAndJudge(options, root);
  } catch (error) {
    const usage = error instanceof UsageError;
    console.error(usage ? error.message : error);
    return usage ? 2 : 1;
  }
}

async function runAndJudge(options: Options, root: string): Promise<number> {
  const version = lockVersion(options.lock, root);
  const { seed, seconds, nodes, clients } = options;
  console.log(
    `seed ${seed}: ${version}, ${nodes} nodes, ${clients} clients, ${seconds} s of faults`,
  );
  const folder = mkdtempSync(join(tmpdir(), "holdfast-faults-"));
  const removeFolder = (): void => rmSync(folder, { recursive: true, force: true });
  process.once("exit", removeFolder);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    // Exit handlers end the processes of the run and remove its folders.
    process.once(signal, () => process.exit(130));
  }
  const journals = options.keep === undefined ? join(folder, "histories") : resolve(options.keep);
  if (existsSync(join(journals, "run.json"))) throw new UsageError(`${journals} has a run already`);
  await run(options, version, root, folder, journals);
  const code = judge(journals, options, root);
  if (code === 0 || options.keep !== undefined) return code;
  process.off("exit", removeFolder);
  console.error(`To check the same histories again: npm run faults -- --check ${journals}`);
  return code;
}

/** Checks the histories of a run, and prints and writes its report. */
function judge(journals: string, { out, name }: Options, root: string): number {
  const { record, history } = readRun(journals);
  const findings = findingsOf(history);
  const options = { ...record.options, name: name ?? record.options.name };
  const report = reportOf({ ...record, options, history, findings });
  console.log(report.text);
  if (out !== undefined) writeReport(resolve(root, out), report);
  const { failures } = findings;
  // A peer is measured here and not tested, so its findings are no failure.
  if (failures.length === 0 || options.lock !== "holdfast") return 0;
  for (const failure of failures.slice(0, failuresShown)) console.error(`FAILED: ${failure}`);
  if (failures.length > failuresShown) console.error(`… ${failures.length - failuresShown} more`);
  return 1;
}
