import { lockColumns, lockDocument, lockRow } from "../lock-view.ts";
import type { AddCommand, Session } from "../session.ts";

const examples = `
Examples:
  holdfast ls
  holdfast ls --json | jq -r '.locks[].resource'`;

export const addLs: AddCommand = (program, host) => {
  program
    .command("ls")
    .summary("list what is held")
    .description("List every resource that is held now.")
    .addHelpText("after", examples)
    .action(host.act((session) => ls(session)));
};

async function ls(session: Session): Promise<"ok"> {
  const { output } = session;
  return await session.using<"ok">(async ({ locks, description }) => {
    const held = await locks.list();
    if (output.json) output.document({ store: description, locks: held.map(lockDocument) });
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
