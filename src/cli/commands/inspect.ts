import type { Inspection, NodeInspection } from "../../core/store.ts";
import { holderText, lockDocument } from "../lock-view.ts";
import type { Output } from "../output.ts";
import type { AddCommand, Session } from "../session.ts";
import { printable, shortDuration } from "../words.ts";

const examples = `
Examples:
  holdfast inspect nightly-report
  holdfast inspect nightly-report --json | jq -r .fence

The exit code is 69 if too few servers answered; a free lock is no failure.`;

export const addInspect: AddCommand = (program, host) => {
  program
    .command("inspect")
    .summary("show who holds a resource")
    .description("Show who holds a resource, as each server reports it.")
    .argument("<resource>", "what to look at")
    .addHelpText("after", examples)
    .action(host.act((session, resource: string) => inspect(session, resource)));
};

async function inspect(session: Session, resource: string): Promise<"ok" | "unavailable"> {
  const { output } = session;
  return await session.using(async ({ locks }) => {
    const seen = await locks.inspect(resource);
    if (output.json) output.document({ ...lockDocument(seen), nodes: seen.nodes });
    else {
      const { renderTable } = await import("../table.ts");
      output.line(summary(seen, output));
      const columns = [
        { title: "NODE" },
        { title: "STATE" },
        { title: "OWNER", elastic: true },
        { title: "LEFT", align: "right" as const },
        { title: "FENCE", align: "right" as const },
      ];
      const rows = seen.nodes.map(nodeRow);
      const { colors, lineColumns } = output;
      output.line(renderTable(columns, rows, { colors, columns: lineColumns }));
    }
    return seen.state === "unknown" ? "unavailable" : "ok";
  });
}

export function summary(seen: Inspection, { colors }: Output): string {
  const { resource, state, fence, remainingMs, foreign, neverExpires } = seen;
  const name = colors.bold(printable(resource));
  switch (state) {
    case "free":
      return `${name} is ${colors.green("free")}`;
    case "held": {
      const left = remainingMs === undefined ? "" : `, ${shortDuration(remainingMs)} left`;
      const fenced = fence === undefined ? "" : `, fence ${fence}`;
      const endless = neverExpires === true ? "; no expiry: it will not end by itself" : "";
      const by = foreign === true ? "a value that holdfast did not write" : holderText(seen);
      return `${name} is ${colors.yellow("held")} by ${by}${left}${fenced}${endless}`;
    }
    case "split":
      return `${name} is ${colors.yellow("split")}: no owner has a quorum, and it is not free`;
    case "unknown":
      return `${name} is ${colors.red("unknown")}: too few servers answered`;
    default:
      return state satisfies never;
  }
}

function nodeRow({ node, vote, holder, cause }: NodeInspection): readonly string[] {
  const why = cause instanceof Error ? `${vote}: ${cause.message}` : vote;
  return [
    node,
    why,
    printable(holder?.owner ?? "–"),
    shortDuration(holder?.remainingMs),
    String(holder?.fence ?? "–"),
  ];
}
