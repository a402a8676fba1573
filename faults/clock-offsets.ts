import { SeededRandom } from "../src/testing/seeded-random.ts";

const second = 1_000;
const minute = 60 * second;
const year = 365 * 24 * 60 * minute;

/** Seconds, minutes and years, as clocks of real machines are wrong: never set, or set by hand. */
const offsetsMs = [3 * second, 20 * second, 5 * minute, 120 * minute, 3 * year] as const;

/**
 * How far the wall clock of each client process is ahead (behind, if negative) for the whole run.
 * The first client's is right; of the others about two of three are wrong. The same for the same
 * seed.
 */
export function drawClockOffsets(seed: number, clients: number): number[] {
  // Not the numbers that the faults are drawn from.
  const random = new SeededRandom(seed + 2 ** 33);
  return Array.from({ length: clients }, (_, client) => {
    const [chance, which, side] = [random.fraction(), random.fraction(), random.fraction()];
    if (client === 0 || chance < 1 / 3) return 0;
    const offsetMs = offsetsMs[Math.floor(which * offsetsMs.length)] ?? second;
    return side < 0.5 ? -offsetMs : offsetMs;
  });
}

/** "+3 s", "-2 h", or "right". */
export function describeOffset(offsetMs: number): string {
  if (offsetMs === 0) return "right";
  const ms = Math.abs(offsetMs);
  const [unit, name] =
    ms >= year ? [year, "years"] : ms >= minute ? [minute, "min"] : [second, "s"];
  return `${offsetMs < 0 ? "-" : "+"}${Math.round(ms / unit)} ${name}`;
}
