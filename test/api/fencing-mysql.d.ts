export type MysqlOutcome = number | {
    readonly affectedRows: number;
} | readonly [{
    readonly affectedRows: number;
}, ...unknown[]];

export declare function assertFenced(db: MysqlDatabase, fenced: Fenced | bigint, outcome: MysqlOutcome, row: FencedRow): Promise<FencedUpdateResult>;

export declare function guardFence(db: MysqlDatabase, fenced: Fenced | bigint, options?: GuardFenceOptions): Promise<void>;

export declare function mysqlFences(db: MysqlDatabase, options?: GuardTableOptions): LowerableFenceStore;

export declare function fenceColumnSql(table: TableName, column?: string): string;

export declare function guardTableSql(table?: TableName): string;

export declare function fencedUpdate(db: MysqlDatabase, fenced: Fenced | bigint, update: FencedUpdate): Promise<FencedUpdateResult>;

export declare function fencedDelete(db: MysqlDatabase, fenced: Fenced | bigint, row: FencedRowDelete): Promise<FencedDeleteResult>;

export declare function fencedUpsert(db: MysqlDatabase, fenced: Fenced | bigint, upsert: FencedUpsert): Promise<FencedUpsertResult>;

export declare function lowerFence(db: MysqlDatabase, fenced: Fenced | bigint, row: LoweredRow): Promise<LowerFenceResult>;

export type MysqlQuery = (sql: string, params: unknown[]) => PromiseLike<unknown>;

export interface MysqlConnection {
    query(sql: string): unknown;
    execute(sql: string, params: never): unknown;
}

export interface MysqlPool extends MysqlConnection {
    getConnection(...callback: never): unknown;
}

export type MysqlDatabase = MysqlConnection | MysqlPool | MysqlQuery;

export type MysqlTransaction<Pool> = Pool extends {
    getConnection(): Promise<infer Connection>;
} ? Connection : Pool extends {
    promise(): {
        getConnection(): Promise<infer Connection>;
    };
} ? Connection : MysqlDatabase;

export declare function withGuard<Pool extends object, Result>(pool: Pool, fenced: Fenced | bigint, work: (tx: MysqlTransaction<Pool>) => Promise<Result>, options?: WithGuardOptions): Promise<Result>;

// Fenced: in fencing-postgres.d.ts
// Admission: in fencing-postgres.d.ts
// FenceStore: in fencing-postgres.d.ts
// LowerableFenceStore: in fencing-postgres.d.ts
// LowerFenceOptions: in fencing-postgres.d.ts
// LowerFenceResult: in fencing-postgres.d.ts
// FenceLimitOptions: in fencing-postgres.d.ts
// MaxFenceAhead: in fencing-postgres.d.ts
// expression: in fencing-postgres.d.ts
// SqlExpression: in fencing-postgres.d.ts
// FencedDeleteResult: in fencing-postgres.d.ts
// FencedRow: in fencing-postgres.d.ts
// FencedRowDelete: in fencing-postgres.d.ts
// FencedUpdate: in fencing-postgres.d.ts
// FencedUpdateResult: in fencing-postgres.d.ts
// FencedUpsert: in fencing-postgres.d.ts
// FencedUpsertResult: in fencing-postgres.d.ts
// LoweredRow: in fencing-postgres.d.ts
// TableName: in fencing-postgres.d.ts
// WithGuardOptions: in fencing-postgres.d.ts
// GuardFenceOptions: in fencing-postgres.d.ts
// GuardTableOptions: in fencing-postgres.d.ts
