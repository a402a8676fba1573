import { durationMs, type Duration } from "../../core/time/durations.ts";
import type { Holder } from "../../core/errors.ts";
import { earlyMsMax, raiseIn } from "../../core/mark.ts";
import type { Mark, RaiseOutcome } from "../../core/mark.ts";
import { knownOptions, ttlMinMs } from "../../core/options.ts";
import type { SteadyClock } from "../../core/ports.ts";
import type { Finding } from "../../core/report/doctor.ts";
import { holderOf, inspectionOf } from "../../core/report/one-node.ts";
import type {
  AcquireRequest,
  AttemptOutcome,
  BreakAnswer,
  ExtendOutcome,
  Grant,
  Inspection,
  NodeStatus,
  OpenStore,
  ProveOutcome,
  ReleaseOutcome,
  Store,
  StoreContext,
} from "../../core/store.ts";
import { nextClockFence } from "../../core/time/clock-fence.ts";
import { Entries, type Entry } from "./entries.ts";

export interface MemoryOptions {
  /** Longest TTL of a lock. @default "30s", as for Redis */
  readonly maxTtl?: Duration;
}

/** State that all managers of one store share: the locks, and one counter for all fences. */
interface Shared {
  readonly entries: Entries;
  lastFence: bigint;
  readonly marks: Map<string, Mark>;
}

const node = "memory";

/**
 * Creates a store inside one process, for tests and development. Managers that share the store
 * exclude each other. Its locks end with the process, and do not exclude other processes.
 */
export function memory(options: MemoryOptions = {}): Store {
  knownOptions("options", options, ["maxTtl"]);
  const bounds = { minMs: ttlMinMs, maxMs: 86_400_000 };
  const maxTtlMs = durationMs("maxTtl", options.maxTtl ?? 30_000, bounds);
  const shared: Shared = { entries: new Entries(), lastFence: 0n, marks: new Map() };
  return {
    name: "memory",
    capabilities: { fencing: true, multiResource: true, marks: true },
    maxTtlMs,
    open: (context) => new MemoryStore(shared, context),
  };
}

class MemoryStore implements OpenStore {
  readonly #shared: Shared;
  readonly #clock: SteadyClock;

  constructor(shared: Shared, context: StoreContext) {
    this.#shared = shared;
    this.#clock = context.runtime.clock;
  }

  attempt(request: AcquireRequest): Promise<AttemptOutcome> {
    const { resources, owner, ttlMs } = request;
    const nowMs = this.#nowMs();
    for (const resource of resources) {
      const entry = this.#shared.entries.get(resource, nowMs);
      if (entry !== undefined) {
        const holder = this.#holder(entry);
        return Promise.resolve({ kind: "held", holder, cleanup: undefined });
      }
    }
    const fence = nextClockFence(this.#shared.lastFence, this.#clock.wallMs());
    this.#shared.lastFence = fence;
    const expiresMs = nowMs + ttlMs;
    for (const resource of resources) {
      this.#shared.entries.set(resource, { owner, fence, expiresMs }, nowMs);
    }
    // The lease and the entry use one clock, so there is no drift to subtract from the validity.
    return Promise.resolve({
      kind: "granted",
      grant: { resources, owner, fence, validityMs: ttlMs },
    });
  }

  extend(grant: Grant, ttlMs: number): Promise<ExtendOutcome> {
    if (!this.#isWhole(grant)) return Promise.resolve({ kind: "gone" });
    const nowMs = this.#nowMs();
    const expiresMs = nowMs + ttlMs;
    for (const resource of grant.resources) {
      const entry = this.#shared.entries.get(resource, nowMs);
      if (entry !== undefined && entry.expiresMs < expiresMs) {
        this.#shared.entries.set(resource, { ...entry, expiresMs }, nowMs);
      }
    }
    return Promise.resolve({ kind: "extended", validityMs: ttlMs });
  }

  prove(grant: Grant): Promise<ProveOutcome> {
    return Promise.resolve({ kind: this.#isWhole(grant) ? "proven" : "gone" });
  }

  release(grant: Grant): Promise<ReleaseOutcome> {
    const whole = this.#isWhole(grant);
    for (const resource of grant.resources) {
      if (this.#ownerOf(resource) === grant.owner) this.#shared.entries.delete(resource);
    }
    return Promise.resolve(whole ? { released: true } : { released: false, reason: "taken" });
  }

  inspect(resource: string): Promise<Inspection> {
    const entry = this.#shared.entries.get(resource, this.#nowMs());
    return Promise.resolve(this.#inspection(resource, entry));
  }

  list(): Promise<readonly Inspection[]> {
    const live = this.#shared.entries.live(this.#nowMs());
    return Promise.resolve(live.map(([resource, entry]) => this.#inspection(resource, entry)));
  }

  break(resource: string, owners: readonly string[]): Promise<BreakAnswer> {
    const owner = this.#ownerOf(resource);
    if (owner === undefined || !owners.includes(owner)) return Promise.resolve({ kind: "gone" });
    this.#shared.entries.delete(resource);
    return Promise.resolve({ kind: "broken" });
  }

  mark(name: string): Promise<Mark | undefined> {
    return Promise.resolve(this.#shared.marks.get(name));
  }

  async raiseMark(name: string, mark: Mark, dueMs: number): Promise<RaiseOutcome> {
    const { marks } = this.#shared;
    if (dueMs > this.#clock.wallMs() + earlyMsMax) return { kind: "early" };
    if (!raiseIn(marks, name, mark)) return { kind: "refused" };
    return { kind: "raised" };
  }

  nodes(): Promise<readonly NodeStatus[]> {
    const status: NodeStatus = {
      node,
      admission: "off",
      quarantineRemainingMs: undefined,
      runId: undefined,
      version: undefined,
      lastFault: undefined,
    };
    return Promise.resolve([status]);
  }

  /** Returns no findings: there is no server. */
  doctor(): Promise<readonly Finding[]> {
    return Promise.resolve([]);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /**
   * Returns the steady time. Leases also end by the steady time, so an entry expires together with
   * its lease.
   */
  #nowMs(): number {
    return this.#clock.now().steadyMs;
  }

  #isWhole(grant: Grant): boolean {
    return grant.resources.every((resource) => this.#ownerOf(resource) === grant.owner);
  }

  #ownerOf(resource: string): string | undefined {
    return this.#shared.entries.get(resource, this.#nowMs())?.owner;
  }

  #inspection(resource: string, entry: Entry | undefined): Inspection {
    const holder = entry === undefined ? undefined : this.#holder(entry);
    return inspectionOf({ resource, node, holder });
  }

  #holder({ owner, fence, expiresMs }: Entry): Holder {
    return holderOf(owner, fence, expiresMs - this.#nowMs());
  }
}
