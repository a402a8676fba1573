import { refusal } from "../commands/refusals.ts";

/** How a node answered one call, in what it means for the protocol. */
export type NodeReply<Reply> =
  | { readonly kind: "reply"; readonly reply: Reply }
  /** The server refused. */
  | { readonly kind: "error"; readonly error: Error }
  /** Certainly not sent, so certainly not applied. */
  | { readonly kind: "unsent"; readonly error: Error }
  /** Sent, and never answered: it is unknown whether it was applied. */
  | { readonly kind: "unknown"; readonly error: Error; readonly timedOut: boolean };

/** Why there is no reply. */
export type NodeFailure = Exclude<NodeReply<never>, { readonly kind: "reply" }>;

/** The server lacks the script, and without INFO it must not be given it. */
export const noInfo: NodeReply<never> = { kind: "error", error: refusal(["X", "NOINFO"]) };

/** It may have run before, and what the first run did is not known. */
export const unproven: NodeReply<never> = {
  kind: "unknown",
  error: new Error("the connection changed before the reply: a missing key proves nothing"),
  timedOut: false,
};

export const noLongerWanted: NodeReply<never> = {
  kind: "unsent",
  error: new Error("no longer wanted"),
};
