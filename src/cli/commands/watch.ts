import { setTimeout as sleep } from "node:timers/promises";
import type { Connected } from "../connect.ts";
import { interruptible } from "../interruptible.ts";
import { failureOf } from "../failure.ts";
import { holderText, lockDocument } from "../lock-view.ts";
import type { Output } from "../output.ts";
import { flagDuration, type AddCommand, type Session } from "../session.ts";
import { Sightings, type Change } from "../watch/sightings.ts";
import { printable } from "../words.ts";

const examples = `
Examples:
  holdfast watch                    a live table; q or Ctrl-C ends it
  holdfast watch --once             the table once, as it is now
  holdfast watch > changes.log      without a terminal: a line for each change
  holdfast watch --json             … as JSON

AGE counts from when watch first saw the holder (≥: it was there before). TTL is what is left of
it; it refills with each renewal.`;

interface WatchFlags {
  readonly interval: string;
  readonly once?: boolean;
}

export const addWatch: AddCommand = (program, host) => {
  program
    .command("watch")
    .summary("show what is held, live")
    .description("Show what is held, live.")
    .option("-i, --interval <duration>", "how often to look", "500ms")
    .option("-1, --once", "look once, and end")
    .addHelpText("after", examples)
    .action(host.act((session, flags: WatchFlags) => watch(session, flags)));
};

async function watch(session: Session, flags: WatchFlags): Promise<"ok"> {
  const intervalMs = flagDuration("--interval", flags.interval, 50, 3_600_000);
  const { output } = session;
  return await session.using(async (connected) => {
    if (flags.once === true) return await once(connected, output);
    const live = output.isTerminal && !output.json;
    await interruptible((signal) =>
      live
        ? draw(connected, output, intervalMs, signal)
        : printEvents(connected, output, intervalMs, signal),
    );
    return "ok";
  });
}

async function once({ locks, description }: Connected, output: Output): Promise<"ok"> {
  const sightings = new Sightings();
  const held = await locks.list();
  sightings.update(held, 0);
  if (output.json) output.document({ store: description, locks: held.map(lockDocument) });
  else {
    const { renderFrame } = await import("../watch/screen.ts");
    const frame = {
      store: description,
      sightings: sightings.all,
      nowMs: 0,
      trouble: undefined,
      isOnce: true,
    };
    for (const line of renderFrame(frame, output, Infinity)) output.line(line);
  }
  return "ok";
}

async function draw(
  { locks, description: store }: Connected,
  output: Output,
  intervalMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { renderFrame, Screen } = await import("../watch/screen.ts");
  const sightings = new Sightings();
  const screen = new Screen();
  const keys = new KeyPresses();
  const ended = AbortSignal.any([signal, keys.quit]);
  screen.enter();
  try {
    while (!ended.aborted) {
      let trouble: string | undefined;
      try {
        sightings.update(await locks.list(), performance.now());
      } catch (error) {
        // The last data stays on the screen, because the servers may become reachable again.
        trouble = failureOf(error)?.message ?? String(error);
      }
      const nowMs = performance.now();
      const frame = { store, sightings: sightings.all, nowMs, trouble, isOnce: false };
      screen.draw(renderFrame(frame, output, process.stdout.rows ?? 24));
      await sleep(intervalMs, undefined, { signal: ended }).catch(() => undefined);
    }
  } finally {
    keys.end();
    screen.leave();
  }
}

async function printEvents(
  { locks }: Connected,
  output: Output,
  intervalMs: number,
  signal: AbortSignal,
): Promise<void> {
  const sightings = new Sightings();
  while (!signal.aborted) {
    for (const change of sightings.update(await locks.list(), performance.now())) {
      if (output.json) output.document(changeDocument(change));
      else output.line(changeLine(change));
    }
    await sleep(intervalMs, undefined, { signal }).catch(() => undefined);
  }
}

function changeDocument({ kind, seen }: Change): object {
  return { at: new Date().toISOString(), change: kind, ...lockDocument(seen) };
}

function changeLine({ kind, seen }: Change): string {
  const fence = seen.fence === undefined ? "" : `  fence ${seen.fence}`;
  const who = kind === "held" ? `held by ${holderText(seen)}` : `freed by ${holderText(seen)}`;
  return `${new Date().toISOString()}  ${printable(seen.resource)}  ${who}${fence}`;
}

/** Keys that end the live table: q, Ctrl-C and Ctrl-D. */
const quitKeys = ["q", "\u0003", "\u0004"];

/** Aborts `quit` on q, Ctrl-C or Ctrl-D. In raw mode Ctrl-C does not send a signal. */
class KeyPresses {
  readonly #controller = new AbortController();
  readonly #onData = (data: Buffer): void => {
    const text = data.toString("latin1");
    if (quitKeys.some((key) => text.includes(key))) this.#controller.abort();
  };
  readonly #listening = process.stdin.isTTY;

  constructor() {
    if (!this.#listening) return;
    process.stdin.setRawMode(true);
    process.stdin.on("data", this.#onData);
  }

  get quit(): AbortSignal {
    return this.#controller.signal;
  }

  end(): void {
    if (!this.#listening) return;
    process.stdin.off("data", this.#onData);
    process.stdin.setRawMode(false);
    process.stdin.pause();
  }
}
