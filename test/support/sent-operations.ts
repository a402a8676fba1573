import * as scripts from "../../src/stores/redis/scripts/generated.ts";

export type SentKind = "acquire" | "touch" | "release";

/** What a command does if its script runs operations. */
export interface SentOperations {
  readonly script: scripts.Script;
  /** Kind of each operation. */
  readonly kinds: readonly SentKind[];
}

const kinds: Readonly<Record<string, SentKind>> = {
  A: "acquire",
  W: "acquire",
  T: "touch",
  R: "release",
  P: "release",
};

/** Runs begin with "code count locks". No other argument looks like that. */
const heading = /^([AWTRP]) (\d+) \d+$/;

/** Returns the script that a command runs, by its SHA-1 or by its text. */
export function scriptIn([verb, script]: readonly string[]): scripts.Script | undefined {
  if (verb !== "EVAL" && verb !== "EVALSHA") return undefined;
  return Object.values(scripts).find(({ sha, source }) => sha === script || source === script);
}

/** Returns the operations that a command runs; undefined for all other commands. */
export function operationsIn(command: readonly string[]): SentOperations | undefined {
  const script = scriptIn(command);
  if (script === undefined) return undefined;
  const sent = command.slice(3 + Number(command[2])).flatMap((word): SentKind[] => {
    const [, code = "", count] = heading.exec(word) ?? [];
    const kind = kinds[code];
    return kind === undefined ? [] : Array.from({ length: Number(count) }, () => kind);
  });
  return sent.length === 0 ? undefined : { script, kinds: sent };
}

/** Returns a text of each request with such operations, or with a run of so many on one lock each. */
export function textOf(kind: SentKind, count?: number): string {
  const code = Object.keys(kinds).find((each) => kinds[each] === kind && each !== "W");
  return count === undefined ? `\r\n${code} ` : `\r\n${code} ${count} 1\r\n`;
}

/** Returns the verdict on a single operation: the second line of a reply. */
export function verdictIn(reply: unknown): string {
  return String(reply).split("\n")[1] ?? "";
}
