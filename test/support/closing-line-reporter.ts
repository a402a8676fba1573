import { isOnCi } from "./requirements.ts";
import type { Reporter, SerializedError, TestModule } from "vitest/node";

/**
 * Ends the output with one plain line, `N passed, N failed, N skipped`, for readers that are not
 * people. A file that could not be loaded and an error outside any test count as failures, so the
 * line never reads better than the exit code. On CI a skipped test fails the run.
 */
export default class ClosingLineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const counts = { passed: 0, failed: unhandled.length, skipped: 0, pending: 0 };
    for (const module of modules) {
      let failedTests = 0;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        counts[state] += 1;
        if (state === "failed") failedTests += 1;
      }
      // Errors of the file itself, or of a hook around its tests, fail it without failing a test.
      if (failedTests === 0 && module.state() === "failed") counts.failed += 1;
    }
    const failed = counts.failed + counts.pending;
    const line = `${counts.passed} passed, ${failed} failed, ${counts.skipped} skipped`;
    // Other reporters may print in the same turn, after this one.
    process.once("exit", () => {
      if (isOnCi && counts.skipped > 0) process.exitCode = 1;
      process.stdout.write(`${line}\n`);
    });
  }
}
