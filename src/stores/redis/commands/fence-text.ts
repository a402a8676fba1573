/**
 * Divisor that splits a fence into whole seconds and the rest: fences of one second share the
 * seconds.
 */
const tail = 1_000_000;

let lastHead = 0;
let lastText = "0";

/**
 * Returns a fence in digits. Engines format numbers of this size slowly, and renewals need very
 * many of them. Most have the same first digits, whose text is cached.
 */
export function fenceText(fence: number): string {
  if (fence < tail) return String(fence);
  const head = Math.floor(fence / tail);
  if (head !== lastHead) {
    lastHead = head;
    lastText = String(head);
  }
  // Adds a leading 1 to the rest and cuts it off again, so that no leading zero is lost.
  return lastText + String(tail + (fence - head * tail)).slice(1);
}
