import { batchCall, firstReplyAt, type BatchCall, type Batching, type BatchPart } from "./batch.ts";
import type { NodeCall } from "./node-call.ts";
import { unexpected } from "./replies.ts";

/**
 * One operation that only the batch scripts know, such as an acquire with a place in the queue. It
 * goes together with others like any, and as a batch of one where there are none.
 */
export class LonePartCall<Reply> implements NodeCall<Reply> {
  readonly key: string;
  readonly needsInfo: boolean;
  readonly part: BatchPart;
  readonly #batching: Batching;
  readonly #read: (text: string) => Reply;
  readonly #afterResend: (reply: Reply) => Reply | undefined;

  constructor(
    batching: Batching,
    part: BatchPart,
    read: (text: string) => Reply,
    afterResend: (reply: Reply) => Reply | undefined = (reply) => reply,
  ) {
    this.key = part.keys[0] ?? "";
    this.needsInfo = batching.strict;
    this.part = part;
    this.#afterResend = afterResend;
    this.#batching = batching;
    this.#read = read;
  }

  first(verify: boolean): readonly string[] {
    return this.#call().first(verify);
  }

  fallback(error: Error): readonly string[] | undefined {
    return error.message.startsWith("NOSCRIPT") ? this.#call().whole() : undefined;
  }

  read(reply: unknown): Reply {
    const at = firstReplyAt(this.#batching);
    if (!Array.isArray(reply) || reply.length !== at + 1) throw unexpected(reply);
    return this.readPart(reply[at]);
  }

  readPart(reply: unknown): Reply {
    if (typeof reply !== "string") throw unexpected(reply);
    return this.#read(reply);
  }

  afterResend(reply: Reply): Reply | undefined {
    return this.#afterResend(reply);
  }

  #call(): BatchCall {
    return batchCall(this.#batching, [this.part]);
  }
}
