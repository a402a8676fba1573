export {
  FaultyNode,
  faultyNode,
  type NodeFault,
  type FaultScope,
  type SentCommand,
} from "./faulty-node.ts";
export { ManualClock, settle, type ManualClockOptions } from "./manual-clock.ts";
export { manualRuntime, type ManualRuntime, type ManualRuntimeOptions } from "./manual-runtime.ts";
export { SeededRandom } from "./seeded-random.ts";
export { storeConformance } from "./conformance.ts";
export type { ConformanceCase, ConformanceHarness } from "./conformance/harness.ts";
