export { judge } from "./checkers/judge.ts";
export { checkConfirmations } from "./checkers/confirmations.ts";
export { checkFences } from "./checkers/fences.ts";
export {
  checkMutex,
  fencedMutex,
  ownerAwareMutex,
  type MutexModel,
} from "./checkers/mutex-models.ts";
export { Assumptions, type Break } from "./assumptions.ts";
export type { Register } from "./workload/register.ts";
export type {
  ConfirmationRecord,
  GrantRecord,
  History,
  TenureRecord,
  Violation,
} from "./history.ts";
export type { Fault, FaultKind, Scenario, StorePlan, WorkPlan } from "./scenario.ts";
export {
  simulate,
  simulateNow,
  type SimulationOptions,
  type SimulationReport,
  type SimulatorHost,
} from "./simulate.ts";
export { scenarioOf } from "./swarm.ts";
export type { TraceEvent } from "./trace.ts";
export type { PageOptions } from "./report/html-page.ts";
export { htmlTimeline } from "./report/html-timeline.ts";
export { textTimeline, type TimelineOptions } from "./report/text-timeline.ts";
