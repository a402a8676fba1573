// dist/fencing/mysql.d.ts
export type { Fenced } from "./guard.ts";
export type { Admission, FenceStore } from "./fence-store.ts";
export type { MysqlConnection, MysqlDatabase, MysqlPool, MysqlQuery } from "./mysql-session.ts";
export type { FencedRow, FencedUpdate, FencedUpdateResult, TableName } from "./sql-row.ts";
export { assertFenced, fencedUpdate, type MysqlOutcome } from "./mysql-row.ts";
export { guardFence, mysqlFences } from "./mysql-guard-table.ts";
export type { GuardFenceOptions, GuardTableOptions } from "./guard-table.ts";
export { fenceColumnSql, guardTableSql } from "./mysql-migrations.ts";

// dist/core/errors.d.ts: in index.d.ts

// dist/core/report/holder.d.ts: in index.d.ts

// dist/fencing/fence-store.d.ts
export type Admission = {
    readonly accepted: true;
} | {
    readonly accepted: false;
    readonly seen: bigint;
};
export interface FenceStore {
    admit(resource: string, fence: bigint): Promise<Admission>;
}
export declare function admission(fence: bigint, greatest: bigint): Admission;
export interface MemoryFencesOptions {
    readonly maxResources?: number;
}
export declare function memoryFences(options?: MemoryFencesOptions): FenceStore;

// dist/fencing/guard-table.d.ts
import type { TableName } from "./sql-row.ts";
export declare const guardTableDefault = "holdfast_fence";
export interface GuardTableOptions {
    readonly table?: TableName;
}
export interface GuardFenceOptions extends GuardTableOptions {
    readonly resource?: string | readonly string[];
}

// dist/fencing/guard.d.ts
import { FenceRejectedError } from "../core/errors.ts";
export interface Fenced {
    readonly fence: bigint;
    readonly resources: readonly string[];
}
export type GuardKind = "postgres" | "mysql" | "redis" | "http";
export interface FenceRejection {
    readonly resource: string;
    readonly fence: bigint;
    readonly seen: bigint | undefined;
    readonly guard: GuardKind;
}
export declare const fenceMax: bigint;
export declare function fenceOf(fenced: Fenced | bigint): bigint;
export declare function guardedResources(fenced: Fenced | bigint, named: string | readonly string[] | undefined): readonly string[];
export declare function subjectOf(fenced: Fenced | bigint, named: string | undefined, fallback: string): string;
export declare function reportRejection(fenced: Fenced | bigint, event: FenceRejection): void;
export declare function rejection(fenced: Fenced | bigint, event: FenceRejection): FenceRejectedError;
export declare function parseFence(value: unknown, where: string): bigint;
export declare function guardKey(resource: string): string;
export declare function isObject(value: unknown): value is Record<PropertyKey, unknown>;

// dist/fencing/mysql-guard-table.d.ts
import { type FenceStore } from "./fence-store.ts";
import type { GuardFenceOptions, GuardTableOptions } from "./guard-table.ts";
import { type Fenced } from "./guard.ts";
import type { MysqlDatabase } from "./mysql-session.ts";
export declare function guardFence(db: MysqlDatabase, fenced: Fenced | bigint, options?: GuardFenceOptions): Promise<void>;
export declare function mysqlFences(db: MysqlDatabase, options?: GuardTableOptions): FenceStore;

// dist/fencing/mysql-migrations.d.ts
import { type TableName } from "./sql-row.ts";
export declare function fenceColumnSql(table: TableName, column?: string): string;
export declare function guardTableSql(table?: TableName): string;

// dist/fencing/mysql-row.d.ts
import { type Fenced } from "./guard.ts";
import type { MysqlDatabase } from "./mysql-session.ts";
import type { FencedRow, FencedUpdate, FencedUpdateResult } from "./sql-row.ts";
export declare function fencedUpdate(db: MysqlDatabase, fenced: Fenced | bigint, update: FencedUpdate): Promise<FencedUpdateResult>;
export type MysqlOutcome = number | {
    readonly affectedRows: number;
} | readonly [{
    readonly affectedRows: number;
}, ...unknown[]];
export declare function assertFenced(db: MysqlDatabase, fenced: Fenced | bigint, outcome: MysqlOutcome, row: FencedRow): Promise<FencedUpdateResult>;

// dist/fencing/mysql-session.d.ts
export type MysqlQuery = (sql: string, params: unknown[]) => PromiseLike<unknown>;
export interface MysqlConnection {
    query(sql: string): unknown;
    execute(sql: string, params: never): unknown;
}
export interface MysqlPool extends MysqlConnection {
    getConnection(...callback: never): unknown;
}
export type MysqlDatabase = MysqlConnection | MysqlPool | MysqlQuery;
export type Row = Readonly<Record<string, unknown>>;
export interface Session {
    run(sql: string): Promise<void>;
    select(sql: string, params: readonly unknown[]): Promise<readonly Row[]>;
}
export declare function inTransaction<Result>(db: MysqlDatabase, work: (session: Session) => Promise<Result>): Promise<Result>;
export declare function callersTransaction(db: MysqlDatabase): Promise<Session>;
export declare function anySession(db: MysqlDatabase): Session;
export declare function errorNumber(error: unknown): number | undefined;
export declare function quoted(name: string): string;
export declare function quotedTable(parts: readonly string[]): string;

// dist/fencing/sql-row.d.ts
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
export interface CheckedRow {
    readonly table: readonly string[];
    readonly where: readonly (readonly [column: string, value: unknown])[];
    readonly column: string;
}
export interface CheckedUpdate extends CheckedRow {
    readonly set: readonly (readonly [column: string, value: unknown])[];
}
export declare function checkedRow(row: FencedRow): CheckedRow;
export declare function checkedUpdate(update: FencedUpdate): CheckedUpdate;
export declare function tableParts(table: TableName): readonly string[];
export declare function checkedName(option: string, name: unknown): string;
