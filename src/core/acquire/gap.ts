import type { AcquireCall } from "./acquire-call.ts";
import type { Scheduler } from "../time/scheduler.ts";
import type { OpenStore } from "../store.ts";

interface GapContext {
  readonly scheduler: Scheduler;
  readonly store: OpenStore;
}

/** Returns what is left of the gap, in which clients of other libraries may get the resources. */
export function gapRemainingMs({ store }: GapContext, { resources }: AcquireCall): number {
  return store.gapRemainingMs?.(resources) ?? 0;
}

/** Resolves when the gap is over or the call is cancelled. A new call waits for it first. */
export async function leaveGap(context: GapContext, call: AcquireCall): Promise<void> {
  const { scheduler } = context;
  await new Promise<void>((resolve) => {
    const resume = (): void => {
      call.listen(undefined);
      scheduler.cancel(task);
      resolve();
    };
    const dueMs = scheduler.clock.monotonicMs() + gapRemainingMs(context, call);
    const task = scheduler.at(dueMs, true, resume);
    call.listen(resume);
  });
}
