import { connect, createServer, type Server, type Socket } from "node:net";
import { freePort } from "../tools/network/free-port.mjs";
import { Flow } from "./flow.ts";

/** Direction of the bytes: requests to the server, or replies to the client. */
export type Direction = "requests" | "replies";

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  readonly requests: Flow;
  readonly replies: Flow;
}

/**
 * A TCP proxy between one client process and one node. It can hold back either direction, and
 * deliver the held bytes when it heals, as a network that comes back does, or break the connection
 * instead. A connection that is opened meanwhile is accepted and stays silent. It can also break
 * connections at the moment when a reply comes back.
 */
export class Link {
  readonly port: number;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  readonly #held = { requests: false, replies: false };
  #delayMs = 0;

  private constructor(port: number, server: Server) {
    this.port = port;
    this.#server = server;
  }

  static async open(nodePort: number): Promise<Link> {
    for (let attempt = 1; ; attempt += 1) {
      const port = await freePort();
      const server = createServer({ pauseOnConnect: false });
      const listening = await new Promise<boolean>((resolve) => {
        server.once("error", () => resolve(false));
        server.listen({ port, host: "127.0.0.1", exclusive: true }, () => resolve(true));
      });
      if (listening) {
        const link = new Link(port, server);
        server.on("connection", (socket) => link.#connected(socket, nodePort));
        return link;
      }
      if (attempt >= 20) throw new Error("found no free port for a link");
    }
  }

  hold(direction: Direction): void {
    this.#held[direction] = true;
    for (const pair of this.#pairs) pair[direction].hold();
  }

  heal(direction: Direction, how: "deliver" | "reset"): void {
    this.#held[direction] = false;
    for (const pair of this.#pairs) {
      if (how === "reset" && pair[direction].isHolding) this.#break(pair);
      else pair[direction].open();
    }
  }

  /**
   * Breaks each open connection when its next reply arrives here, and loses that reply: the server
   * has run the command, and the client does not learn it.
   */
  loseNextReplies(): void {
    for (const { replies } of this.#pairs) replies.breaksAtNext = true;
  }

  /** Ends `loseNextReplies` for the connections that have had no reply since. */
  keepReplies(): void {
    for (const { replies } of this.#pairs) replies.breaksAtNext = false;
  }

  setDelay(delayMs: number): void {
    this.#delayMs = delayMs;
    for (const { requests, replies } of this.#pairs) {
      requests.delayMs = delayMs;
      replies.delayMs = delayMs;
    }
  }

  close(): void {
    this.#server.close();
    for (const pair of this.#pairs) this.#break(pair);
  }

  #connected(client: Socket, nodePort: number): void {
    const server = connect({ port: nodePort, host: "127.0.0.1", noDelay: true });
    client.setNoDelay(true);
    const broken = (): void => this.#break(pair);
    const pair: Pair = {
      client,
      server,
      requests: new Flow(client, server, broken),
      replies: new Flow(server, client, broken),
    };
    this.#pairs.add(pair);
    for (const direction of ["requests", "replies"] as const) {
      pair[direction].delayMs = this.#delayMs;
      if (this.#held[direction]) pair[direction].hold();
    }
  }

  #break(pair: Pair): void {
    if (!this.#pairs.delete(pair)) return;
    pair.requests.stop();
    pair.replies.stop();
    pair.client.destroy();
    pair.server.destroy();
  }
}
