export type PostgresQuery = (text: string, params: unknown[]) => PromiseLike<{
    readonly rows: readonly unknown[];
} | readonly unknown[]>;

export type PostgresDatabase = {
    query(text: string, params?: unknown[]): PromiseLike<{
        readonly rows: readonly unknown[];
    }>;
} | {
    unsafe(text: string, params?: unknown[]): PromiseLike<readonly unknown[]>;
} | PostgresQuery;

export type PostgresFault = "unreachable" | "credentials" | "schema" | "rights" | "read-only" | "refused";

export declare class PostgresError extends StoreError {
    readonly fault: PostgresFault;
    constructor(fault: PostgresFault, message: string, details: ConstructorParameters<typeof StoreError>[1]);
}

export declare function holdUntilCommit(tx: PostgresDatabase, lease: Lease, options?: SchemaOptions): Promise<void>;

export interface PostgresStoreOptions extends SchemaOptions {
    readonly timeout?: Duration;
    readonly maxTtl?: Duration;
    readonly drift?: number;
    readonly listen?: PostgresDatabase | false;
}

export declare function postgres(db: PostgresDatabase, options?: PostgresStoreOptions): Store;

export interface SchemaOptions {
    readonly schema?: string;
}

export declare function migrationSql(options?: SchemaOptions): string;

export declare function migrate(db: PostgresDatabase, options?: SchemaOptions): Promise<void>;

export declare function grantSql(role: string, options?: SchemaOptions): string;
