export type MemoState = "begun" | "done" | "failed";

export interface MemoRecord {
    readonly state: MemoState;
    readonly fence: bigint;
    readonly text: string;
}

export interface Memo {
    read(key: string): Promise<MemoRecord | undefined>;
    write(lease: Fenced, key: string, record: Pick<MemoRecord, "state" | "text">, keepMs: number): Promise<MemoRecord | undefined>;
}

export interface MemoryMemoOptions {
    readonly maxRecords?: number;
    readonly nowMs?: () => number;
}

export declare function memoryMemo(options?: MemoryMemoOptions): Memo;

export declare function mysqlMemoSql(table?: TableName): string;

export declare function mysqlMemo(pool: MysqlPool, options?: MemoTableOptions): Memo;

export declare class KeyReusedError extends HoldfastError {
    constructor(key: string);
}

export declare class OutcomeUnknownError extends HoldfastError {
    readonly fence: bigint;
    constructor(key: string, fence: bigint);
}

export type CrashPolicy = "run-again" | "refuse";

export interface OnceOptions<Result = unknown> extends LockOptions {
    readonly memo: Memo;
    readonly keep?: Duration;
    readonly fingerprint?: unknown;
    readonly crash?: CrashPolicy;
    readonly serialise?: (result: Result) => string;
    readonly parse?: (text: string) => Result;
}

export declare function once<Result>(locks: Locks, key: string, options: OnceOptions<Result>, work: Work<Result>): Promise<Result>;

export interface MemoTableOptions {
    readonly table?: TableName;
}

export declare function postgresMemoSql(table?: TableName): string;

export declare function postgresMemo(db: PostgresDatabase, options?: MemoTableOptions): Memo;

export interface RedisMemoOptions {
    readonly prefix?: string;
}

export declare function redisMemo(client: unknown, options?: RedisMemoOptions): Memo;
