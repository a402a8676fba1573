import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/**
 * What happens to bytes of one direction: they `pass`, they are kept until they may (`hold`), or
 * they are swallowed for as long as their connection lives (`drop`).
 */
export type Passage = "pass" | "hold" | "drop";

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  /** Once a byte was swallowed, later ones would be taken for the missing reply. */
  broken: boolean;
  heldRequests: Buffer[];
  heldReplies: Buffer[];
}

/** Stands between a client and a server, and fails one direction of the line at a time. */
export class TcpProxy {
  readonly port: number;
  readonly #listener: Server;
  readonly #links: Set<Link>;
  #requests: Passage = "pass";
  #replies: Passage = "pass";
  #accepts = true;
  #mutesNew = false;
  #connectionCount = 0;
  #refusalCount = 0;
  #passed = "";
  #holdsAfter: string | undefined;
  #refused: { readonly text: string; readonly error: string } | undefined;
  #target: number;

  constructor(listener: Server, links: Set<Link>, serverPort: number) {
    this.#listener = listener;
    this.#links = links;
    this.#target = serverPort;
    this.port = (listener.address() as AddressInfo).port;
    listener.on("connection", (client) => this.#link(client, this.#target));
  }

  /** The port of the server that new connections lead to. */
  set target(port: number) {
    this.#target = port;
  }

  /** Holds all replies from the next request on that contains `text`, in any letter case. */
  holdRepliesAfter(text: string): void {
    this.#holdsAfter = text.toLowerCase();
  }

  /** True if the server has sent a reply that is held. */
  get hasHeldReplies(): boolean {
    return [...this.#links].some(({ heldReplies }) => heldReplies.length > 0);
  }

  /** Breaks every connection, with the replies that are held; later ones pass. */
  cutBeforeReply(): void {
    this.reset();
    this.replies = "pass";
  }

  /**
   * Answers each request that contains `text` by this error, in the server's stead, which does not
   * see it; undefined ends that. For one request at a time: it does not wait for earlier replies.
   */
  refuse(text: string, error: string | undefined): void {
    this.#refused = error === undefined ? undefined : { text: text.toLowerCase(), error };
  }

  /** How many requests were answered by an error in the server's stead. */
  get refusalCount(): number {
    return this.#refusalCount;
  }

  /** How often `text` went through to the server, in any letter case. */
  countRequests(text: string): number {
    return this.#passed.toLowerCase().split(text.toLowerCase()).length - 1;
  }

  set requests(passage: Passage) {
    this.#requests = passage;
    if (passage === "hold") return;
    for (const link of this.#links) {
      for (const chunk of link.heldRequests.splice(0)) this.#onRequest(link, chunk);
    }
  }

  set replies(passage: Passage) {
    this.#replies = passage;
    if (passage === "hold") return;
    for (const link of this.#links) {
      for (const chunk of link.heldReplies.splice(0)) this.#onReply(link, chunk);
    }
  }

  /** While false, each new connection is reset at once. */
  set accepts(accepts: boolean) {
    this.#accepts = accepts;
  }

  /** While true, who connects is accepted, and never answered. */
  set mutesNew(mutesNew: boolean) {
    this.#mutesNew = mutesNew;
  }

  /** How many connections were made to it so far. */
  get connectionCount(): number {
    return this.#connectionCount;
  }

  /** Breaks every connection, on both sides, as a firewall would. */
  reset(): void {
    for (const { client, server } of this.#links) {
      client.resetAndDestroy();
      server.destroy();
    }
    this.#links.clear();
  }

  async stop(): Promise<void> {
    this.reset();
    this.#listener.close();
    await once(this.#listener, "close");
  }

  #link(client: Socket, serverPort: number): void {
    if (!this.#accepts) {
      client.resetAndDestroy();
      return;
    }
    this.#connectionCount += 1;
    const isMute = this.#mutesNew;
    const server = connect({ port: serverPort, host: "127.0.0.1", noDelay: true });
    const link: Link = { client, server, broken: false, heldRequests: [], heldReplies: [] };
    this.#links.add(link);
    client.setNoDelay(true);
    client.on("data", (chunk) => {
      if (!isMute) this.#onRequest(link, chunk);
    });
    server.on("data", (chunk) => this.#onReply(link, chunk));
    const end = (): void => {
      this.#links.delete(link);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) socket.on("error", end).on("close", end);
  }

  #onRequest(link: Link, chunk: Buffer): void {
    const text = chunk.toString().toLowerCase();
    if (this.#refused !== undefined && text.includes(this.#refused.text)) {
      this.#refusalCount += 1;
      link.client.write(`-${this.#refused.error}\r\n`);
      return;
    }
    if (this.#holdsAfter !== undefined && text.includes(this.#holdsAfter)) {
      this.#holdsAfter = undefined;
      this.#replies = "hold";
    }
    if (this.#requests === "hold") link.heldRequests.push(chunk);
    else if (this.#requests === "pass") {
      this.#passed += chunk.toString();
      link.server.write(chunk);
    }
  }

  #onReply(link: Link, chunk: Buffer): void {
    if (this.#replies === "drop") link.broken = true;
    if (this.#replies === "hold") link.heldReplies.push(chunk);
    else if (!link.broken) link.client.write(chunk);
  }
}

/** A proxy before the server on `serverPort`, stopped when the test is over. */
export async function startTcpProxy(serverPort: number): Promise<TcpProxy> {
  const listener = createServer();
  listener.listen({ port: 0, host: "127.0.0.1" });
  await once(listener, "listening");
  const proxy = new TcpProxy(listener, new Set(), serverPort);
  onTestFinished(() => proxy.stop());
  return proxy;
}
