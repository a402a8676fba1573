import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadLmdb } from "../../stores/embedded/lmdb-package.ts";
import { parseStoreAddress, type StoreAddress } from "../store-address.ts";
import { type Bank, openBank } from "./bank.ts";
import { Crew } from "./crew.ts";
import { noticesDeadHolders } from "./demo-store.ts";
import { direct } from "./director.ts";
import { Record } from "./record.ts";
import { liveScreen, plainScreen, type Scene, type Screen, silentScreen } from "./screen.ts";
import { type Look, paint } from "./timeline.ts";
import { accountOf, type Check, type Facts, judge } from "./verdict.ts";

export interface DemoOptions {
  /** Store: `embedded:dir`, `redis://…` or `redlock:redis://a,…`. @default a temporary directory */
  readonly store?: string;
  /** If true, writes only one JSON document, at the end. */
  readonly json: boolean;
  readonly color: boolean;
  readonly columns: number;
  /** Output stream: a live picture on a terminal, otherwise line by line. */
  readonly out: NodeJS.WritableStream;
  /** For tests: false lets the guarded account accept every write, which the demo must detect. */
  readonly checkFences?: boolean;
}

const names = ["ann", "bob", "cy", "dee"];
const openingBalance = 100;
const deposit = 10;
const ttlMs = 2_000;
const pace = { ttlMs, waitMs: 60_000, thinkMs: 350, sendMs: 200, restMs: 100, deposit };
const liveRowsMin = 24;
const liveColumnsMin = 60;

const nextCommands = [
  ["npx holdfast exec nightly -- sleep 20", "a command under a lock"],
  ["npx holdfast watch", "who holds what, in another terminal"],
  ["npx holdfast exec --help", "the options, with examples"],
] as const;

class InterruptedError extends Error {
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals) {
    super(`ended by ${signal}`);
    this.exitCode = signal === "SIGINT" ? 130 : signal === "SIGHUP" ? 129 : 143;
  }
}

/**
 * Runs the demo and resolves to its exit code: 0 if everything happened as shown, 1 if not, 128 + n
 * if signal n interrupted the demo. Rejects if the demo cannot run, for example without a store.
 * Leaves no process and no file behind.
 */
