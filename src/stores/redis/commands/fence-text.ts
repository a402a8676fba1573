/** What is cut off the end of a fence: the rest is the same for fences of one second. */
const tail = 1_000_000;

let lastHead = 0;
let lastText = "0";

/**
 * A fence in digits. It is beyond the numbers that engines write down fast, and renewals write very
 * many of them, most with the same beginning.
 */
export function fenceText(fence: number): string {
  if (fence < tail) return String(fence);
  const head = Math.floor(fence / tail);
  if (head !== lastHead) {
    lastHead = head;
    lastText = String(head);
  }
  // With a one before it, which is cut off again, no zero is lost.
  return lastText + String(tail + (fence - head * tail)).slice(1);
}
