import { readFileSync } from "node:fs";
import { homedir, platform } from "node:os";
import { dirname, join } from "node:path";
import { Failure } from "./failure.ts";
import { parseStoreAddress, type StoreAddress } from "./store-address.ts";

export const configName = "holdfast.json";
const configKeys = ["store", "ttl", "wait", "grace", "maxHold", "label"] as const;

/** Settings of a config file. Flags and environment variables override them. */
export type Config = { readonly [key in (typeof configKeys)[number]]?: string };

export interface FoundConfig {
  readonly path: string | undefined;
  readonly config: Config;
}

export interface ChosenStore {
  readonly address: StoreAddress;
  /** Where the address comes from, for messages. */
  readonly from: string;
}

/**
 * Returns the nearest `holdfast.json`, in `start` or a folder above it. Throws Failure if that file
 * cannot be read, because it may name another store than the one that would be used instead.
 */
export function findConfig(start: string): FoundConfig {
  for (let folder = start; ; folder = dirname(folder)) {
    const path = join(folder, configName);
    const text = readIfThere(path);
    if (text !== undefined) return { path, config: parseConfig(path, text) };
    if (dirname(folder) === folder) return { path: undefined, config: {} };
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new Failure("misuse", `${path} cannot be read: ${message}`, error);
  }
}

function parseConfig(path: string, text: string): Config {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    // The parser's message repeats the text, which may contain a password.
    throw new Failure("misuse", `${path} is not JSON${placeOf((error as Error).message, text)}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Failure("misuse", `expected ${path} to hold one JSON object`);
  }
  for (const [key, setting] of Object.entries(value)) {
    if (!(configKeys as readonly string[]).includes(key)) {
      const known = configKeys.join(", ");
      throw new Failure("misuse", `expected one of ${known} in ${path}, got "${key}"`);
    }
    if (typeof setting !== "string") {
      throw new Failure("misuse", `expected "${key}" in ${path} to be a text`);
    }
  }
  return value;
}

/** Returns the line of a parser's error; empty if the parser does not report a position. */
function placeOf(message: string, text: string): string {
  const position = /at position (\d+)/.exec(message)?.[1];
  if (position === undefined) return "";
  return `: see line ${text.slice(0, Number(position)).split("\n").length}`;
}

/** One place that can name the store. */
export interface StoreSource {
  /** For messages, such as `from HOLDFAST_STORE`. */
  readonly from: string;
  readonly address: string;
  /** Folder at which relative paths in the address start. */
  readonly base: string;
}

/** Returns the places that name a store. The first one decides. */
export function storeSources(
  flag: string | undefined,
  { config, path }: FoundConfig,
): readonly StoreSource[] {
  const base = process.cwd();
  const variable = process.env["HOLDFAST_STORE"] ?? "";
  return [
    ...(flag === undefined ? [] : [{ from: "from --store", address: flag, base }]),
    ...(variable === "" ? [] : [{ from: "from HOLDFAST_STORE", address: variable, base }]),
    ...(config.store === undefined || path === undefined
      ? []
      : [{ from: `from ${path}`, address: config.store, base: dirname(path) }]),
  ];
}

/**
 * Chooses the store: flag, then HOLDFAST_STORE, then the config file, then `defaultDirectory()`.
 */
export function chooseStore(flag: string | undefined, found: FoundConfig): ChosenStore {
  const [first] = storeSources(flag, found);
  if (first === undefined) {
    return { address: { kind: "embedded", directory: defaultDirectory() }, from: "the default" };
  }
  return { address: parseStoreAddress(first.address, first.base), from: first.from };
}

/**
 * Returns the default directory for the locks of this user. Processes of different users do not
 * share its locks.
 */
export function defaultDirectory(): string {
  const home = homedir();
  const { XDG_STATE_HOME: state = "", LOCALAPPDATA: local = "" } = process.env;
  switch (platform()) {
    case "darwin":
      return join(home, "Library", "Application Support", "holdfast", "locks");
    case "win32":
      return join(local === "" ? join(home, "AppData", "Local") : local, "holdfast", "locks");
    default:
      return join(state === "" ? join(home, ".local", "state") : state, "holdfast", "locks");
  }
}
