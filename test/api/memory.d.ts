export interface MemoryOptions {
    readonly maxTtl?: Duration;
}

export declare function memory(options?: MemoryOptions): Store;
