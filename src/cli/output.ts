import { isatty } from "node:tty";
import { createColors } from "picocolors";

export type Colors = ReturnType<typeof createColors>;

export interface OutputOptions {
  readonly json: boolean;
  readonly debug: boolean;
  /** False for `--no-color`. If true, the terminal and NO_COLOR decide. */
  readonly color: boolean;
}

const columnsMin = 20;

/** Writes the output of a command: results to stdout, everything else to stderr. */
export class Output {
  readonly json: boolean;
  readonly debug: boolean;
  readonly colors: Colors;
  readonly errorColors: Colors;
  readonly isTerminal: boolean;

  constructor({ json, debug, color }: OutputOptions) {
    this.json = json;
    this.debug = debug;
    // `stdout.isTTY` is undefined on a pipe, and `createColors(undefined)` decides by the
    // environment: it would colour a pipe if CI is set.
    this.isTerminal = isatty(process.stdout.fd);
    const wanted = color && (process.env["NO_COLOR"] ?? "") === "";
    this.colors = createColors(wanted && this.isTerminal);
    this.errorColors = createColors(wanted && isatty(process.stderr.fd));
  }

  /** Width for pictures, in characters. */
  get columns(): number {
    const given = process.stdout.columns ?? Number(process.env["COLUMNS"]);
    return Number.isInteger(given) && given >= columnsMin ? given : 80;
  }

  /**
   * Width for tables and lines. Without a terminal nothing is cut, because a program may read the
   * output.
   */
  get lineColumns(): number {
    return this.isTerminal ? this.columns : Infinity;
  }

  /** Writes a line of the result in text form. */
  line(text = ""): void {
    process.stdout.write(`${text}\n`);
  }

  /** Writes a result for programs: one JSON document on one line. */
  document(value: unknown): void {
    process.stdout.write(`${toJson(value)}\n`);
  }

  /** Writes a message that is not part of the result to stderr. */
  note(text: string): void {
    process.stderr.write(`holdfast: ${text}\n`);
  }

  warn(text: string): void {
    this.note(`${this.errorColors.yellow("warning:")} ${text}`);
  }
}

/** Returns JSON with fences as strings (they exceed JSON numbers) and errors as their messages. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => {
    if (typeof item === "bigint") return String(item);
    if (item instanceof Error) return item.message;
    return item;
  });
}
