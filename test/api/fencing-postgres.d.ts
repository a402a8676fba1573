// dist/fencing/postgres.d.ts
export type { Fenced } from "./guard.ts";
export type { Admission, FenceStore } from "./fence-store.ts";
export type { PostgresDatabase, PostgresQuery } from "./postgres-query.ts";
export type { FencedRow, FencedUpdate, FencedUpdateResult, TableName } from "./sql-row.ts";
export { assertFenced, fencedUpdate, type PostgresOutcome } from "./postgres-row.ts";
export { guardFence, postgresFences } from "./postgres-guard-table.ts";
export type { GuardFenceOptions, GuardTableOptions } from "./guard-table.ts";
export { fenceColumnSql, fenceTriggerSql, fenceTriggerState, guardTableSql, throwIfFenceRejected, } from "./postgres-migrations.ts";

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

// dist/fencing/postgres-guard-table.d.ts
import { type FenceStore } from "./fence-store.ts";
import type { GuardFenceOptions, GuardTableOptions } from "./guard-table.ts";
import { type Fenced } from "./guard.ts";
import { type PostgresDatabase } from "./postgres-query.ts";
export declare function guardFence(db: PostgresDatabase, fenced: Fenced | bigint, options?: GuardFenceOptions): Promise<void>;
export declare function postgresFences(db: PostgresDatabase, options?: GuardTableOptions): FenceStore;

// dist/fencing/postgres-migrations.d.ts
import { type Fenced } from "./guard.ts";
import { type TableName } from "./sql-row.ts";
export declare function fenceColumnSql(table: TableName, column?: string): string;
export declare function guardTableSql(table?: TableName): string;
export declare const fenceTriggerState = "HF412";
export declare function fenceTriggerSql(table: TableName, column?: string): string;
export declare function throwIfFenceRejected(error: unknown, fenced: Fenced | bigint, resource?: string): void;

// dist/fencing/postgres-query.d.ts
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
export type Row = Readonly<Record<string, unknown>>;
export type RunQuery = (text: string, params: unknown[]) => Promise<readonly Row[]>;
export declare function queryOf(db: PostgresDatabase): RunQuery;
export declare function quoted(name: string): string;
export declare function quotedTable(parts: readonly string[]): string;
export declare function sqlState(error: unknown): string | undefined;

// dist/fencing/postgres-row.d.ts
import { type Fenced } from "./guard.ts";
import { type PostgresDatabase } from "./postgres-query.ts";
import type { FencedRow, FencedUpdate, FencedUpdateResult } from "./sql-row.ts";
export declare function fencedUpdate(db: PostgresDatabase, fenced: Fenced | bigint, update: FencedUpdate): Promise<FencedUpdateResult>;
export type PostgresOutcome = number | {
    readonly rowCount: number | null;
} | {
    readonly count: number;
} | {
    readonly affectedRows?: number;
};
export declare function assertFenced(db: PostgresDatabase, fenced: Fenced | bigint, outcome: PostgresOutcome, row: FencedRow): Promise<FencedUpdateResult>;

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
