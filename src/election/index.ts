/** `holdfast/election`: one of several candidates leads, and its term has a fence. */

export { lead, type LeadOptions, type LeadWork, type RestartOptions } from "./lead.ts";
export type {
  Candidate,
  CandidateEventName,
  CandidateEvents,
  CandidateListener,
  CandidateState,
  DeposedReason,
} from "./candidate.ts";
export type { Term } from "./term.ts";
export { TermEndedError } from "./term-ended-error.ts";
export { leaders, type LeadersOptions, type Leadership } from "./leaders.ts";
