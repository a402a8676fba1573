import type { TestContext } from "vitest";

/**
 * Some tests need a tool that a machine may lack: a compiler for the clock library, Python, openssl,
 * `unshare`. On a developer's machine they are skipped, the output says why, and the closing line
 * counts them. On CI (`CI=true`) a missing tool is a failure: a suite that skips its tests in
 * silence is green and proves nothing. `test/tidy.test.ts` refuses other ways to skip a test.
 */
export const isOnCi: boolean = process.env["CI"] === "true";

/** Returns true if the tests that need it can run. Throws on CI if they cannot. */
export function isAvailable(what: string, isThere: boolean): boolean {
  if (isThere) return true;
  if (isOnCi) throw new Error(onCi(what));
  console.warn(`skipped: tests that need ${what}`);
  return false;
}

/** Returns the value. Skips the test if there is none, or fails it on CI. */
export function required<Value>(
  context: TestContext,
  what: string,
  value: Value | undefined,
): Value {
  if (value !== undefined) return value;
  if (isOnCi) throw new Error(onCi(what));
  return context.skip(`needs ${what}`);
}

function onCi(what: string): string {
  return `this machine lacks ${what}; on CI no test may be skipped`;
}
