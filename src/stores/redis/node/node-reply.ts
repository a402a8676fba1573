import { refusal } from "../commands/refusals.ts";

/** Reply of a node to one call, or the kind of its failure. */
export type NodeReply<Reply> =
  | { readonly kind: "reply"; readonly reply: Reply }
  /** The server refused the call. */
  | { readonly kind: "error"; readonly error: Error }
  /** The call certainly had no effect: it was not sent, or was refused before any write. */
  | { readonly kind: "unsent"; readonly error: Error }
  /** The call was sent and has no reply: it is unknown whether it ran. */
  | { readonly kind: "unknown"; readonly error: Error; readonly timedOut: boolean };

/** Reason why a call has no usable reply. */
export type NodeFailure = Exclude<NodeReply<never>, { readonly kind: "reply" }>;

/**
 * Failure if the server lacks the script and this user may not run INFO. The text of the script
 * must not be sent then, because the script could not check in which process it runs.
 */
export const noInfo: NodeReply<never> = { kind: "error", error: refusal(["X", "NOINFO"]) };

/** Failure if the call may have run twice and the effect of the first run is unknown. */
export const unproven: NodeReply<never> = {
  kind: "unknown",
  error: new Error("the connection changed before the reply: a missing key proves nothing"),
  timedOut: false,
};

export const noLongerWanted: NodeReply<never> = {
  kind: "unsent",
  error: new Error("no longer wanted"),
};
