import type { DemoEvent } from "./events.ts";
import { accountLane, labelKind, workerLane } from "./lanes.ts";
import { narrate, timed } from "./narration.ts";
import { drawTimeline, legend, type Look, paint } from "./timeline.ts";

export interface Scene {
  readonly heading: string;
  readonly names: readonly string[];
  /** Returns one line per account about its balance. */
  accounts(): readonly string[];
  events(): readonly DemoEvent[];
  nowMs(): number;
}

/** Shows the demo while it runs. */
export interface Screen {
  scene(title: string): void;
  event(event: DemoEvent): void;
  /** Draws the complete picture a last time. */
  end(): void;
}

/** Usual length of the demo. The time axis grows if the demo takes longer. */
const usualMs = 12_000;
const frameMs = 100;
const sentencesShown = 4;

export function picture(scene: Scene, look: Look): readonly string[] {
  const events = scene.events();
  const nowMs = scene.nowMs();
  const lanes = [
    ...scene.names.map((name) => workerLane(events, name, nowMs)),
    accountLane(events, "open"),
    accountLane(events, "guarded"),
  ];
  const totalMs = Math.max(usualMs, nowMs);
  return [...drawTimeline(lanes, { ...look, totalMs }), "", ...legend(look, labelKind(events))];
}

/** Screen for a terminal: redraws in place several times a second. */
export function liveScreen(scene: Scene, look: Look, out: NodeJS.WritableStream): Screen {
  let drawn = 0;
  let title = "";
  const sentences: string[] = [];
  const clip = (line: string): string => line.slice(0, look.columns - 1);
  const draw = (last: boolean): void => {
    const story = [
      ...(last ? [] : ["", paint(look, "bold", clip(` ${title}`))]),
      ...(last ? [] : padded(sentences).map((line) => paint(look, "dim", clip(line)))),
    ];
    const lines = [
      paint(look, "bold", clip(` ${scene.heading}`)),
      "",
      ...picture(scene, look),
      "",
      ...scene.accounts().map(clip),
      ...story,
    ];
    const up = drawn === 0 ? "" : `\u001B[${drawn}A`;
    out.write(`${up}\r\u001B[J${lines.join("\n")}\n`);
    drawn = lines.length;
  };
  out.write("\u001B[?25l");
  draw(false);
  const timer = setInterval(() => draw(false), frameMs);
  return {
    scene: (next) => {
      title = next;
    },
    event: (event) => {
      const sentence = narrate(event);
      if (sentence !== undefined) sentences.push(timed(event.atMs, sentence));
    },
    end: () => {
      clearInterval(timer);
      draw(true);
      out.write("\u001B[?25h");
    },
  };
}

/** Returns a constant number of lines, so that the picture does not move. */
function padded(sentences: readonly string[]): readonly string[] {
  const shown = sentences.slice(-sentencesShown);
  return [...shown, ...Array.from({ length: sentencesShown - shown.length }, () => "")];
}

/** Screen for logs and pipes: one line per event, and the picture at the end. */
export function plainScreen(scene: Scene, look: Look, out: NodeJS.WritableStream): Screen {
  const write = (line: string): void => void out.write(`${line}\n`);
  write(scene.heading);
  return {
    scene: (title) => write(`\n-- ${title}`),
    event: (event) => {
      const sentence = narrate(event);
      if (sentence !== undefined) write(timed(event.atMs, sentence));
    },
    end: () => {
      for (const line of ["", ...picture(scene, look), "", ...scene.accounts()]) write(line);
    },
  };
}

export function silentScreen(): Screen {
  return { scene: () => undefined, event: () => undefined, end: () => undefined };
}
