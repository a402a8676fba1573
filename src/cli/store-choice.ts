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
  readonly from: "flag" | "environment" | "config" | "default";
}

/** Returns the nearest `holdfast.json`, in `start` or a folder above it. */
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
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR" || code === "EACCES") return undefined;
    throw new Failure("misuse", `${path} cannot be read: ${(error as Error).message}`, error);
  }
}

function parseConfig(path: string, text: string): Config {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Failure("misuse", `${path} is not JSON: ${(error as Error).message}`, error);
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

/**
 * Chooses the store: flag, then HOLDFAST_STORE, then the config file, then `defaultDirectory()`.
 */
export function chooseStore(flag: string | undefined, found: FoundConfig): ChosenStore {
  const cwd = process.cwd();
  if (flag !== undefined) return { address: parseStoreAddress(flag, cwd), from: "flag" };
  const told = process.env["HOLDFAST_STORE"] ?? "";
  if (told !== "") return { address: parseStoreAddress(told, cwd), from: "environment" };
  const { config, path } = found;
  if (config.store !== undefined && path !== undefined) {
    return { address: parseStoreAddress(config.store, dirname(path)), from: "config" };
  }
  return { address: { kind: "embedded", directory: defaultDirectory() }, from: "default" };
}

/** Returns the directory of this user. Processes of different users do not share its locks. */
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
