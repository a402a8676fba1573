import type { Command } from "commander";
import { exitCodeRows } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import type { AddCommand, Session } from "../session.ts";

export const addHelp: AddCommand = (program, host) => {
  program
    .command("help")
    .summary("show the help of a command, or the exit codes")
    .description("Show the help of a command. `holdfast help exit-codes` lists the exit codes.")
    .argument("[topic...]", "a command, or exit-codes")
    .action(
      host.act((session, topic: readonly string[]) =>
        Promise.resolve(help(session, program, topic)),
      ),
    );
};

function help(session: Session, program: Command, topic: readonly string[]): "ok" {
  if (topic.length === 1 && topic[0] === "exit-codes") return exitCodes(session);
  let command = program;
  for (const name of topic) {
    const found = command.commands.find((child) => child.name() === name);
    if (found === undefined) throw new Failure("misuse", `there is no help about "${name}"`);
    command = found;
  }
  command.outputHelp();
  return "ok";
}

function exitCodes({ output }: Session): "ok" {
  const rows = exitCodeRows();
  if (output.json) {
    output.document({ exitCodes: rows.map(([code, means]) => ({ code, means })) });
  } else {
    for (const [code, means] of rows) output.line(`${code.padStart(6)}  ${means}`);
  }
  return "ok";
}
