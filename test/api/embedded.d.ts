// dist/stores/embedded/index.d.ts
export { embedded, type EmbeddedOptions } from "./embedded.ts";

// dist/core/cancellation.d.ts: in index.d.ts

// dist/core/doctor.d.ts: in index.d.ts

// dist/core/durations.d.ts: in index.d.ts

// dist/core/errors.d.ts: in index.d.ts

// dist/core/events.d.ts: in index.d.ts

// dist/core/holder.d.ts: in index.d.ts

// dist/core/ports.d.ts: in index.d.ts

// dist/core/scheduler.d.ts: in index.d.ts

// dist/core/stall-report.d.ts: in index.d.ts

// dist/core/store.d.ts: in index.d.ts

// dist/stores/embedded/embedded.d.ts
import { type Duration } from "../../core/time/durations.ts";
import type { Store } from "../../core/store.ts";
export interface EmbeddedOptions {
    readonly maxTtl?: Duration;
}
export declare function embedded(directory: string, options?: EmbeddedOptions): Store;
