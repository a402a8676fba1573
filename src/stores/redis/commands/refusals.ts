import { ForeignHolderError, StoreError, type HoldfastError } from "../../../core/errors.ts";
import { quoted } from "../../../core/report/quoted.ts";
import { wrongType } from "./foreign-keys.ts";
import { otherFormat } from "./layout-format.ts";
import { tooFewAcks } from "./replication-faults.ts";

export function unexpected(reply: unknown): StoreError {
  return new StoreError(`the node answered something unexpected: ${quoted(String(reply))}`);
}

/** Errors of a server that do not end by waiting: rights, credentials, a key of another type. */
const permanentErrors =
  /^(NOPERM|NOAUTH|WRONGPASS|WRONGTYPE|ERR unknown command|CROSSSLOT|ERR The user executing)/;

/** True if another attempt cannot help. */
export function isPermanent(cause: unknown): boolean {
  if (cause instanceof StoreError || cause instanceof ForeignHolderError) return true;
  return cause instanceof Error && permanentErrors.test(cause.message);
}

/**
 * Returns the error for a refusal by a script ("X CODE detail"). Its message contains the remedy.
 */
export function refusal(words: readonly string[]): HoldfastError {
  const [, code, detail = ""] = words;
  switch (code) {
    case "FORMAT":
      return new StoreError(otherFormat(detail));
    case "MAXTTL":
      return new StoreError(
        `the TTL is above the deployment's maxTtl of ${detail} ms kept on this node: give every ` +
          "client the same maxTtl, and set the field `max` of the key `holdfast:node` to it",
      );
    case "NOINFO":
      return new StoreError(
        "this node's user may not run INFO, without which a restart cannot be seen: allow it " +
          '(ACL SETUSER … +info), or set admission to "off" for every client of this node',
      );
    case "NOACKS": {
      const [got = 0, acks = 0, timeoutMs = 0] = detail.split("/").map(Number);
      return tooFewAcks(got, acks, timeoutMs);
    }
    case "PARTIAL":
      return new StoreError(
        "some of this owner's keys vanished on this node while others are still there " +
          "(deleted or evicted): check maxmemory-policy",
      );
    case "WRONGTYPE":
      // The key may contain spaces.
      return wrongType(detail, words.slice(3).join(" "));
    case "FENCE":
      return new StoreError(
        `the next fence would be ${detail}, beyond 2^53: a clock far in the future has proposed`,
      );
    default:
      return unexpected(words.join(" "));
  }
}
