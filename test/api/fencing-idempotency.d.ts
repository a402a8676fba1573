export declare function idempotencyKey(fenced: Fenced, purpose?: string): string;
