export interface RedisConnection {
    readonly library: string;
    readonly topology: "standalone" | "cluster";
    readonly address?: string | undefined;
    send(key: string, command: readonly string[]): Promise<unknown>;
    firstConnect?(): Promise<void> | undefined;
    line?(): object | undefined;
    resendEpoch?(): unknown;
    subscribe?(channel: string, listener: SubscriptionListener): () => Promise<void>;
}

export interface SubscriptionListener {
    onReady(): void;
    onMessage(message: string): void;
    onLost(cause: unknown): void;
}

export declare class NotConnectedError extends Error {
    readonly name = "NotConnectedError";
    constructor(library: string, status: string, cause?: unknown);
}

export interface IoredisLike {
    readonly status: string;
    readonly call: Method;
    readonly connect: Method;
    readonly duplicate: Method;
}

export interface IoredisClusterLike {
    readonly isCluster: boolean;
    readonly status: string;
    readonly connect: Method;
    readonly createBuiltinCommand: Method;
    readonly nodes: Method;
}

export interface NodeRedisLike {
    readonly isReady: boolean;
    readonly sendCommand: Method;
    readonly withCommandOptions: Method;
    readonly duplicate: Method;
}

export interface NodeRedisSentinelLike {
    readonly isReady: boolean;
    readonly sendCommand: Method;
    readonly withCommandOptions: Method;
    readonly getMasterNode: Method;
}

export interface NodeRedisClusterLike {
    readonly isOpen: boolean;
    readonly slots: readonly unknown[];
    readonly sendCommand: Method;
    readonly nodeClient: Method;
}

export interface GlideLike {
    readonly customCommand: Method;
    readonly close: Method;
    readonly getPubSubMessage: Method;
}

export type RedisClient = IoredisLike | IoredisClusterLike | NodeRedisLike | NodeRedisSentinelLike | NodeRedisClusterLike | GlideLike | RedisConnection;

export interface GroupsOptions extends Omit<RedisStoreOptions, Refused> {
    readonly layout?: number;
    readonly ids?: readonly string[];
    readonly retired?: Readonly<Record<string, readonly RedisClient[]>>;
}

export interface DriftOptions {
    readonly factor?: number;
    readonly fixed?: Duration;
}

export interface ReplicasOptions {
    readonly acks: number;
    readonly timeout?: Duration;
}

export interface RedisStoreOptions {
    readonly nodeTimeout?: Duration;
    readonly drift?: DriftOptions;
    readonly prefix?: string;
    readonly fencing?: boolean;
    readonly admission?: "strict" | "off";
    readonly maxTtl?: Duration;
    readonly crossSlot?: "refuse" | "ordered";
    readonly replicas?: ReplicasOptions;
    readonly foreignGap?: Duration;
}

export declare function redlockGroups(clients: readonly (readonly RedisClient[])[], options?: GroupsOptions): Store;

export declare function redlock(clients: readonly RedisClient[], options?: RedisStoreOptions): Store;

export declare function redis(client: RedisClient, options?: RedisStoreOptions): Store;

// not exported
type Method = (...given: never[]) => unknown;

// not exported
type Refused = "fencing" | "crossSlot" | "replicas";
