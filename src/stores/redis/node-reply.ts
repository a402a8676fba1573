import { refusal } from "./replies.ts";

/** How a node answered one call, in what it means for the protocol. */
export type NodeReply<Reply> =
  | { readonly kind: "reply"; readonly reply: Reply }
  /** The server refused. */
  | { readonly kind: "error"; readonly error: Error }
  /** Certainly not sent, so certainly not applied. */
  | { readonly kind: "unsent"; readonly error: Error }
  /** Sent, and never answered: applied or not, nobody knows. */
  | { readonly kind: "unknown"; readonly error: Error; readonly timedOut: boolean };

/** The server lacks the script, and without INFO it must not be given it. */
export const noInfo: NodeReply<never> = { kind: "error", error: refusal(["X", "NOINFO"]) };

export const noLongerWanted: NodeReply<never> = {
  kind: "unsent",
  error: new Error("no longer wanted"),
};
