import type { Grant } from "../../../core/store.ts";

/** What was granted, and under which keys. */
export class RedisGrant implements Grant {
  readonly resources: readonly string[];
  readonly keys: readonly string[];
  readonly owner: string;
  readonly ttlMs: number;
  readonly validityMs: number;
  /** 0 where the store does not fence. */
  readonly fenceNumber: number;
  /** Shared by what stands for the same grant. Once given back, nothing may set its keys again. */
  readonly life: { isOver: boolean };

  constructor(terms: Omit<RedisGrant, "fence" | "withFence">) {
    this.resources = terms.resources;
    this.keys = terms.keys;
    this.owner = terms.owner;
    this.ttlMs = terms.ttlMs;
    this.validityMs = terms.validityMs;
    this.fenceNumber = terms.fenceNumber;
    this.life = terms.life;
  }

  get fence(): bigint | undefined {
    return this.fenceNumber === 0 ? undefined : BigInt(this.fenceNumber);
  }

  withFence(fenceNumber: number): RedisGrant {
    const { resources, keys, owner, ttlMs, validityMs, life } = this;
    return new RedisGrant({ resources, keys, owner, ttlMs, validityMs, fenceNumber, life });
  }
}
