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

export interface GuardFenceOptions extends GuardTableOptions {
    readonly resource?: string | readonly string[];
}

export interface Fenced {
    readonly fence: bigint;
    readonly resources: readonly string[];
}

export declare function guardFence(db: PostgresDatabase, fenced: Fenced | bigint, options?: GuardFenceOptions): Promise<void>;

export declare function postgresFences(db: PostgresDatabase, options?: GuardTableOptions): FenceStore;

export declare function fenceColumnSql(table: TableName, column?: string): string;

export declare function guardTableSql(table?: TableName): string;

export declare const fenceTriggerState = "HF412";

export declare function fenceTriggerSql(table: TableName, column?: string): string;

export declare function throwIfFenceRejected(error: unknown, fenced: Fenced | bigint, resource?: string): void;

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

export declare function fencedUpdate(db: PostgresDatabase, fenced: Fenced | bigint, update: FencedUpdate): Promise<FencedUpdateResult>;

export type PostgresOutcome = number | {
    readonly rowCount: number | null;
} | {
    readonly count: number;
} | {
    readonly affectedRows?: number;
};

export declare function assertFenced(db: PostgresDatabase, fenced: Fenced | bigint, outcome: PostgresOutcome, row: FencedRow): Promise<FencedUpdateResult>;

export type TableName = string | readonly string[];

export interface FencedRow {
    readonly table: TableName;
    readonly where: Readonly<Record<string, unknown>>;
    readonly column?: string;
    readonly resource?: string;
}

export interface FencedUpdate extends FencedRow {
    readonly set: Readonly<Record<string, unknown>>;
}

export interface FencedUpdateResult {
    readonly updated: number;
}
