#!/usr/bin/env node
import { constants } from "node:os";
import { CommanderError } from "commander";
import { endOnSignals } from "./early-signals.ts";
import { exitCodes, signalBase } from "./exit-codes.ts";
import { Failure, failureOf, Interrupted } from "./failure.ts";
import { buildProgram } from "./program.ts";
import { Host } from "./session.ts";

/** Runs one command line and resolves to its exit code. Never rejects. */
async function main(args: readonly string[]): Promise<number> {
  // The arguments are split at `--` before parsing, because the parser would mix resources and the
  // command of `exec`.
  const dashes = args.indexOf("--");
  if (dashes >= 0) endOnSignals();
  const host = new Host(dashes < 0 ? undefined : args.slice(dashes + 1));
  endOnBrokenPipes(host);
  const own = dashes < 0 ? args : args.slice(0, dashes);
  try {
    const program = buildProgram(host);
    if (args.length === 0) program.outputHelp();
    else await program.parseAsync([...own], { from: "user" });
    return host.exitCode;
  } catch (error) {
    return report(error, { json: own.includes("--json"), debug: own.includes("--debug") });
  }
}

/**
 * Ends the process as SIGPIPE would if the program that reads its output has closed the pipe, as in
 * `holdfast watch | head`. A command whose exit code is a result goes on and ends with that code.
 */
function endOnBrokenPipes(host: Host): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", ({ code }: NodeJS.ErrnoException) => {
      if (code === "EPIPE" && !host.keepsExitCode) {
        process.exit(signalBase + constants.signals.SIGPIPE);
      }
    });
  }
}

function report(error: unknown, how: { readonly json: boolean; readonly debug: boolean }): number {
  if (error instanceof Interrupted) return signalBase + constants.signals[error.signal];
  // Help and version were requested and are already written.
  if (error instanceof CommanderError && error.exitCode === 0) return 0;
  const failure = asFailure(error);
  const code = failure.code ?? exitCodes[failure.exit].code;
  if (failure.silent) return code;
  if (how.json) {
    const report = { exit: failure.exit, code, message: oneLine(failure.message) };
    process.stderr.write(`${JSON.stringify({ error: report })}\n`);
  } else {
    process.stderr.write(`holdfast: ${oneLine(failure.message)}\n`);
  }
  if (how.debug) process.stderr.write(`${stackOf(error)}\n`);
  return code;
}

function asFailure(error: unknown): Failure {
  if (error instanceof CommanderError) {
    // The parser throws this error if a subcommand is missing, for example after `holdfast fence`.
    if (error.code === "commander.help")
      return new Failure("misuse", "a command is missing; see --help");
    const message = withoutAddresses(error.message.replace(/^error: /, ""));
    return new Failure("misuse", `${message}; see holdfast --help`);
  }
  const known = failureOf(error);
  if (known !== undefined) return known;
  const message = error instanceof Error ? error.message : String(error);
  return new Failure("internal", `unexpected error: ${message} (more with --debug)`, error);
}

/** Replaces store addresses in the parser's messages: they may contain passwords. */
function withoutAddresses(text: string): string {
  const addresses = process.argv.filter((argument) => /:\/|@/.test(argument));
  return addresses.reduce((left, address) => left.replaceAll(address, "(an address)"), text);
}

function oneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, " ").trim();
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : `\ncaused by: ${stackOf(error.cause)}`;
  return (error.stack ?? error.message) + cause;
}

process.exitCode = await main(process.argv.slice(2));
