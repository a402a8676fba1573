export interface RedisFencesOptions {
    readonly prefix?: string;
    readonly forgetAfter?: Duration;
}

export declare function redisFences(client: unknown, options?: RedisFencesOptions): LowerableFenceStore;

export interface FencedDeleteOptions extends FenceLimitOptions {
    readonly forgetAfter?: Duration;
    readonly resource?: string;
}

export interface FencedSetOptions extends FencedDeleteOptions {
    readonly ttl?: Duration;
}

export interface FencedValue<Value = string> {
    readonly value: Value | undefined;
    readonly fence: bigint;
}

export declare function fencedSet(client: unknown, fenced: Fenced | bigint, key: string, value: string | Uint8Array, options?: FencedSetOptions): Promise<void>;

export declare function fencedDelete(client: unknown, fenced: Fenced | bigint, key: string, options?: FencedDeleteOptions): Promise<void>;

export interface FencedGetOptions {
    readonly as?: "text" | "buffer";
}

export declare function fencedGet(client: unknown, key: string, options: FencedGetOptions & {
    readonly as: "buffer";
}): Promise<FencedValue<Buffer> | undefined>;
export declare function fencedGet(client: unknown, key: string, options?: FencedGetOptions): Promise<FencedValue | undefined>;

export interface LowerKeyOptions {
    readonly maxFenceAhead?: Duration;
}

export declare function lowerFence(client: unknown, fenced: Fenced | bigint, key: string, options?: LowerKeyOptions): Promise<LowerFenceResult>;

// Fenced: in fencing-postgres.d.ts
// Admission: in fencing-postgres.d.ts
// FenceStore: in fencing-postgres.d.ts
// LowerableFenceStore: in fencing-postgres.d.ts
// LowerFenceOptions: in fencing-postgres.d.ts
// LowerFenceResult: in fencing-postgres.d.ts
// FenceLimitOptions: in fencing-postgres.d.ts
// MaxFenceAhead: in fencing-postgres.d.ts
