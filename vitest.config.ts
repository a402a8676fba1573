import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Servers are shared by a file's tests and files run side by side on few cores.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
    globalSetup: ["test/support/global-setup.ts"],
    setupFiles: ["test/support/leaks.ts", "test/support/no-unhandled-rejections.ts"],
    reporters: ["default", "./test/support/closing-line-reporter.ts"],
  },
});
