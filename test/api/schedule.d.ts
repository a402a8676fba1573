export interface CronCoordinatorOptions extends Pick<LockOptions, "ttl" | "maxHold" | "label"> {
    readonly ledger?: Ledger;
}

export interface CronCoordinator {
    shouldRun(key: string): Promise<boolean>;
    onComplete(key: string): Promise<void>;
}

export declare function cronCoordinator(locks: Locks, options?: CronCoordinatorOptions): CronCoordinator;

export type Raised = "raised" | "refused" | "early";

export interface Ledger {
    last(name: string): Promise<number | undefined>;
    raise(name: string, value: number, lease: Fenced, dueMs: number): Promise<Raised>;
}

export interface LedgerTableOptions {
    readonly table?: TableName;
}

export declare function postgresLedgerSql(table?: TableName): string;

export declare function postgresLedger(db: PostgresDatabase, options?: LedgerTableOptions): Ledger;

export interface RedisLedgerOptions {
    readonly prefix?: string;
}

export declare function redisLedger(client: unknown, options?: RedisLedgerOptions): Ledger;

export interface Run {
    readonly tick: Date;
    readonly attempt: number;
    readonly lease: Lease;
    readonly signal: AbortSignal;
}

export type RunWork = (run: Run) => unknown;

export interface Schedule extends AsyncDisposable {
    readonly name: string;
    readonly next: Date | undefined;
    stop(): Promise<void>;
    on<Name extends ScheduleEventName>(name: Name, listener: ScheduleListener<Name>): () => void;
}

export type MissedReason = "crashed" | "late" | "passed-over" | "too-old";

export interface ScheduleEvents {
    "tick-begun": AboutRun;
    "tick-done": AboutRun & {
        readonly elapsedMs: number;
    };
    "tick-failed": AboutRun & {
        readonly elapsedMs: number;
        readonly error: unknown;
        readonly retryInMs: number | undefined;
    };
    "tick-missed": AboutTick & {
        readonly reason: MissedReason;
    };
    "tick-skipped": AboutTick;
    "schedule-failed": {
        readonly name: string;
        readonly error: unknown;
        readonly retryInMs: number | undefined;
    };
}

export type ScheduleEventName = keyof ScheduleEvents;

export type ScheduleListener<Name extends ScheduleEventName> = (event: ScheduleEvents[Name]) => void;

export type ScheduleOptions = ScheduleSettings & ({
    readonly every: Duration;
    readonly offset?: Duration;
} | {
    readonly at: NextRun;
});

export declare function schedule(locks: Locks, name: string, options: ScheduleOptions, work: RunWork): Schedule;

export interface NextRun {
    nextRun(after: Date): Date | null | undefined;
}

// not exported
interface AboutTick {
    readonly name: string;
    readonly tick: Date;
}

// not exported
interface AboutRun extends AboutTick {
    readonly attempt: number;
    readonly fence: bigint;
}

// not exported
interface ScheduleSettings extends Pick<LockOptions, "ttl" | "renew" | "maxHold" | "label"> {
    readonly missed?: "latest" | "all" | "skip";
    readonly overlap?: "skip" | "after";
    readonly tries?: number;
    readonly grace?: Duration;
    readonly within?: Duration;
    readonly immediately?: boolean;
    readonly ledger?: Ledger;
    readonly signal?: AbortSignal;
}
