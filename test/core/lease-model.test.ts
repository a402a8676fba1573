import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { ExtendOutcome, ProveOutcome } from "../../src/core/store.ts";
import { LeaseLostError } from "../../src/index.ts";
import { extended, failed, scene } from "./fake-store.ts";

const ttlMs = 1_000;
const maxHoldMs = 5_000;

const reply = fc.constantFrom("ok" as const, "failed" as const, "gone" as const);
const operation = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("advance" as const), ms: fc.nat(700) }) },
  fc.record({ kind: fc.constant("pause" as const), ms: fc.nat(900) }),
  fc.record({
    kind: fc.constant("stepWall" as const),
    // A step smaller than the resolution of the wall clock does not count as one.
    ms: fc.integer({ min: -160, max: 160 }).map((ms) => ms * 5),
  }),
  fc.record({ kind: fc.constant("extend" as const), reply, tookMs: fc.nat(500) }),
  fc.record({ kind: fc.constant("prove" as const), reply }),
  fc.record({ kind: fc.constant("renewals" as const), reply }),
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("release" as const) }) },
);

test("a lease keeps its promises in any sequence of events", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(operation, { maxLength: 40 }),
      fc.boolean(),
      async (operations, renew) => {
        let answer: "ok" | "failed" | "gone" = "ok";
        let tookMs = 0;
        // Latest ends by the monotonic and the steady time. Only a granted extension moves them.
        let endMs = ttlMs;
        let steadyEndMs = ttlMs;
        // Sum of all gains of the wall clock. Losses in between do not reduce it.
        let gainedMs = 0;
        const answerWith = (): "ok" | "failed" | "gone" => answer;
        const { locks, clock } = scene(
          {
            async extend(_, askedMs): Promise<ExtendOutcome> {
              const sentMs = clock.monotonicMs();
              const sentSteadyMs = sentMs + gainedMs;
              if (tookMs > 0) clock.pause(tookMs);
              switch (answerWith()) {
                case "ok":
                  endMs = Math.min(Math.max(endMs, sentMs + askedMs), maxHoldMs);
                  steadyEndMs = Math.max(steadyEndMs, sentSteadyMs + askedMs);
                  return extended(askedMs);
                case "failed":
                  return failed;
                default:
                  return { kind: "gone" };
              }
            },
            async prove(): Promise<ProveOutcome> {
              const outcome = answerWith();
              return outcome === "ok"
                ? { kind: "proven" }
                : outcome === "failed"
                  ? failed
                  : { kind: outcome };
            },
          },
          { ttl: ttlMs, maxHold: maxHoldMs, renew },
        );
        const lease = await locks.acquire("a");
        let aborts = 0;
        lease.signal.addEventListener("abort", () => (aborts += 1));
        let terminal: string | undefined;

        for (const step of operations) {
          tookMs = 0;
          if (step.kind === "advance") await clock.advance(step.ms);
          else if (step.kind === "pause") clock.pause(step.ms);
          else if (step.kind === "stepWall") {
            clock.stepWall(step.ms);
            gainedMs += Math.max(0, step.ms);
          } else if (step.kind === "release") await lease.release();
          else if (step.kind === "renewals") answer = step.reply;
          else {
            answer = step.reply;
            tookMs = step.kind === "extend" ? step.tookMs : 0;
            const call = step.kind === "extend" ? lease.extend() : lease.prove();
            await call.catch(() => undefined);
          }
          const { state } = lease;
          // Never held past either deadline.
          if (state === "held" || state === "doubtful") {
            expect(clock.monotonicMs()).toBeLessThan(endMs);
            expect(clock.monotonicMs() + gainedMs).toBeLessThan(steadyEndMs);
            expect(lease.remainingMs()).toBeGreaterThan(0);
            expect(lease.remainingMs()).toBeLessThanOrEqual(endMs - clock.monotonicMs());
            const leftMs = steadyEndMs - gainedMs - clock.monotonicMs();
            expect(lease.remainingMs()).toBeLessThanOrEqual(leftMs);
          } else expect(lease.remainingMs()).toBe(0);
          // Aborted if and only if lost, once, with the loss as reason.
          expect(lease.signal.aborted).toBe(state === "lost");
          expect(aborts).toBe(state === "lost" ? 1 : 0);
          if (state === "lost") expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
          // A lease that has ended stays in the same state.
          if (terminal !== undefined) expect(state).toBe(terminal);
          if (state === "lost" || state === "released") {
            terminal = state;
            // A lease that has ended leaves no timer.
            expect(clock.pendingTimers).toBe(0);
          }
        }
        answer = "ok";
        await locks.close();
        expect(clock.pendingTimers).toBe(0);
      },
    ),
    { numRuns: 500 },
  );
});
