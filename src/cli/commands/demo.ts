import { Option } from "commander";
import type { AddCommand, Session } from "../session.ts";

const examples = `
Examples:
  holdfast demo
  holdfast demo --store redlock:redis://127.0.0.1:7001,redis://127.0.0.1:7002,redis://127.0.0.1:7003

Four worker processes update one account under a lock. One is killed: another takes over. One is
frozen past its TTL and goes on: without a fence its write corrupts the balance, with the fence it
is refused. The exit code is 0 only if what it shows is what happened.`;

interface DemoFlags {
  readonly withoutFenceCheck?: boolean;
}

export const addDemo: AddCommand = (program, host) => {
  program
    .command("demo")
    .summary("see the failure, and the cure")
    .description("Show with real processes what a fence is for. Plays on a store of its own.")
    // Hidden option for tests: the demo must detect that the fence check is off.
    .addOption(new Option("--without-fence-check").hideHelp())
    .addHelpText("after", examples)
    .action(host.act((session, flags: DemoFlags) => demo(session, flags)));
};

async function demo(session: Session, flags: DemoFlags): Promise<number> {
  const { runDemo } = await import("../demo/run-demo.ts");
  const { output, storeFlag } = session;
  return await runDemo({
    ...(storeFlag === undefined ? {} : { store: storeFlag }),
    json: output.json,
    color: output.colors.isColorSupported,
    columns: output.columns,
    out: process.stdout,
    checkFences: flags.withoutFenceCheck !== true,
  });
}
