import { writeFileSync } from "node:fs";
import type { SimulatorHost } from "../../simulator/index.ts";
import { Failure } from "../failure.ts";
import { flagInteger, type AddCommand, type Session } from "../session.ts";

const examples = `
Examples:
  holdfast simulate --seed 7                   one world under faults, event by event
  holdfast simulate --seed 7 --html world.html drawn, with lanes per client and node
  holdfast simulate --seeds 500                many worlds, and what came of them

The real code of the library runs in virtual time, on simulated servers and networks. The exit code
is 1 where a promise was broken that should have held.`;

interface SimulateFlags {
  readonly seed: string;
  readonly seeds?: string;
  readonly html?: string;
  readonly commands?: boolean;
}

export const addSimulate: AddCommand = (program, host) => {
  program
    .command("simulate")
    .summary("watch the protocol under faults, in virtual time")
    .description("Run the simulator: the library under faults drawn from a seed, in virtual time.")
    .option("--seed <number>", "which world", "7")
    .option("--seeds <count>", "that many worlds from --seed on, with totals")
    .option("--html <file>", "draw the timeline into a page")
    .option("--commands", "show every command that a server executed, too")
    .addHelpText("after", examples)
    .action(host.act((session, flags: SimulateFlags) => simulate(session, flags)));
};

async function simulate(session: Session, flags: SimulateFlags): Promise<"ok" | "no"> {
  const seed = flagInteger("--seed", flags.seed, 0, Number.MAX_SAFE_INTEGER);
  if (flags.seeds !== undefined) {
    const count = flagInteger("--seeds", flags.seeds, 1, 100_000);
    if (flags.html !== undefined) throw new Failure("misuse", "--html draws one world, not many");
    return await simulateMany(session, seed, count);
  }
  const { htmlTimeline, scenarioOf, simulate: run, textTimeline } = await simulator();
  const report = await run(scenarioOf(seed), host(), { keepTrace: true });
  const { output } = session;
  const { violations, hash, eventCount, history } = report;
  if (flags.html !== undefined) writePage(flags.html, htmlTimeline(report));
  if (output.json) {
    const tenures = history.tenures.length;
    output.document({ seed, hash, eventCount, tenures, violations, html: flags.html });
  } else {
    const width = Math.max(40, output.columns - 40);
    const text = textTimeline(report, { commands: flags.commands ?? false, width });
    output.line(text.replace("npm run sim --", "holdfast simulate"));
    if (flags.html !== undefined) output.line(`drawn in ${flags.html}`);
  }
  return violations.length > 0 ? "no" : "ok";
}

async function simulateMany(session: Session, first: number, count: number): Promise<"ok" | "no"> {
  const { scenarioOf, simulate: run } = await simulator();
  const totals = { worlds: 0, events: 0, tenures: 0, lostUnfenced: 0, lostFenced: 0, refused: 0 };
  const violations: { seed: number; rule: string; text: string }[] = [];
  for (let seed = first; seed < first + count; seed += 1) {
    const report = await run(scenarioOf(seed), host());
    totals.worlds += 1;
    totals.events += report.eventCount;
    totals.tenures += report.history.tenures.length;
    totals.lostUnfenced += report.unfenced.lost;
    totals.lostFenced += report.fenced.lost;
    totals.refused += report.fenced.rejected;
    for (const { rule, text } of report.violations) violations.push({ seed, rule, text });
  }
  const { output } = session;
  if (output.json) output.document({ first, ...totals, violations });
  else {
    output.line(`${totals.worlds} worlds, ${totals.events} events, ${totals.tenures} tenures`);
    output.line(`lost updates: ${totals.lostUnfenced} unfenced, ${totals.lostFenced} fenced`);
    output.line(`stale writes refused: ${totals.refused}`);
    output.line(`violations: ${violations.length === 0 ? "none" : ""}`);
    for (const { seed, rule, text } of violations) output.line(`  seed ${seed}: ${rule}: ${text}`);
  }
  return violations.length > 0 ? "no" : "ok";
}

const simulator = () => import("../../simulator/index.ts");

/**
 * Returns the host of the simulator. `drain` waits for one turn of the event loop, which runs all
 * pending microtasks and those that they add.
 */
function host(): SimulatorHost {
  return { drain: () => new Promise((resolve) => setImmediate(resolve)) };
}

function writePage(path: string, page: string): void {
  try {
    writeFileSync(path, page);
  } catch (error) {
    throw new Failure("misuse", `cannot write ${path}: ${(error as Error).message}`, error);
  }
}
