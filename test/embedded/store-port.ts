import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { CallCancellation } from "../../src/core/acquire/cancellation.ts";
import type { LockEvents } from "../../src/core/events.ts";
import { Listeners } from "../../src/core/listeners.ts";
import type { Runtime, SteadyRuntime } from "../../src/core/ports.ts";
import { TimerScheduler } from "../../src/core/time/scheduler.ts";
import { steadyRuntime } from "../../src/core/time/instant.ts";
import type { AcquireRequest, AttemptOutcome, Grant } from "../../src/core/store.ts";
import { nodeRuntime } from "../../src/runtime/node-runtime.ts";
import { EmbeddedStore } from "../../src/stores/embedded/embedded-store.ts";
import { type Machine, thisMachine } from "../../src/stores/embedded/machine.ts";

/** Returns a directory for the test, which is removed when the test is over. */
export function newDirectory(): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-embedded-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "locks");
}

/** Returns this machine with the given changes. */
export function machineWith(given: Partial<Machine>): Machine {
  return { ...thisMachine(), ...given };
}

let owners = 0;

/**
 * The store as the core sees it, without a manager. Its grants stay when it is closed, as if the
 * process had died.
 */
export class Port {
  readonly store: EmbeddedStore;
  readonly warnings: LockEvents["warning"][] = [];
  readonly #runtime: SteadyRuntime;

  constructor(directory: string, machine: Machine = thisMachine(), given: Runtime = nodeRuntime) {
    const runtime = steadyRuntime(given);
    const events = new Listeners<LockEvents>(runtime.diagnostics);
    events.on("warning", (warning) => this.warnings.push(warning));
    const scheduler = new TimerScheduler(runtime.clock);
    this.#runtime = runtime;
    this.store = new EmbeddedStore(directory, () => machine, {
      runtime,
      scheduler,
      events,
      reconsider: () => undefined,
      doubt: () => undefined,
    });
    onTestFinished(() => this.store.close());
  }

  attempt(resources: string | readonly string[], ttlMs = 3_600_000): Promise<AttemptOutcome> {
    return this.store.attempt(this.request(resources, ttlMs));
  }

  /** Returns a request with a new owner. */
  request(resources: string | readonly string[], ttlMs = 3_600_000): AcquireRequest {
    owners += 1;
    return {
      resources: typeof resources === "string" ? [resources] : resources,
      owner: `owner-${owners}`,
      ttlMs,
      started: this.#runtime.clock.now(),
      cancellation: new CallCancellation(),
    };
  }

  /** Attempts, and throws unless the attempt is granted. */
  async take(resources: string | readonly string[], ttlMs?: number): Promise<Grant & Fenced> {
    const outcome = await this.attempt(resources, ttlMs);
    if (outcome.kind !== "granted") {
      throw new Error(`expected a grant, got ${outcome.kind}`, {
        cause: outcome.kind === "failed" ? outcome.error : outcome.holder,
      });
    }
    const { fence } = outcome.grant;
    if (fence === undefined) throw new Error("a grant without a fence");
    return { ...outcome.grant, fence };
  }

  /** Attempts, and returns the error. Throws unless the attempt fails. */
  async fault(): Promise<Error & { code: string; retryable: boolean }> {
    const outcome = await this.attempt("job");
    if (outcome.kind !== "failed") throw new Error(`expected a fault, got ${outcome.kind}`);
    return Object.assign(outcome.error, { retryable: outcome.retryable });
  }
}

interface Fenced {
  readonly fence: bigint;
}
