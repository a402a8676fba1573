export interface EmbeddedOptions {
    readonly maxTtl?: Duration;
}

export declare function embedded(directory: string, options?: EmbeddedOptions): Store;
