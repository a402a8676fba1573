import { lockColumns, lockDocument, lockRow } from "../lock-view.ts";
import type { AddCommand, Session } from "../session.ts";
import { printable } from "../words.ts";

const examples = `
Examples:
  holdfast ls
  holdfast ls --names
  holdfast ls --json | jq -r '.locks[].fence'`;

export const addLs: AddCommand = (program, host) => {
  program
    .command("ls")
    .summary("list what is held")
    .description("List every resource that is held now.")
    .option("--names", "only the names of the resources, one per line")
    .addHelpText("after", examples)
    .action(host.act((session, flags: { names?: boolean }) => ls(session, flags.names ?? false)));
};

async function ls(session: Session, onlyNames: boolean): Promise<"ok"> {
  const { output } = session;
  return await session.using<"ok">(async ({ locks, description }) => {
    const held = await locks.list();
    if (onlyNames && !output.json) {
      for (const { resource } of held) output.line(printable(resource));
    } else if (output.json) output.document({ store: description, locks: held.map(lockDocument) });
    else if (held.length === 0) output.line("nothing is held");
    else {
      const { renderTable } = await import("../table.ts");
      const rows = held.map((seen) => lockRow(seen, output));
      const { colors, lineColumns } = output;
      output.line(renderTable(lockColumns, rows, { colors, columns: lineColumns }));
    }
    return "ok";
  });
}
