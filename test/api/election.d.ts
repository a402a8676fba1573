export type CandidateState = "waiting" | "leading" | "stopped";

export type DeposedReason = "returned" | "failed" | "lost" | "resigned" | "stopped";

export interface CandidateEvents {
    elected: {
        readonly name: string;
        readonly label: string | undefined;
        readonly fence: bigint | undefined;
        readonly waitedMs: number;
    };
    deposed: {
        readonly name: string;
        readonly label: string | undefined;
        readonly fence: bigint | undefined;
        readonly reason: DeposedReason;
        readonly ledMs: number;
        readonly error: unknown;
        readonly standsInMs: number | undefined;
    };
    "candidate-failed": {
        readonly name: string;
        readonly error: unknown;
        readonly standsInMs: number;
    };
}

export type CandidateEventName = keyof CandidateEvents;

export type CandidateListener<Name extends CandidateEventName> = (event: CandidateEvents[Name]) => void;

export interface Candidate extends AsyncDisposable {
    readonly name: string;
    readonly state: CandidateState;
    readonly term: Term | undefined;
    resign(): Promise<void>;
    stop(): Promise<void>;
    on<Name extends CandidateEventName>(name: Name, listener: CandidateListener<Name>): () => void;
}

export interface RestartOptions {
    readonly minDelay?: Duration;
    readonly maxDelay?: Duration;
}

export interface LeadOptions extends Pick<LockOptions, "ttl" | "renew" | "retry"> {
    readonly maxHold?: Duration;
    readonly label?: string;
    readonly restart?: RestartOptions;
    readonly signal?: AbortSignal;
}

export type LeadWork = (term: Term) => unknown;

export declare function lead(locks: Locks, name: string, work: LeadWork): Candidate;
export declare function lead(locks: Locks, name: string, options: LeadOptions, work: LeadWork): Candidate;

export interface LeadersOptions {
    readonly signal?: AbortSignal;
    readonly every?: Duration;
}

export interface Leadership {
    readonly state: "led" | "no-leader" | "unknown";
    readonly label: string | undefined;
    readonly term: bigint | undefined;
}

export declare function leaders(locks: Locks, name: string, options?: LeadersOptions): AsyncGenerator<Leadership, void, undefined>;

export declare class TermEndedError extends HoldfastError {
    readonly reason: "resigned" | "stopped";
    constructor(name: string, reason: "resigned" | "stopped");
}

export interface Term {
    readonly fence: bigint;
    readonly signal: AbortSignal;
    readonly lease: Lease;
}
