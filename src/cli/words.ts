/** Formats numbers and times for people. */

export function shortDuration(ms: number | undefined): string {
  if (ms === undefined) return "–";
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)}s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes}m${String(Math.floor(ms / 1_000) % 60).padStart(2, "0")}s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours}h${String(minutes % 60).padStart(2, "0")}m`;
  return `${Math.floor(hours / 24)}d${hours % 24}h`;
}

export function shortLatency(ms: number): string {
  if (ms < 1) return `${Math.round(ms * 1_000)} µs`;
  return ms < 100 ? `${ms.toFixed(ms < 10 ? 2 : 1)} ms` : `${Math.round(ms)} ms`;
}

/** Replaces control characters: text that other clients wrote must not control the terminal. */
export function printable(text: string): string {
  return text.replaceAll(/\p{Cc}|\p{Cf}/gu, "\uFFFD");
}

const eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/** Returns a bar of `width` cells, filled to `share` with a precision of an eighth of a cell. */
export function bar(share: number, width: number): string {
  const cells = Math.max(0, Math.min(1, share)) * width;
  const whole = Math.floor(cells);
  const rest = eighths[Math.floor((cells - whole) * 8)] ?? "";
  return ("█".repeat(whole) + rest).padEnd(width);
}
