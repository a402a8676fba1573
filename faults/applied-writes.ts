import { readFileSync } from "node:fs";
import type { Pool } from "pg";
import type { AppliedWrite, Register } from "./history.ts";

type AppliedRow = Record<"name" | "n" | "op" | "base" | "fence" | "fence_before", string>;

/** Returns the writes that Postgres applied, in order, as recorded by a trigger on the row. */
export async function appliedInPostgres(pool: Pool): Promise<AppliedWrite[]> {
  const { rows } = await pool.query<AppliedRow>(
    "SELECT name, n, op, base, fence, fence_before FROM applied ORDER BY id",
  );
  return rows.map(({ name, n, op, base, fence, fence_before }) => {
    const { register, resource } = placeOf(name);
    const write = { register, resource, n: Number(n), op, base };
    if (!register.endsWith("fenced")) return write;
    return { ...write, fence: BigInt(fence), fenceBefore: BigInt(fence_before) };
  });
}

/**
 * Returns the writes that Redis applied, read from its append-only files. There a script is
 * replaced by its effects, in the order in which they took place.
 */
export function appliedInRedis(files: readonly string[]): AppliedWrite[] {
  const applied: AppliedWrite[] = [];
  const fences = new Map<string, bigint>();
  const before = new Map<string, bigint>();
  for (const [name = "", key = "", ...args] of files.flatMap(commandsOf)) {
    switch (name.toUpperCase()) {
      case "SET":
        applied.push(writeOf(key, args[0]));
        break;
      case "HSET":
        for (let index = 0; index < args.length; index += 2) {
          const [field, value = ""] = args.slice(index);
          if (field === "fence") {
            before.set(key, fences.get(key) ?? 0n);
            fences.set(key, BigInt(value));
          } else if (field === "value") {
            const fence = fences.get(key) ?? 0n;
            const fenceBefore = before.get(key) ?? 0n;
            applied.push({ ...writeOf(key, value), fence, fenceBefore });
          }
        }
        break;
      default:
    }
  }
  return applied;
}

function writeOf(key: string, value: string | undefined): AppliedWrite {
  const { n, op, base } = JSON.parse(value ?? "{}") as { n: number; op: string; base: string };
  return { ...placeOf(key), n, op, base };
}

function placeOf(name: string): { readonly register: Register; readonly resource: string } {
  const colon = name.indexOf(":");
  return { register: name.slice(0, colon) as Register, resource: name.slice(colon + 1) };
}

/** Returns the commands of an append-only file: arrays of bulk strings, one after the other. */
function commandsOf(path: string): string[][] {
  const bytes = readFileSync(path);
  const commands: string[][] = [];
  let at = 0;
  const line = (): string => {
    const end = bytes.indexOf("\r\n", at);
    const text = bytes.toString("utf8", at, end);
    at = end + 2;
    return text;
  };
  while (at < bytes.length) {
    const header = line();
    if (!header.startsWith("*")) continue;
    const command: string[] = [];
    for (let left = Number(header.slice(1)); left > 0; left -= 1) {
      const length = Number(line().slice(1));
      command.push(bytes.toString("utf8", at, at + length));
      at += length + 2;
    }
    commands.push(command);
  }
  return commands;
}
