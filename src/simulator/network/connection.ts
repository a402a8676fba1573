import type { NodeClient } from "../node/simulated-node.ts";

/** One command in flight and the callbacks for its reply. */
export interface Message {
  readonly command: readonly string[];
  readonly sentMs: number;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
  /** True if the command reaches the node even after its connection closed. */
  stray: boolean;
}

interface HeldReply {
  readonly message: Message;
  readonly reply: unknown;
  readonly executedMs: number;
}

/** TCP connection: messages arrive in the order in which they were sent, or not at all. */
export class Connection implements NodeClient {
  /** Number of the server process to which this connection leads. */
  readonly incarnation: number;
  readonly pending: Message[] = [];
  heldRequests: Message[] = [];
  heldReplies: HeldReply[] = [];
  open = true;
  readonly #onCrash: (connection: Connection) => void;
  #lastArrivalMs = 0;
  #lastReplyMs = 0;

  constructor(incarnation: number, onCrash: (connection: Connection) => void) {
    this.incarnation = incarnation;
    this.#onCrash = onCrash;
  }

  nodeCrashed(): void {
    this.#onCrash(this);
  }

  nextArrival(atMs: number): number {
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, atMs);
    return this.#lastArrivalMs;
  }

  nextReply(atMs: number): number {
    this.#lastReplyMs = Math.max(this.#lastReplyMs, atMs);
    return this.#lastReplyMs;
  }

  /** Removes a message from `pending`. Returns false if the message was not in it. */
  settled(message: Message): boolean {
    const index = this.pending.indexOf(message);
    if (index < 0) return false;
    this.pending.splice(index, 1);
    return true;
  }

  releaseRequests(carry: (held: { connection: Connection; message: Message }) => void): void {
    const held = this.heldRequests;
    this.heldRequests = [];
    for (const message of held) carry({ connection: this, message });
  }

  releaseReplies(bring: (held: HeldReply & { connection: Connection }) => void): void {
    const held = this.heldReplies;
    this.heldReplies = [];
    for (const reply of held) bring({ connection: this, ...reply });
  }
}
