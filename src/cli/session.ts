import type { Command } from "commander";
import { durationMs } from "../core/time/durations.ts";
import type { LockDefaults } from "../core/options.ts";
import { connect, type Connected } from "./connect.ts";
import { exitCodes, type ExitName } from "./exit-codes.ts";
import { Failure } from "./failure.ts";
import { Output } from "./output.ts";
import { chooseStore, findConfig, storeSources } from "./store-choice.ts";
import type { ChosenStore, FoundConfig, StoreSource } from "./store-choice.ts";

/** Options of all commands. */
export interface GlobalOptions {
  readonly store?: string;
  readonly json?: boolean;
  readonly color?: boolean;
  readonly debug?: boolean;
}

export interface UsingOptions {
  readonly defaults?: LockDefaults;
  readonly fencing?: boolean;
  readonly withoutServers?: boolean;
  /** If true, writes a description of the store to stderr. */
  readonly saysStore?: boolean;
}

const dayMs = 86_400_000;

/** One run of one command: its output and its store. */
export class Session {
  readonly output: Output;
  readonly #options: GlobalOptions;
  #found: FoundConfig | undefined;

  constructor(options: GlobalOptions) {
    this.#options = options;
    const { json = false, debug = false, color = true } = options;
    this.output = new Output({ json, debug, color });
  }

  get found(): FoundConfig {
    this.#found ??= findConfig(process.cwd());
    return this.#found;
  }

  /** Value of `--store` only, for a command that must not touch the configured or default store. */
  get storeFlag(): string | undefined {
    return this.#options.store;
  }

  get chosen(): ChosenStore {
    return chooseStore(this.#options.store, this.found);
  }

  /** Places that name a store; the first one decides. Empty if the default is used. */
  get sources(): readonly StoreSource[] {
    return storeSources(this.#options.store, this.found);
  }

  /** Opens the chosen store for `work`, and closes it in every case. */
  async using<Result>(
    work: (connected: Connected) => Promise<Result>,
    more: UsingOptions = {},
  ): Promise<Result> {
    const { output } = this;
    const connected = await connect(this.chosen.address, { ...more, output });
    try {
      if (output.debug || more.saysStore === true) this.#printStore(connected);
      if (output.debug) this.#printEvents(connected);
      return await work(connected);
    } finally {
      await connected.close();
    }
  }

  #printStore({ description }: Connected): void {
    this.output.note(`store: ${description} (${this.chosen.from})`);
  }

  #printEvents({ locks }: Connected): void {
    locks.on("node-failed", ({ node, cause }) => this.output.note(`${node}: ${String(cause)}`));
    locks.on("doubtful", ({ cause }) => this.output.note(`doubtful: ${String(cause)}`));
    locks.on("warning", ({ node, what, why }) => {
      this.output.note(`${node === undefined ? "" : `${node}: `}${what}: ${why}`);
    });
  }
}

/** Parses a duration of the command line, such as `30s`. Throws Failure with the flag's name. */
export function flagDuration(flag: string, text: string, minMs = 0, maxMs = 30 * dayMs): number {
  try {
    return durationMs(flag, text, { minMs, maxMs });
  } catch {
    throw new Failure(
      "misuse",
      `expected ${flag} to be a duration from ${minMs} ms to ${shortMs(maxMs)} such as 250ms, ` +
        `30s, 5m or 2h, got "${text}"`,
    );
  }
}

function shortMs(ms: number): string {
  return ms % 3_600_000 === 0
    ? `${ms / 3_600_000}h`
    : ms % 1_000 === 0
      ? `${ms / 1_000}s`
      : `${ms}ms`;
}

export function flagInteger(flag: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new Failure(
    "misuse",
    `expected ${flag} to be a number from ${min} to ${max}, got "${text}"`,
  );
}

/** State that the commands share during one run. */
export class Host {
  /** Arguments after `--`; undefined without `--`. */
  readonly rest: readonly string[] | undefined;
  exitCode = 0;
  /**
   * True if the exit code is a result that scripts read (as of `doctor`): then the process ends
   * with it even if no program reads the output any more. If false, it ends as SIGPIPE would end
   * it.
   */
  keepsExitCode: boolean;

  constructor(rest: readonly string[] | undefined) {
    this.rest = rest;
    // Only `exec` has arguments after `--`. Its command continues even if no program reads the
    // messages of holdfast.
    this.keepsExitCode = rest !== undefined;
  }

  /**
   * Wraps the action of a command: `work` gets the session, then arguments and options. With
   * `keepsExitCode`, a closed output does not change the exit code (see the property).
   */
  act(
    work: (session: Session, ...args: never[]) => Promise<ExitName | number>,
    { keepsExitCode = this.keepsExitCode } = {},
  ): (...given: unknown[]) => Promise<void> {
    return async (...given) => {
      this.keepsExitCode = keepsExitCode;
      const command = given.pop() as Command;
      const options = given.pop();
      const session = new Session(command.optsWithGlobals());
      // The parser passes the declared arguments in order, then options and command.
      const exit = await work(session, ...([...given, options] as never[]));
      this.exitCode = typeof exit === "number" ? exit : exitCodes[exit].code;
    };
  }
}

/** Adds one command to the program; each command is a file of its own. */
export type AddCommand = (program: Command, host: Host) => void;
