import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Pool } from "pg";
import { TcpProxy } from "../tools/network/tcp-proxy.mjs";
import { startPostgres, type PostgresServer } from "../tools/databases/postgres.mjs";
import { registerTableSql } from "./client/registers.ts";
import { ClientProcess } from "./client-process.ts";
import { NodeServer } from "./node-server.ts";
import type { Options } from "./options.ts";
import { ShiftedClock } from "./shifted-clock.ts";

export const retryMs = 100;
const names = ["account", "invoice", "order", "report"] as const;

/** Returns the first `count` resources of a run: "account", …, "account-2", …. */
export function resourcesOf(count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const name = names[index % names.length] ?? "resource";
    const round = Math.floor(index / names.length) + 1;
    return round === 1 ? name : `${name}-${round}`;
  });
}

export interface WorldOptions extends Options {
  readonly root: string;
  /** Folder for the servers' data. */
  readonly folder: string;
  /** Folder for the histories. */
  readonly journals: string;
  readonly clockLibrary: string | undefined;
  /** Offset of each client's wall clock; positive if it is ahead. */
  readonly clockOffsetsMs: readonly number[];
}

/**
 * The servers, links and client processes of a run. Nodes and links have faults. The servers with
 * the registers have none, and the clients reach them directly.
 */
export class World {
  readonly nodes: NodeServer[] = [];
  readonly clients: ClientProcess[] = [];
  /** By client, then by node. */
  readonly links: TcpProxy[][] = [];
  readonly pool: Pool;
  readonly #postgres: PostgresServer;
  #registers: NodeServer | undefined;

  private constructor(postgres: PostgresServer) {
    this.#postgres = postgres;
    this.pool = new Pool({ connectionString: postgres.url, max: 1 });
  }

  static async open(options: WorldOptions): Promise<World> {
    const world = new World(await startPostgres());
    try {
      await world.#start(options);
      return world;
    } catch (error) {
      await world.close();
      throw error;
    }
  }

  get registerFiles(): string[] {
    return this.#registers?.appendOnlyFiles() ?? [];
  }

  async close(): Promise<void> {
    await Promise.all(this.clients.map((client) => client.kill()));
    await Promise.all(this.links.flat().map((link) => link.stop()));
    await Promise.all(this.nodes.map((node) => node.kill()));
    await this.#registers?.kill();
    await this.pool.end();
    await this.#postgres.stop();
  }

  async #start(options: WorldOptions): Promise<void> {
    await this.pool.query(registerTableSql);
    for (const register of ["postgres", "postgres-fenced"]) {
      for (const resource of resourcesOf(options.resources)) {
        const name = `${register}:${resource}`;
        await this.pool.query("INSERT INTO register VALUES ($1, 0, 'origin', '', 0)", [name]);
      }
    }
    this.#registers = await startNode(options, "registers", undefined);
    for (let index = 1; index <= options.nodes; index += 1) {
      this.nodes.push(await startNode(options, `node-${index}`, options.clockLibrary));
    }
    for (let index = 0; index < options.clients; index += 1) {
      await this.#addClient(options, index, this.#registers.port);
    }
  }

  async #addClient(options: WorldOptions, index: number, registerPort: number): Promise<void> {
    const links = await Promise.all(this.nodes.map(({ port }) => TcpProxy.open(port)));
    const { lock, root, connections, ttlMs, waitMs, seed, journals, folder } = options;
    const clockFile = join(folder, `client-${index + 1}-clock-offset`);
    const clock = new ShiftedClock(options.clockLibrary, clockFile);
    const offsetMs = options.clockOffsetsMs[index] ?? 0;
    const config = {
      lock,
      root,
      connections,
      ttlMs,
      waitMs,
      retryMs,
      resources: resourcesOf(options.resources),
      registerPort,
      nodePorts: links.map(({ port }) => port),
      postgresUrl: this.#postgres.url,
      workers: options.workers,
    };
    this.links.push(links);
    this.clients.push(
      new ClientProcess(index, journals, seed + index, config, { of: clock, offsetMs }),
    );
  }
}

function startNode(
  { folder }: WorldOptions,
  name: string,
  clockLibrary: string | undefined,
): Promise<NodeServer> {
  const own = join(folder, name);
  mkdirSync(own);
  return NodeServer.start(own, clockLibrary);
}
