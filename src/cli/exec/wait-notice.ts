import type { Inspection } from "../../core/store.ts";
import type { Connected } from "../connect.ts";
import { holderText } from "../lock-view.ts";
import type { Output } from "../output.ts";
import { printable, shortDuration } from "../words.ts";

/** Wait after which a message is written. Usual waits are shorter. */
const noticeAfterMs = 1_000;

/**
 * Writes the holder of the lock to stderr if the wait takes longer than `noticeAfterMs`. Returns a
 * function that the caller must call when the wait is over.
 */
export function noteWait(
  { locks }: Connected,
  { resources, waitMs }: { readonly resources: readonly string[]; readonly waitMs: number },
  output: Output,
): () => void {
  let isOver = false;
  const note = async (): Promise<void> => {
    for (const resource of resources) {
      const seen = await locks.inspect(resource);
      if (isOver) return;
      if (seen.state === "free") continue;
      output.note(sentence(seen, waitMs));
      return;
    }
  };
  const timer = setTimeout(() => {
    // If the store does not answer, the acquire reports that.
    note().catch(() => undefined);
  }, noticeAfterMs);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

/** Writes to stderr that new servers of a quorum do not vote yet, and until when. */
export function noteCountdown({ locks }: Connected, output: Output): void {
  locks.on("warning", ({ code, what }) => {
    if (code === "admission-countdown" && !output.debug) output.note(`waiting: ${what}`);
  });
}

function sentence(seen: Inspection, waitMs: number): string {
  const limit = waitMs === Infinity ? "for ever" : `up to ${shortDuration(waitMs)}`;
  const name = `"${printable(seen.resource)}"`;
  if (seen.state !== "held") return `waiting ${limit} for ${name}: no holder has a quorum`;
  return `waiting ${limit} for ${name}, which is held by ${holderText(seen)}`;
}
