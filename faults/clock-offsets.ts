import { SeededRandom } from "../src/testing/seeded-random.ts";

const second = 1_000;
const minute = 60 * second;
const year = 365 * 24 * 60 * minute;

/**
 * Offsets of seconds, minutes and years, as on real machines whose clock was never set, or by
 * hand.
 */
const offsetsMs = [3 * second, 20 * second, 5 * minute, 120 * minute, 3 * year] as const;

/**
 * Draws an offset for the wall clock of each client process, for the whole run; negative is
 * behind. The first client's clock is right, and about two of three of the others are wrong. The
 * same seed gives the same offsets.
 */
export function drawClockOffsets(seed: number, clients: number): number[] {
  // A seed that differs from the one for the faults.
  const random = new SeededRandom(seed + 2 ** 33);
  return Array.from({ length: clients }, (_, client) => {
    const [chance, which, side] = [random.fraction(), random.fraction(), random.fraction()];
    if (client === 0 || chance < 1 / 3) return 0;
    const offsetMs = offsetsMs[Math.floor(which * offsetsMs.length)] ?? second;
    return side < 0.5 ? -offsetMs : offsetMs;
  });
}

/** Returns an offset as text, such as "+3 s", "-2 h", or "right". */
export function describeOffset(offsetMs: number): string {
  if (offsetMs === 0) return "right";
  const ms = Math.abs(offsetMs);
  const [unit, name] =
    ms >= year ? [year, "years"] : ms >= minute ? [minute, "min"] : [second, "s"];
  return `${offsetMs < 0 ? "-" : "+"}${Math.round(ms / unit)} ${name}`;
}
