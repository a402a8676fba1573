export interface MemoryFencesOptions {
    readonly maxResources?: number;
}

export declare function memoryFences(options?: MemoryFencesOptions): LowerableFenceStore;

export interface FenceGuardOptions extends FenceLimitOptions {
    readonly store: FenceStore;
    readonly resourceOf?: (request: GuardedRequest) => string | readonly string[];
    readonly required?: "always" | "writes" | "never";
    readonly maxQueue?: number;
    readonly queueTimeout?: Duration;
    readonly onError?: (error: unknown) => void;
}

export interface FenceGuard {
    handle(request: Request, next: (request: Request) => Response | Promise<Response>): Promise<Response>;
    node(req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => unknown): Promise<void>;
}

export declare function fenceGuard(options: FenceGuardOptions): FenceGuard;

export declare const resourceHeader = "Holdfast-Resource";

export declare const fenceHeader = "Holdfast-Fence";

export interface FenceHeaderOptions {
    readonly resource?: string | readonly string[];
}

export declare function fenceHeaders(fenced: Fenced | bigint, options?: FenceHeaderOptions): Record<string, string>;

export declare function withFence(fenced: Fenced | bigint, init?: RequestInit, options?: FenceHeaderOptions): RequestInit;

export interface Problem {
    readonly type: string;
    readonly title: string;
    readonly status: 400 | 412 | 428 | 503;
    readonly detail: string;
    readonly resource?: string;
    readonly fence?: string;
    readonly seen?: string;
    readonly limit?: string;
}

export declare function throwIfFenceRejected(response: Response, fenced: Fenced | bigint): Promise<void>;

export interface GuardedRequest {
    readonly method: string;
    readonly path: string;
    header(name: string): string | undefined;
}

// Fenced: in fencing-postgres.d.ts
// Admission: in fencing-postgres.d.ts
// FenceStore: in fencing-postgres.d.ts
// LowerableFenceStore: in fencing-postgres.d.ts
// LowerFenceOptions: in fencing-postgres.d.ts
// LowerFenceResult: in fencing-postgres.d.ts
// FenceLimitOptions: in fencing-postgres.d.ts
// MaxFenceAhead: in fencing-postgres.d.ts
