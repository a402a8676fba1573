import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { StoreAddress } from "../store-address.ts";
import { type DemoEvent, machineMs, type SignalEvent } from "./events.ts";
import type { Record } from "./record.ts";

/** Arguments of a worker process. */
export interface WorkerPlan {
  readonly name: string;
  readonly store: StoreAddress;
  readonly resource: string;
  readonly bank: string;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly thinkMs: number;
  readonly sendMs: number;
  readonly restMs: number;
  readonly deposit: number;
}

/** Messages from the parent to a worker. */
export type Order =
  | { readonly kind: "begin"; readonly beganMs: number }
  | { readonly kind: "stop" }
  /** Pid of the worker process that is frozen now; without `pid` if no worker is frozen. */
  | { readonly kind: "frozen"; readonly pid?: number };

/** Limit for the time in which a worker ends its turn and closes. */
const stopLimitMs = 10_000;

/** Name of the environment variable that contains the plan of a worker. */
export const planVariable = "HOLDFAST_DEMO_PLAN";

/** Script of the worker. The file is beside this one both in the sources and in the bundle. */
const workerName = "./demo-worker.js";

/** Starts, signals and ends the worker processes. */
export class Crew {
  readonly #children = new Map<string, ChildProcess>();
  readonly #record: Record;
  #beganMs: number | undefined;

  constructor(record: Record) {
    this.#record = record;
  }

  /** Returns the time since the workers received `begin`; 0 if they have not received it. */
  nowMs(): number {
    return this.#beganMs === undefined ? 0 : machineMs() - this.#beganMs;
  }

  start(plan: WorkerPlan): void {
    const { name } = plan;
    const child = fork(fileURLToPath(new URL(workerName, import.meta.url)), [], {
      // The worker does not inherit flags of this process, such as an inspector port.
      execArgv: [],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      // The plan is not an argument, because every user can read arguments, and the address of the
      // store may contain a password.
      env: { ...process.env, [planVariable]: JSON.stringify(plan) },
    });
    this.#children.set(name, child);
    let complaint = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      complaint = (complaint + chunk.toString()).slice(-2_000);
    });
    child.on("message", (event: DemoEvent) => this.#record.add(event));
    child.on("error", (error) => this.#add(name, { kind: "failed", message: error.message }));
    child.on("exit", (code) => {
      this.#children.delete(name);
      // Without a code, a signal has ended the worker. The signal came from this class, or from the
      // terminal, which then ends the demo as well.
      if (code === 0 || code === null) return;
      this.#add(name, { kind: "failed", message: complaint.trim() || `exit code ${code}` });
    });
  }

  /**
   * Sends `begin` to all workers. Called when all workers are ready, so that they begin together.
   */
  begin(): void {
    this.#beganMs = machineMs();
    this.#order({ kind: "begin", beganMs: this.#beganMs });
  }

  /** Kills a worker at once with SIGKILL. */
  async kill(name: string): Promise<void> {
    const child = this.#children.get(name);
    if (child === undefined) return;
    this.#add(name, { kind: "killed" });
    await killed(child);
  }

  freeze(name: string): void {
    const child = this.#children.get(name);
    if (child === undefined || !child.kill("SIGSTOP")) return;
    this.#order({ kind: "frozen", ...(child.pid === undefined ? {} : { pid: child.pid }) }, child);
    this.#add(name, { kind: "frozen" });
  }

  resume(name: string): void {
    const child = this.#children.get(name);
    if (child === undefined) return;
    this.#order({ kind: "frozen" }, child);
    this.#add(name, { kind: "resumed" });
    child.kill("SIGCONT");
  }

  /** Stops all workers after their current turn. */
  async stop(): Promise<void> {
    const children = [...this.#children.values()];
    this.#order({ kind: "stop" });
    const patience = AbortSignal.timeout(stopLimitMs);
    await Promise.all(children.map((child) => ended(child, patience)));
  }

  /** Kills the remaining workers, frozen or not. */
  async end(): Promise<void> {
    await Promise.all([...this.#children.values()].map(killed));
  }

  #order(order: Order, except?: ChildProcess): void {
    for (const child of this.#children.values()) {
      if (child !== except && child.connected) child.send(order, () => undefined);
    }
  }

  #add(worker: string, event: SignalEvent | { kind: "failed"; message: string }): void {
    this.#record.add({ ...event, worker, atMs: this.nowMs() });
  }
}

async function killed(child: ChildProcess): Promise<void> {
  const exit = ended(child);
  child.kill("SIGKILL");
  await exit;
}

async function ended(child: ChildProcess, signal?: AbortSignal): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  await once(child, "exit", signal === undefined ? {} : { signal }).catch(() => undefined);
}
