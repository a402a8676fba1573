import type { AcquireCall } from "./acquire-call.ts";
import type { Scheduler } from "./scheduler.ts";
import type { OpenStore } from "./store.ts";

interface GapContext {
  readonly scheduler: Scheduler;
  readonly store: OpenStore;
}

/** For how long the store leaves what this call wants to clients of other libraries. */
export function gapLeftMs({ store }: GapContext, { resources }: AcquireCall): number {
  return store.gapLeftMs?.(resources) ?? 0;
}

/** Resolves when the gap is over, or the call is cancelled: before the attempt of a new call. */
export async function leaveGap(context: GapContext, call: AcquireCall): Promise<void> {
  const { scheduler } = context;
  await new Promise<void>((resolve) => {
    const resume = (): void => {
      call.listen(undefined);
      scheduler.cancel(task);
      resolve();
    };
    const dueMs = scheduler.clock.monotonicMs() + gapLeftMs(context, call);
    const task = scheduler.at(dueMs, true, resume);
    call.listen(resume);
  });
}
