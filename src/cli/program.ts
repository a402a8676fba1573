import { createRequire } from "node:module";
import { Command } from "commander";
import { commands } from "./commands/index.ts";
import type { Host } from "./session.ts";

const { version } = createRequire(import.meta.url)("../../package.json") as { version: string };

const examples = `
Examples:
  holdfast exec nightly-report -- ./report.sh      run a command while holding a lock
  holdfast exec account:7 account:9 -- ./transfer  two locks at once, all or nothing
  holdfast watch                                   who holds what, live
  holdfast doctor --store redis://localhost        what is wrong with the servers

The store: --store, else HOLDFAST_STORE, else "store" in the nearest holdfast.json, else a
directory of your own (locks between the processes of this machine). "holdfast store"
says which one is used, "holdfast init" writes a holdfast.json.
  embedded:./dir        redis://user:password@host:6379/0?prefix=jobs:
  rediss://host?ca=f    redlock:redis://a,redis://b,redis://c

More: holdfast help COMMAND, holdfast help exit-codes`;

/**
 * Builds the whole command line. A new command is one file in commands/ and a line in its index.
 */
export function buildProgram(host: Host): Command {
  const program = new Command("holdfast");
  program
    .description("Locks between processes and machines, with leases, fences and quorums.")
    .version(version, "-V, --version", "print the version")
    .option("-s, --store <address>", "where the locks are kept")
    .option("--json", "print JSON for programs; errors too, on stderr")
    .option("--no-color", "no colours; NO_COLOR in the environment does the same")
    .option("--debug", "print more on stderr, with stack traces of errors")
    .helpCommand(false)
    .addHelpText("after", examples)
    .configureHelp({ showGlobalOptions: true });
  for (const add of commands) add(program, host);
  quieten(program);
  return program;
}

/** Turns off the parser's own error output, because `main` prints errors in one line. */
function quieten(command: Command): void {
  command
    .exitOverride()
    .configureOutput({ writeErr: () => undefined, outputError: () => undefined });
  command.showSuggestionAfterError(true).allowExcessArguments(false);
  if (command.parent !== null) command.configureHelp({ showGlobalOptions: true });
  for (const child of command.commands) quieten(child);
}
