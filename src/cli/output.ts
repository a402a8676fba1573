import { isatty } from "node:tty";
import { createColors } from "picocolors";

export type Colors = ReturnType<typeof createColors>;

export interface OutputOptions {
  readonly json: boolean;
  readonly debug: boolean;
  /** False for `--no-color`; otherwise the terminal and NO_COLOR decide. */
  readonly color: boolean;
}

/** Where a command writes, and how. Results go to stdout, everything else to stderr. */
export class Output {
  readonly json: boolean;
  readonly debug: boolean;
  readonly colors: Colors;
  readonly errorColors: Colors;
  readonly isTerminal: boolean;

  constructor({ json, debug, color }: OutputOptions) {
    this.json = json;
    this.debug = debug;
    // Not `stdout.isTTY`, which a pipe lacks: `createColors(undefined)` goes by the environment and
    // would colour a pipe wherever CI is set.
    this.isTerminal = isatty(process.stdout.fd);
    const wanted = color && (process.env["NO_COLOR"] ?? "") === "";
    this.colors = createColors(wanted && this.isTerminal);
    this.errorColors = createColors(wanted && isatty(process.stderr.fd));
  }

  get columns(): number {
    const told = process.stdout.columns ?? Number(process.env["COLUMNS"]);
    return Number.isInteger(told) && told >= 40 ? told : 80;
  }

  /** A result for people. */
  line(text = ""): void {
    process.stdout.write(`${text}\n`);
  }

  /** A result for programs: one JSON document on one line. */
  document(value: unknown): void {
    process.stdout.write(`${toJson(value)}\n`);
  }

  /** Something to know that is not the result. */
  note(text: string): void {
    process.stderr.write(`holdfast: ${text}\n`);
  }

  warn(text: string): void {
    this.note(`${this.errorColors.yellow("warning:")} ${text}`);
  }
}

/** Fences go beyond what JSON numbers can hold, so they are texts; errors are their messages. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => {
    if (typeof item === "bigint") return String(item);
    if (item instanceof Error) return item.message;
    return item;
  });
}
