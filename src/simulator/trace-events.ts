import type { Locks } from "../core/locks.ts";
import type { Scene } from "./scene.ts";
import { scriptsBySha, scriptsBySource } from "./node/scripts.ts";

/** Adds the events of a lock manager to the trace. */
export function traceEvents(scene: Scene, lane: string, locks: Locks): void {
  const add = (kind: string, resources: readonly string[], text: string): void =>
    scene.add(lane, kind, `${resources.join("+")} ${text}`.trimEnd());
  locks.on("acquired", ({ resources, fence, attempts, remainingMs }) =>
    add("acquired", resources, `fence ${fence ?? "-"}, attempt ${attempts}, ${remainingMs} ms`),
  );
  locks.on("renewed", ({ resources, remainingMs }) =>
    add("renewed", resources, `${remainingMs} ms left`),
  );
  locks.on("doubtful", ({ resources, remainingMs }) =>
    add("doubtful", resources, `${remainingMs} ms left`),
  );
  locks.on("lost", ({ resources, reason, fence }) =>
    add("lost", resources, `fence ${fence ?? "-"}: ${reason}`),
  );
  locks.on("released", ({ resources, released, reason }) =>
    add("released", resources, released ? "" : `not released: ${reason}`),
  );
  locks.on("attempt", ({ resources, attempt, outcome, error }) => {
    if (outcome === "granted") return;
    add("attempt", resources, `${attempt}: ${outcome}${error === undefined ? "" : why(error)}`);
  });
  locks.on("fence-raised", ({ resources, fence }) => add("raised", resources, `to ${fence}`));
  locks.on("node-blank", ({ node, why }) => add("blank", [node], why));
  locks.on("node-admitted", ({ node, mode }) => add("admission", [node], mode));
}

function why(error: Error): string {
  return ` (${error.message.slice(0, 160)})`;
}

/** Formats a command for the trace. Shows a script by its name instead of its source. */
export function commandText(command: readonly string[]): string {
  const [name = "", script = "", , ...rest] = command;
  if (name !== "EVALSHA" && name !== "EVAL") return command.join(" ");
  const known = name === "EVAL" ? scriptsBySource.get(script) : scriptsBySha.get(script);
  return `${name === "EVAL" ? "eval " : ""}${known?.name ?? "?"} ${rest.join(" ")}`;
}
