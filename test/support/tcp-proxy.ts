import type { Server, Socket } from "node:net";
import { onTestFinished } from "vitest";
import { listen, TcpProxy } from "../../tools/network/tcp-proxy.mjs";

/**
 * What happens to the bytes of one direction: they `pass`, they are kept until they may (`hold`),
 * or they are lost (`drop`). A connection that has lost a byte of a reply gets no more of them: the
 * client would take a later reply for the missing one.
 */
export type Passage = "pass" | "hold" | "drop";

/** A proxy that looks for texts in what clients send, to fail an exact request. */
export class WatchingProxy extends TcpProxy {
  /** While false, each new connection is reset at once. */
  accepts = true;
  /** While true, a new connection is accepted, and its requests are lost. */
  mutesNew = false;
  #requests: Passage = "pass";
  #replies: Passage = "pass";
  #connectionCount = 0;
  #refusalCount = 0;
  #passed = "";
  #holdsAfter: string | undefined;
  #refused: { readonly text: string; readonly error: string } | undefined;
  /** Client sockets that have lost bytes of a reply. */
  readonly #broken = new WeakSet<Socket>();

  constructor(listener: Server, port: number, target: number) {
    super(listener, port, target, { losesAtEnd: true });
  }

  /** Holds all replies from the next request on that contains `text`, in any letter case. */
  holdRepliesAfter(text: string): void {
    this.#holdsAfter = text.toLowerCase();
  }

  /** True if the server has sent a reply that is held. */
  get hasHeldReplies(): boolean {
    return this.pairs.some(({ replies }) => replies.isHolding);
  }

  /** Breaks every connection, with the replies that are held. Later ones pass. */
  cutBeforeReply(): void {
    this.reset();
    this.replies = "pass";
  }

  /**
   * Sends this error as the reply to each request that contains `text`, and does not pass the
   * request on; undefined ends that. For one request at a time: it does not wait for earlier
   * replies.
   */
  refuse(text: string, error: string | undefined): void {
    this.#refused = error === undefined ? undefined : { text: text.toLowerCase(), error };
  }

  /** Number of requests that were refused here. */
  get refusalCount(): number {
    return this.#refusalCount;
  }

  /** Returns how often `text` was passed to the server, in any letter case. */
  countRequests(text: string): number {
    return this.#passed.toLowerCase().split(text.toLowerCase()).length - 1;
  }

  set requests(passage: Passage) {
    if (passage === "drop") for (const { requests } of this.pairs) requests.discard();
    this.#requests = passage;
    if (passage === "hold") this.hold("requests");
    else this.heal("requests", "deliver");
  }

  set replies(passage: Passage) {
    if (passage === "drop") {
      // The replies that are held are lost as well.
      for (const { client, replies } of this.pairs) {
        if (!replies.isHolding) continue;
        replies.discard();
        this.#broken.add(client);
      }
    }
    this.#replies = passage;
    if (passage === "hold") this.hold("replies");
    else this.heal("replies", "deliver");
  }

  /** Number of connections that clients have made. */
  get connectionCount(): number {
    return this.#connectionCount;
  }

  protected override connected(client: Socket): void {
    if (!this.accepts) {
      client.resetAndDestroy();
      return;
    }
    this.#connectionCount += 1;
    const isMute = this.mutesNew;
    super.connected(client, {
      requests: {
        onChunk: (chunk) => !isMute && this.#passesRequest(client, chunk),
        onPassed: (chunk) => {
          this.#passed += chunk.toString();
        },
      },
      replies: { onChunk: () => this.#passesReply(client) },
    });
  }

  #passesRequest(client: Socket, chunk: Buffer): boolean {
    const text = chunk.toString().toLowerCase();
    if (this.#refused !== undefined && text.includes(this.#refused.text)) {
      this.#refusalCount += 1;
      client.write(`-${this.#refused.error}\r\n`);
      return false;
    }
    if (this.#holdsAfter !== undefined && text.includes(this.#holdsAfter)) {
      this.#holdsAfter = undefined;
      this.replies = "hold";
    }
    return this.#requests !== "drop";
  }

  #passesReply(client: Socket): boolean {
    if (this.#replies === "drop") this.#broken.add(client);
    return !this.#broken.has(client);
  }
}

/** Starts a proxy before the server on `serverPort`. It is stopped when the test is over. */
export async function startTcpProxy(serverPort: number): Promise<WatchingProxy> {
  const { listener, port } = await listen();
  const proxy = new WatchingProxy(listener, port, serverPort);
  onTestFinished(() => proxy.stop());
  return proxy;
}
