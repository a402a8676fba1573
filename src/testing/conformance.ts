import { badInput } from "./conformance/bad-input.ts";
import { contending } from "./conformance/contending.ts";
import { excluding } from "./conformance/excluding.ts";
import { expiring } from "./conformance/expiring.ts";
import { fencing } from "./conformance/fencing.ts";
import type { ConformanceCase } from "./conformance/harness.ts";
import { inspecting } from "./conformance/inspecting.ts";
import { listing } from "./conformance/listing.ts";
import { marks } from "./conformance/marks.ts";
import { naming } from "./conformance/naming.ts";
import { several } from "./conformance/several.ts";
import { using } from "./conformance/using.ts";
import { waiting } from "./conformance/waiting.ts";

/**
 * Cases that every store must pass. They use only the public API. Any test runner can run them:
 *
 * ```ts
 * for (const { name, run } of storeConformance) test(name, () => run(harness));
 * ```
 *
 * The cases may run in parallel with real time, but only one after the other with a manual clock.
 */
export const storeConformance: readonly ConformanceCase[] = [
  ...excluding,
  ...waiting,
  ...contending,
  ...expiring,
  ...fencing,
  ...several,
  ...naming,
  ...using,
  ...inspecting,
  ...listing,
  ...marks,
  ...badInput,
];
