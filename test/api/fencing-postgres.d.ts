export type Admission = {
    readonly accepted: true;
} | {
    readonly accepted: false;
    readonly seen: bigint;
};

export interface FenceStore {
    admit(resource: string, fence: bigint): Promise<Admission>;
}

export interface GuardTableOptions {
    readonly table?: TableName;
}

export interface GuardFenceOptions extends GuardTableOptions, FenceLimitOptions {
    readonly resource?: string | readonly string[];
}

export interface Fenced {
    readonly fence: bigint;
    readonly resources: readonly string[];
}

export interface WithGuardOptions extends GuardFenceOptions {
    readonly isolation?: "read committed" | "repeatable read" | "serializable";
    readonly timeout?: Duration;
    readonly maxRetries?: number;
}

export interface LowerFenceOptions {
    readonly resource?: string | readonly string[];
    readonly maxFenceAhead?: Duration;
}

export interface LowerFenceResult {
    readonly lowered: number;
}

export interface LowerableFenceStore extends FenceStore {
    lower(fenced: Fenced | bigint, options?: LowerFenceOptions): Promise<LowerFenceResult>;
}

export type MaxFenceAhead = Duration | "unlimited";

export interface FenceLimitOptions {
    readonly maxFenceAhead?: MaxFenceAhead;
}

export type PostgresOutcome = number | {
    readonly rowCount: number | null;
} | {
    readonly count: number;
} | {
    readonly affectedRows?: number;
};

export declare function assertFenced(db: PostgresDatabase, fenced: Fenced | bigint, outcome: PostgresOutcome, row: FencedRow): Promise<FencedUpdateResult>;

export declare function guardFence(db: PostgresDatabase, fenced: Fenced | bigint, options?: GuardFenceOptions): Promise<void>;

export declare function postgresFences(db: PostgresDatabase, options?: GuardTableOptions): LowerableFenceStore;

export declare function fenceColumnSql(table: TableName, column?: string): string;

export declare function guardTableSql(table?: TableName): string;

export declare const fenceTriggerState = "HF412";

export declare function fenceTriggerSql(table: TableName, column?: string): string;

export declare function throwIfFenceRejected(error: unknown, fenced: Fenced | bigint, resource?: string): void;

export declare function fencedUpdate(db: PostgresDatabase, fenced: Fenced | bigint, update: FencedUpdate): Promise<FencedUpdateResult>;

export declare function fencedDelete(db: PostgresDatabase, fenced: Fenced | bigint, row: FencedRowDelete): Promise<FencedDeleteResult>;

export declare function fencedUpsert(db: PostgresDatabase, fenced: Fenced | bigint, upsert: FencedUpsert): Promise<FencedUpsertResult>;

export declare function lowerFence(db: PostgresDatabase, fenced: Fenced | bigint, row: LoweredRow): Promise<LowerFenceResult>;

export type PostgresTransaction<Db> = Db extends {
    connect: {
        (): Promise<infer Client>;
        (callback: never): unknown;
    };
} ? Client : Db extends {
    begin: {
        (work: (tx: infer Tx) => never): unknown;
        (options: string, work: never): unknown;
    };
} ? Tx : Db extends {
    transaction(work: (tx: infer Tx) => never): unknown;
} ? Tx : PostgresDatabase;

export declare function withGuard<Db extends object, Result>(db: Db, fenced: Fenced | bigint, work: (tx: PostgresTransaction<Db>) => Promise<Result>, options?: WithGuardOptions): Promise<Result>;

export interface SqlExpression {
    readonly [brand]: true;
    readonly texts: readonly string[];
    readonly values: readonly unknown[];
}

export declare function expression(texts: TemplateStringsArray, ...values: readonly unknown[]): SqlExpression;

export type TableName = string | readonly string[];

export interface FencedRow extends FencedTable {
    readonly where: Readonly<Record<string, unknown>>;
}

export interface FencedUpdate extends FencedRow, FenceLimitOptions {
    readonly set: Readonly<Record<string, unknown>>;
}

export interface FencedUpdateResult {
    readonly updated: number;
}

export interface FencedUpsert extends FencedTable, FenceLimitOptions {
    readonly key: Readonly<Record<string, unknown>>;
    readonly set: Readonly<Record<string, unknown>>;
    readonly insert?: Readonly<Record<string, unknown>>;
}

export interface FencedUpsertResult {
    readonly inserted: boolean;
}

export interface FencedRowDelete extends FencedRow, FenceLimitOptions {
}

export interface FencedDeleteResult {
    readonly deleted: number;
}

export interface LoweredRow extends FencedRow {
    readonly maxFenceAhead?: Duration;
}

// not exported
declare const brand: unique symbol;

// not exported
interface FencedTable {
    readonly table: TableName;
    readonly column?: string;
    readonly resource?: string;
}

// PostgresDatabase: in postgres.d.ts
// PostgresQuery: in postgres.d.ts
