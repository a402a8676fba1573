import { createInterface } from "node:readline/promises";
import type { Inspection } from "../../core/store.ts";
import { Failure } from "../failure.ts";
import type { Output } from "../output.ts";
import type { AddCommand, Session } from "../session.ts";
import { printable } from "../words.ts";
import { summary } from "./inspect.ts";

const examples = `
Examples:
  holdfast break nightly-report          shows who holds it, and asks
  holdfast break nightly-report --yes    for scripts

Breaking does not stop the holder. It learns of it at its next renewal, a third of its TTL later at
most, and may go on writing until then. Give the fence that is printed to whatever guards the
writes: from then on the old holder is refused.`;

const danger =
  "Its holder is not stopped: it may go on working until its next renewal, while another gets " +
  "the lock.";

export const addBreak: AddCommand = (program, host) => {
  program
    .command("break")
    .summary("take a lock from its holder")
    .description("Take a lock from its holder. Dangerous: the holder may still be at work.")
    .argument("<resource>", "what to free")
    .option("-y, --yes", "do not ask")
    .option("--foreign", "also what holdfast did not write: another client's lock, or any value")
    .addHelpText("after", examples)
    .action(
      host.act((session, resource: string, flags: BreakFlags) =>
        breakOne(session, resource, flags),
      ),
    );
};

interface BreakFlags {
  readonly yes?: boolean;
  readonly foreign?: boolean;
}

async function breakOne(
  session: Session,
  resource: string,
  { yes: sure = false, foreign = false }: BreakFlags,
): Promise<"ok" | "no" | "changed"> {
  const { output } = session;
  return await session.using(async ({ locks }) => {
    const seen = await locks.inspect(resource);
    const willBreak = seen.state !== "free" && (seen.foreign !== true || foreign);
    if (willBreak && !sure && !(await agrees(seen, output))) return "no";
    // Breaks only the lock of the holder that was shown. If another holder has acquired the lock
    // since then, that holder keeps it.
    const outcome = await locks.break(seen, { foreign });
    if (output.json) output.document(outcome);
    if (outcome.broken) {
      if (!output.json) print(resource, outcome.fence, output);
      return "ok";
    }
    if (outcome.reason === "free") {
      if (!output.json) output.line(`${printable(resource)} is free: there is nothing to break`);
      return "ok";
    }
    const now = "holds it now, and not the one that was shown: nothing was broken";
    if (!output.json) output.note(`another owner ${now}`);
    return "changed";
  });
}

async function agrees(seen: Inspection, output: Output): Promise<boolean> {
  if (!process.stdin.isTTY) {
    throw new Failure("misuse", "break asks before it breaks, and there is no terminal: use --yes");
  }
  process.stderr.write(`${summary(seen, output)}\n${danger}\n`);
  const questions = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await questions.question("Break it? [y/N] ");
    return /^y(es)?$/i.test(answer.trim());
  } catch {
    // The user pressed Ctrl-C or Ctrl-D instead of an answer.
    return false;
  } finally {
    questions.close();
  }
}

function print(resource: string, fence: bigint | undefined, output: Output): void {
  output.line(`${printable(resource)} is broken`);
  if (fence === undefined) {
    output.line("no fence was raised: until its next renewal the old holder can still write");
    return;
  }
  output.line(`fence ${fence} is greater than the old holder's`);
  output.line(`shut it out:  holdfast fence check --file FILE ${fence}`);
}
