// dist/stores/embedded/index.d.ts
export { embedded, type EmbeddedOptions } from "./embedded.ts";

// dist/core/acquire/cancellation.d.ts: in index.d.ts

// dist/core/errors.d.ts: in index.d.ts

// dist/core/events.d.ts: in index.d.ts

// dist/core/ports.d.ts: in index.d.ts

// dist/core/report/doctor.d.ts: in index.d.ts

// dist/core/report/holder.d.ts: in index.d.ts

// dist/core/store.d.ts: in index.d.ts

// dist/core/time/durations.d.ts: in index.d.ts

// dist/core/time/scheduler.d.ts: in index.d.ts

// dist/core/time/stall-report.d.ts: in index.d.ts

// dist/stores/embedded/embedded.d.ts
import { type Duration } from "../../core/time/durations.ts";
import type { Store } from "../../core/store.ts";
export interface EmbeddedOptions {
    readonly maxTtl?: Duration;
}
export declare function embedded(directory: string, options?: EmbeddedOptions): Store;
