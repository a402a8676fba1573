export interface FencedDeleteOptions {
    readonly forgetAfter?: Duration;
    readonly resource?: string;
}

export interface FencedSetOptions extends FencedDeleteOptions {
    readonly ttl?: Duration;
}

export interface FencedValue {
    readonly value: string | undefined;
    readonly fence: bigint;
}

export declare function fencedSet(client: unknown, fenced: Fenced | bigint, key: string, value: string, options?: FencedSetOptions): Promise<void>;

export declare function fencedDelete(client: unknown, fenced: Fenced | bigint, key: string, options?: FencedDeleteOptions): Promise<void>;

export declare function fencedGet(client: unknown, key: string): Promise<FencedValue | undefined>;

export interface RedisFencesOptions {
    readonly prefix?: string;
    readonly forgetAfter?: Duration;
}

export declare function redisFences(client: unknown, options?: RedisFencesOptions): FenceStore;

// Fenced: in fencing-postgres.d.ts
// Admission: in fencing-postgres.d.ts
// FenceStore: in fencing-postgres.d.ts