export async function runDemo(options: DemoOptions): Promise<number> {
  const given =
    options.store === undefined ? undefined : parseStoreAddress(options.store, process.cwd());
  // The store is checked before anything is shown, because no worker can start without it.
  await checkStore(given);
  const folder = mkdtempSync(join(tmpdir(), "holdfast-demo-"));
  const interrupted = new AbortController();
  const interrupt = (signal: NodeJS.Signals): void =>
    interrupted.abort(new InterruptedError(signal));
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, interrupt);
  try {
    const store = given ?? { kind: "embedded", directory: folder };
    return await play(options, store, interrupted.signal);
  } catch (error) {
    if (!(error instanceof InterruptedError)) throw error;
    return error.exitCode;
  } finally {
    for (const signal of signals) process.removeListener(signal, interrupt);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Throws if the store cannot be used. */
async function checkStore(given: StoreAddress | undefined): Promise<void> {
  if (given === undefined || given.kind === "embedded") {
    loadLmdb();
    return;
  }
  if (given.kind === "postgres") {
    const { connectPostgres } = await import("../postgres-pool.ts");
    return await (await connectPostgres(given, undefined, false)).close();
  }
  const { openRedisClients } = await import("../redis-clients.ts");
  const { servers } = given;
  (await openRedisClients(servers, Math.floor(servers.length / 2) + 1)).close();
}

async function play(
  options: DemoOptions,
  store: StoreAddress,
  signal: AbortSignal,
): Promise<number> {
  const record = new Record();
  const crew = new Crew(record);
  const bank = await openBank({
    openingBalance,
    checkFences: options.checkFences ?? true,
    onWrite: (worker, write) => record.add({ ...write, worker, atMs: crew.nowMs() }),
  });
  const facts = (): Facts => factsOf(bank, store);
  const scene: Scene = {
    heading: headingOf(store),
    names,
    accounts: () => accountLines(record, facts()),
    events: () => record.events,
    nowMs: () => crew.nowMs(),
  };
  const look = lookOf(options);
  const screen = screenOf(options, scene, look);
  record.listen((event) => screen.event(event));
  try {
    const resource = `holdfast-demo:${randomUUID()}:account`;
    for (const name of names) {
      crew.start({ ...pace, name, store, resource, bank: bank.url });
    }
    await direct({ crew, record, names, ttlMs, signal, onScene: (title) => screen.scene(title) });
  } finally {
    await crew.end();
    await bank.close();
    screen.end();
  }
  const checks = judge(record.events, facts());
  const ok = checks.every((check) => check.ok);
  options.out.write(options.json ? report(record, facts(), checks, ok) : closing(checks, ok, look));
  return ok ? 0 : 1;
}

function factsOf(bank: Bank, store: StoreAddress): Facts {
  const balances = { open: bank.balance("open"), guarded: bank.balance("guarded") };
  return { openingBalance, deposit, balances, noticesDeadHolders: noticesDeadHolders(store) };
}

function headingOf(store: StoreAddress): string {
  const lock = `one lock (TTL ${ttlMs / 1_000} s, ${storeNames[store.kind]})`;
  return `${names.length} processes, one account, ${lock}`;
}

const storeNames: { readonly [kind in StoreAddress["kind"]]: string } = {
  embedded: "embedded store",
  redis: "one Redis server",
  redlock: "a quorum of Redis servers",
  postgres: "Postgres",
};

function accountLines(record: Record, facts: Facts): readonly string[] {
  const about = { open: "no fence check", guarded: "checks fences " } as const;
  return (["open", "guarded"] as const).map((name) => {
    const { balance, expected, accepted, refused } = accountOf(record.events, name, facts);
    const missing = expected - balance;
    const state = missing === 0 ? "all there" : `${missing} MISSING`;
    const more = refused === 0 ? "" : `, ${refused} refused`;
    const sum = `balance ${balance} after ${accepted} deposits`;
    return ` ${name.padEnd(9)}${about[name]}  ${sum}: ${state}${more}`;
  });
}

function lookOf({ color, columns, out }: DemoOptions): Look {
  const locale = process.env["LC_ALL"] || process.env["LC_CTYPE"] || process.env["LANG"] || "";
  const unicode = isTerminal(out) && (process.platform === "win32" || /utf-?8/i.test(locale));
  return { color, unicode, columns };
}

function isTerminal(out: NodeJS.WritableStream): out is NodeJS.WriteStream {
  return (out as Partial<NodeJS.WriteStream>).isTTY === true;
}

function screenOf({ json, out, columns }: DemoOptions, scene: Scene, look: Look): Screen {
  if (json) return silentScreen();
  const live = isTerminal(out) && out.rows >= liveRowsMin && columns >= liveColumnsMin;
  return live ? liveScreen(scene, look, out) : plainScreen(scene, look, out);
}

function closing(checks: readonly Check[], ok: boolean, look: Look): string {
  const lines = checks.flatMap((check) => {
    const sign = check.ok ? "ok " : "NO ";
    return wrapped(check.what, look.columns - 6).map((line, index) => {
      const lead = index === 0 ? paint(look, check.ok ? "green" : ["red", "bold"], sign) : "   ";
      return ` ${lead} ${line}`;
    });
  });
  const verdict = ok
    ? paint(look, ["bold", "green"], " Verdict: it happened as shown.")
    : paint(look, ["bold", "red"], " Verdict: this is NOT what the demo is to show.");
  const next = nextCommands.map(([command, why]) => `   ${command.padEnd(41)}${why}`);
  return ["", ...lines, "", verdict, "", " Try next:", ...next, ""].join("\n");
}

function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const line = lines.at(-1);
    if (line === undefined || line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines;
}

function report(record: Record, facts: Facts, checks: readonly Check[], ok: boolean): string {
  const accounts = {
    open: accountOf(record.events, "open", facts),
    guarded: accountOf(record.events, "guarded", facts),
  };
  return `${JSON.stringify({ ok, checks, accounts, events: record.events }, undefined, 2)}\n`;
}
