// @ts-check
/**
 * Planted bugs: each is one change to a copy of the sources, of the kind that a tired programmer
 * makes or that another lock library has made. The simulator must find every one. Rules that live
 * in Lua are changed in their simulated twins, which a differential test ties to the Lua.
 */

/**
 * @typedef {object} Mutant
 * @property {string} name
 * @property {string} breaks which rule is gone, in words
 * @property {string} [example] the counterexample of the protocol that it brings back
 * @property {readonly Change[]} changes
 */

/** @typedef {{ file: string, from: string, to: string }} Change */

const engine = "simulator/node/engine.ts";
const scripts = "simulator/node/operation-scripts.ts";
const record = "simulator/node/record-scripts.ts";
const attempt = "stores/redis/protocol/attempt.ts";
const admission = "stores/redis/admission/admission.ts";
const admissionRule = "stores/redis/admission/admission-rule.ts";
const touch = "stores/redis/protocol/touch.ts";
const renewal = "stores/redis/protocol/renewal.ts";
const lease = "core/lease/held-lease.ts";
const acquisition = "core/acquire/acquisition.ts";
const localQueue = "core/acquire/local-queue.ts";
const encode = "stores/redis/commands/encode.ts";

/** @type {readonly Mutant[]} */
export const mutants = [
  {
    name: "grant-ignores-counter",
    breaks: "a grant exceeds the node's counter",
    example: "C1",
    changes: [
      {
        file: engine,
        from: `Math.max(proposed, view.floor + block, ...least)`,
        to: `Math.max(proposed, least.length)`,
      },
    ],
  },
  {
    name: "counter-not-written",
    breaks: "a grant is kept in the counter before the key is set",
    changes: [
      {
        file: engine,
        from: `  view.raiseCounters(counters, fence, true);\n`,
        to: "",
      },
    ],
  },
  {
    name: "no-raise",
    breaks: "unequal grants are raised to one fence",
    example: "C1, C2a",
    changes: [
      {
        file: "stores/redis/protocol/ballot.ts",
        from: `ballot.confirmed = ballot.vote === "granted" && ballot.fence === fence;`,
        to: `ballot.confirmed = ballot.vote === "granted" || fence < 0;`,
      },
    ],
  },
  {
    name: "raise-any-owner",
    breaks: "a raise is accepted only on one's own key",
    example: "C2",
    changes: [
      {
        file: engine,
        from: `if (holder.owner !== owner || holder.fence === undefined) return "N OTHER";`,
        to: `if (holder.owner !== owner || holder.fence === undefined) {
      if (ttlMs > 0 || !view.fences) return "N OTHER";
      continue;
    }`,
      },
    ],
  },
  {
    name: "raise-newer-key",
    breaks: "a raise or an extend is refused by a key with a greater fence",
    example: "C4, C4a, C4b, C14",
    changes: [
      {
        file: engine,
        from: `if (Number(holder.fence) > Number(fence)) return "N NEWER";`,
        to: "",
      },
    ],
  },
  {
    name: "raise-keeps-counter",
    breaks: "a raise lifts the counter with the key",
    changes: [
      {
        file: engine,
        from: `view.raiseCounters(counters, fence, isBehind);`,
        to: `view.raiseCounters(counters, fence, isBehind && ttlMs < 0);`,
      },
    ],
  },
  {
    name: "release-any-owner",
    breaks: "a release deletes only its own owner's key",
    changes: [
      {
        file: engine,
        from: `if (isOurs) deleted`,
        to: `if (value !== undefined) deleted`,
      },
    ],
  },
  {
    name: "release-by-process",
    breaks: "a release compares the whole owner, not only whose process it is",
    example: "C15",
    changes: [
      {
        file: engine,
        from: "value?.startsWith(`${owner}|`)",
        to: `value?.startsWith(String(owner.split("-")[0]))`,
      },
    ],
  },
  {
    name: "extend-recreates-key",
    breaks: "an extend never creates a key",
    example: "C12, C13",
    changes: [
      {
        file: engine,
        from: `if (value === undefined) return "N ABSENT";`,
        to: `if (value === undefined) {
      if (ttlMs === 0 || !view.fences) return "N ABSENT";
      data.set(key, whole, ttlMs);
      continue;
    }`,
      },
    ],
  },
  {
    name: "plain-extend-any-owner",
    breaks: "an extend without fences compares the owner",
    changes: [
      {
        file: engine,
        from: `if (holder.owner !== owner || holder.fence === undefined) return "N OTHER";`,
        to: `if (!view.fences) continue;
    if (holder.owner !== owner || holder.fence === undefined) return "N OTHER";`,
      },
    ],
  },
  {
    name: "blank-votes",
    breaks: "a node that is not admitted does not vote",
    example: "C6, C8a",
    changes: [
      { file: record, from: `if (strict && st !== "A") {`, to: `if (strict && st === "") {` },
    ],
  },
  {
    name: "no-quarantine",
    breaks: "a node that lost its data sits out every lease it may have forgotten",
    example: "C6, C9",
    changes: [
      {
        file: "stores/redis/protocol/store-settings.ts",
        from: `return Math.ceil(ttlMs + driftMs(options, ttlMs));`,
        to: `return ttlMs - ttlMs + options.driftFixedMs;`,
      },
    ],
  },
  {
    name: "short-quarantine",
    breaks: "the quarantine is as long as the longest lease",
    example: "C6, C20b",
    changes: [
      {
        file: "stores/redis/protocol/store-settings.ts",
        from: `return Math.ceil(ttlMs + driftMs(options, ttlMs));`,
        to: `return Math.ceil(ttlMs / 2 + driftMs(options, ttlMs));`,
      },
    ],
  },
  {
    name: "no-copy",
    breaks: "a node takes over the counters of others before it votes again",
    example: "C8",
    changes: [
      {
        file: admission,
        from: `counters: mode === "copy" ? counters : new Map(),`,
        to: `counters: new Map(),`,
      },
      {
        file: admission,
        from: `floor: mode === "copy" ? floor :`,
        to: `floor: mode === "copy" ? own.record.floor :`,
      },
    ],
  },
  {
    name: "copy-before-quarantine",
    breaks: "counters are read after the quarantine, not before",
    example: "C10",
    changes: [
      {
        file: admission,
        from: `const blank = this.#blankOf(first);`,
        to: `const blank = this.#blankOf(first);
    const early = ((this as any).early ??= new Map());
    for (const index of blank) {
      const view = first[index] as any;
      const name = index + " " + view.record.runId + view.record.since;
      if (!early.has(name)) early.set(name, first);
    }`,
      },
      {
        file: admission,
        from: `const { floor, counters } = greatestCounters(records);`,
        to: `const early = (this as any).early.get(index + " " + own.record.runId + own.record.since);
    const { floor, counters } = greatestCounters(
      (early ?? []).flatMap((view: any) => (view.kind === "silent" ? [] : [view.record])),
    );`,
      },
    ],
  },
  {
    name: "copy-counts-itself",
    breaks: "the node that recovers is not one of those it copies from",
    example: "C11",
    changes: [
      {
        file: admissionRule,
        from: `if (admitted.length >= size) return ready`,
        to: `if (admitted.length + 1 >= size) return ready`,
      },
    ],
  },
  {
    name: "bootstrap-at-once",
    breaks: "a first start waits as long as a quarantine",
    changes: [
      {
        file: admissionRule,
        from: `if (firstStart) return ready("bootstrap", waitMs, `,
        to: `if (firstStart) return ready("bootstrap", 0, 0 * `,
      },
    ],
  },
  {
    name: "never-verifies",
    breaks: "a granting script checks that the record belongs to the process that it runs in",
    changes: [
      { file: encode, from: `verify || strict ? "1" : "0"`, to: `verify && strict ? "0" : "0"` },
    ],
  },
  {
    name: "verifies-on-load-only",
    breaks: "it does so on every call: servers before 7 keep scripts in their snapshots",
    changes: [
      { file: encode, from: `verify || strict ? "1" : "0"`, to: `verify ? "1" : "0"` },
      {
        file: "stores/redis/node/server-identity.ts",
        from: `get mustVerify(): boolean {`,
        to: `get mustVerify(): boolean {
    if (Number.parseInt(this.version ?? "0", 10) > 5) return false;`,
      },
    ],
  },
  {
    name: "half-is-a-quorum",
    breaks: "a quorum is more than half",
    changes: [
      {
        file: "stores/redis/protocol/ballot.ts",
        from: `return Math.floor(nodeCount / 2) + 1;`,
        to: `return Math.ceil(nodeCount / 2);`,
      },
    ],
  },
  {
    name: "no-drift",
    breaks: "something is taken off every TTL for clocks that run apart",
    example: "C5b",
    changes: [
      {
        file: "stores/redis/protocol/store-settings.ts",
        from: `return ttlMs * options.driftFactor + options.driftFixedMs;`,
        to: `return ttlMs * options.driftFactor * 0;`,
      },
    ],
  },
  {
    name: "validity-from-the-reply",
    breaks: "validity counts from before the first byte",
    example: "C21",
    changes: [
      {
        file: acquisition,
        from: `const acquired = { grant, started, validityMs`,
        to: `const acquired = { grant, started: received, validityMs`,
      },
    ],
  },
  {
    name: "extension-from-the-reply",
    breaks: "an extended validity counts from before the first byte",
    changes: [
      {
        file: lease,
        from: `this.#deadline.prolong(sent.started, outcome.validityMs);`,
        to: `this.#deadline.prolong(moment, outcome.validityMs);`,
      },
    ],
  },
  {
    name: "failed-extend-succeeds",
    breaks: "an extend needs a quorum",
    changes: [
      {
        file: touch,
        from: `if (outcome !== "failed") return this.#resolve(outcome === "done" ? done : gone);`,
        to: `if (outcome !== "gone") return this.#resolve(done);`,
      },
    ],
  },
  {
    name: "extend-by-minority",
    breaks: "an extend needs more than half",
    changes: [
      {
        file: touch,
        from: `if (done >= size) return "done";`,
        to: `if (done >= size - 1 && done > 0) return "done";`,
      },
    ],
  },
  {
    name: "revive-lost-lease",
    breaks: "a reply that comes after the end of validity proves nothing",
    example: "C12",
    changes: [
      {
        file: lease,
        from: `    // Judged by the old validity first: a reply that comes after it proves nothing.
    this.judge(moment);
    if (!this.isActive) return whyEnded(this.#activity, this);`,
        to: `if (reply.kind !== "failed" && this.#activity !== undefined) this.#activity.loss = undefined;`,
      },
    ],
  },
  {
    name: "monotonic-clock-only",
    breaks: "a lease is over when either clock says so",
    changes: [
      {
        file: "core/lease/deadline.ts",
        from: `return Math.min(this.#untilMs - monotonicMs, this.#steadyUntilMs - steadyMs);`,
        to: `return this.#untilMs - monotonicMs + 0 * steadyMs;`,
      },
    ],
  },
  {
    name: "wall-clock-only",
    breaks: "a lease is over when either clock says so",
    changes: [
      {
        file: "core/time/instant.ts",
        from: `steadyMs: monotonicMs + this.#gainedMs };`,
        to: `steadyMs: clock.wallMs() };`,
      },
      {
        file: "core/lease/deadline.ts",
        from: `return Math.min(this.#untilMs - monotonicMs, this.#steadyUntilMs - steadyMs);`,
        to: `return this.#steadyUntilMs - steadyMs + 0 * monotonicMs;`,
      },
    ],
  },
  {
    name: "set-back-hides-a-sleep",
    breaks: "a wall clock that was set back does not hide that the machine slept later",
    changes: [
      {
        file: "core/time/instant.ts",
        from: `} else if (offsetMs < this.#offsetMs - noiseMs) {`,
        to: `} else if (offsetMs < this.#offsetMs - 1e12) {`,
      },
    ],
  },
  {
    name: "no-end-timer",
    breaks: "the signal fires by itself when validity ends",
    changes: [
      {
        file: "core/lease/deadline.ts",
        from: `Math.min(renewAtMs, this.endDueMs(moment))`,
        to: `Math.min(renewAtMs, this.endDueMs(moment) + 500)`,
      },
    ],
  },
  {
    name: "judge-on-timer-only",
    breaks: "a look at a lease after a pause shows that it is over",
    changes: [
      {
        file: lease,
        from: `if (this.#deadline.isOver(moment ?? this.terms.host.clock.now())) this.lose();`,
        to: "",
      },
    ],
  },
  {
    name: "owner-reused",
    breaks: "every attempt has an owner of its own",
    example: "C15",
    changes: [
      {
        file: acquisition,
        from: `const owner = owners.next(label);`,
        to: `const owner = ((this as any).owner ??= owners.next(label));`,
      },
    ],
  },
  {
    name: "failed-attempt-not-released",
    breaks: "a failed attempt gives back what it got",
    changes: [
      {
        file: attempt,
        from: `const cleanup = releaseAll(this.#quorum, what, (begun) => (this.#cleanup = begun));`,
        to: `const cleanup = Promise.resolve(void [releaseAll, what]);`,
      },
    ],
  },
  {
    name: "late-grant-kept",
    breaks: "a grant that comes after its attempt failed is given back",
    changes: [
      {
        file: attempt,
        from: `if (reply.kind !== "reply" || reply.reply.kind !== "granted") return;`,
        to: `if (reply.kind) return;`,
      },
    ],
  },
  {
    name: "late-grant-after-release",
    breaks: "a grant that comes after its lease was given back is given back too",
    changes: [
      {
        file: attempt,
        from: `return this.#cleanup ?? this.#grant?.begunRelease;`,
        to: `return this.#cleanup;`,
      },
    ],
  },
  {
    name: "late-grant-left-alone",
    breaks: "only a release that was sent to a node takes its late grant back",
    changes: [
      {
        file: "stores/redis/protocol/release.ts",
        from: `this.#unanswered &= ~(this.#round?.skipped ?? 0);`,
        to: ``,
      },
    ],
  },
  {
    name: "extend-out-of-turn",
    breaks: "renewals that are due again at once do not keep the user's own extend waiting",
    changes: [
      {
        file: lease,
        from: `    const activity = this.own;
    const extend = `,
        to: `    const ahead = () => queueBefore(this.own);
    for (let each = ahead(); each !== undefined; each = ahead()) await each;
    this.assertHeld();
    const activity = this.own;
    const extend = `,
      },
      { file: lease, from: `  inTurn,\n`, to: `  inTurn,\n  queueBefore,\n` },
      {
        file: "core/lease/activity.ts",
        from: `function queueBefore(`,
        to: `export function queueBefore(`,
      },
    ],
  },
  {
    name: "releases-not-owed",
    breaks: "a release that a lost connection kept from a node is tried again",
    changes: [
      {
        file: "stores/redis/protocol/owed-releases.ts",
        from: `if (this.#closed || this.#debts.size >= debtsMax) return debt;`,
        to: `if (this.#debts.size < debtsMax) return debt;`,
      },
    ],
  },
  {
    name: "close-keeps-leases",
    breaks: "closing releases what is held",
    changes: [
      {
        file: "core/lock-manager.ts",
        from: `keeper.leases.map((lease) => lease.close())`,
        to: `keeper.leases.slice(1).map((lease) => lease.close())`,
      },
    ],
  },
  {
    name: "no-node-timeout",
    breaks: "a round ends when its time is up, even if nodes are silent",
    changes: [
      {
        file: "stores/redis/protocol/round.ts",
        from: `scheduler.schedule(this, nowMs + timeoutMs);`,
        to: `scheduler.schedule(this, nowMs + timeoutMs * 50);`,
      },
    ],
  },
  {
    name: "clock-steps-unseen",
    breaks: "a node's clock that was set forward is seen in its next reply",
    changes: [
      {
        file: "core/time/clock-watch.ts",
        from: `return stepped ? stepMs : 0;`,
        to: `return stepped ? stepMs * 0 : 0;`,
      },
    ],
  },
  {
    name: "step-keeps-votes",
    breaks: "a lease loses the vote of a node whose clock was set forward",
    changes: [
      {
        file: "stores/redis/failover/held-grants.ts",
        from: `if (stepMs < 0) return;`,
        to: `if (stepMs !== 0) return;`,
      },
    ],
  },
  {
    name: "attempt-keeps-stepped",
    breaks: "an attempt takes back the vote of a node whose clock was set forward meanwhile",
    changes: [
      {
        file: attempt,
        from: `confirmed - dropStepped(this.#quorum.nodes, this.#ballots)`,
        to: `confirmed + 0 * dropStepped(this.#quorum.nodes, this.#ballots)`,
      },
    ],
  },
  {
    name: "older-word-counts",
    breaks: "a node's word for an older extension is no vote for the newest",
    changes: [
      {
        file: "stores/redis/protocol/grant.ts",
        from: `if (confirmation === this.#confirmations && !this.isOver)`,
        to: `if (confirmation <= this.#confirmations && !this.isOver)`,
      },
    ],
  },
  {
    name: "extend-keeps-stepped",
    breaks: "an extend takes back the vote of a node whose clock was set forward meanwhile",
    changes: [
      { file: touch, from: `    takeBackStepped(this.#quorum.nodes, this.#ballots);\n`, to: "" },
    ],
  },
  {
    name: "failed-renewal-succeeds",
    breaks: "a renewal needs a quorum",
    changes: [
      {
        file: renewal,
        from: `if (outcome === "done") return this.#onOutcome(place, this.#extended, received);`,
        to: `if (outcome !== "gone") return this.#onOutcome(place, this.#extended, received);`,
      },
    ],
  },
  {
    name: "renewal-keeps-stepped",
    breaks: "a renewal takes back the vote of a node whose clock was set forward meanwhile",
    changes: [
      {
        file: renewal,
        from: `      each.yes &= ~stepped;\n`,
        to: "",
      },
    ],
  },
  {
    name: "renewal-counts-the-noes",
    breaks: "a node that no longer has the lock does not renew it",
    changes: [
      {
        file: renewal,
        from: `if (verdict === "K") this.#addYes(each, index);`,
        to: `if (verdict !== "T") this.#addYes(each, index);`,
      },
    ],
  },
  {
    name: "renewal-confirms-all-nodes",
    breaks: "a renewed lease rests on the nodes that renewed it",
    changes: [
      {
        file: renewal,
        from: `confirm(this.#quorum, grant, yes, this.#sentMs`,
        to: `confirm(this.#quorum, grant, this.#quorum.rounds.all, this.#sentMs`,
      },
    ],
  },
  {
    name: "renewal-behind-counts",
    breaks: "a node that is behind in the fence has to be raised before its renewal counts",
    changes: [
      {
        file: engine,
        from: `  if (view.fences) view.raise`,
        to: `  if (ttlMs > 0) isBehind = false;
  if (view.fences) view.raise`,
      },
    ],
  },
  {
    name: "renewal-verdicts-mixed",
    breaks: "each lease that is renewed with others gets its own verdict",
    changes: [
      {
        file: renewal,
        from: `verdicts.charAt(each.place)`,
        to: `verdicts.charAt(verdicts.length - 1 - each.place)`,
      },
    ],
  },
  {
    name: "batch-verdicts-mixed",
    breaks: "each operation of a batch gets its own verdict",
    changes: [
      {
        file: "stores/redis/node/sender.ts",
        from: `readLine(call, lines[place], `,
        to: `readLine(call, lines[lines.length - place], `,
      },
    ],
  },
  {
    name: "batch-one-for-all",
    breaks: "each operation of a batch gets its own verdict",
    changes: [
      {
        file: "stores/redis/node/sender.ts",
        from: `readLine(call, lines[place], `,
        to: `readLine(call, lines[call.operation?.kind === items[0]?.call.operation?.kind ? 1 : place], `,
      },
    ],
  },
  {
    name: "batch-failure-untold",
    breaks: "what failed as a batch is tried again one by one",
    changes: [
      {
        file: "stores/redis/node/sender.ts",
        from: `      } else if (mayLoad && !byText) {`,
        to: `      } else if (mayLoad) {
        const error = new Error("no script");
        for (const { to, index } of items) to.settle(index, { kind: "unsent", error });
      } else if (!byText) {`,
      },
    ],
  },
  {
    name: "absence-of-a-second-run-counts",
    breaks: "a missing key proves nothing where the driver may have sent the request twice",
    changes: [
      {
        file: "stores/redis/node/sender.ts",
        from: `this.#epoch = epochOf(connection);`,
        to: `this.#epoch = () => 0;`,
      },
    ],
  },
  {
    name: "waits-put-off-ends",
    breaks: "a timer that is due is not set anew",
    changes: [
      {
        file: "core/time/scheduler.ts",
        from: `  #arm(): void {
    this.#keepProcess();`,
        to: `  #arm(): void {
    const before = this.#letExit;
    this.#keepProcess();
    if ((before === undefined) !== (this.#letExit === undefined)) this.#disarm();`,
      },
      {
        file: "core/time/scheduler.ts",
        from: `if (!this.#running) this.#keepProcess();`,
        to: `if (!this.#running) this.#arm();`,
      },
    ],
  },
  {
    name: "telling-prolongs",
    breaks: "notifying the head of a queue only ever shortens its time to come",
    changes: [
      {
        file: "simulator/node/queues.ts",
        from: `if (place.lapseMs > soonMs) this`,
        to: `if (place.lapseMs !== soonMs) this`,
      },
    ],
  },
  {
    name: "places-never-lapse",
    breaks: "a place lapses, so that a dead waiter does not stay first for good",
    changes: [
      {
        file: "simulator/node/queues.ts",
        from: `return score < 0 && -score <= 2 * this.#nowMs + 1;`,
        to: `return score < 0 && -score <= 1;`,
      },
    ],
  },
  {
    name: "attempts-only-when-notified",
    breaks: "a waiter also makes attempts without a notification: a holder that dies sends none",
    changes: [
      {
        file: "core/acquire/backoff.ts",
        from: `if (rank >= eagerWaiters && !isFree) return mostMs;`,
        to: `if (!isSplit) return mostMs * 3_600;`,
      },
    ],
  },
  {
    name: "line-front-leaves-silently",
    breaks: "a call that leaves the front of a manager's queue wakes the next",
    changes: [
      {
        file: localQueue,
        from: `else if (wasFirst) frontOf(queue)?.wake();`,
        to: `else if (wasFirst) return;`,
      },
    ],
  },
  {
    name: "line-stays-held",
    breaks: "a lease that is over is the turn of the next in its manager's line",
    changes: [
      {
        file: localQueue,
        from: `queue.heldBy = undefined;`,
        to: `queue.heldBy ??= undefined;`,
      },
    ],
  },
  {
    name: "hand-over-same-fence",
    breaks: "a lock that is passed on has a new, greater fence",
    example: "C16",
    changes: [
      {
        file: "stores/redis/protocol/grant.ts",
        from: `BigInt(this.fenceNumber - this.reservedFences)`,
        to: `BigInt(this.fenceNumber)`,
      },
    ],
  },
  {
    name: "hand-over-unreserved",
    breaks: "a grant that may be passed on reserves a fence for each of its holders",
    changes: [{ file: engine, from: `place?.block ?? 1`, to: `1` }],
  },
  {
    name: "hand-over-renews-validity",
    breaks: "the call that a lock is handed over to has the rest of its validity",
    changes: [
      {
        file: localQueue,
        from: `take({ grant, started, validityMs: leftMs })`,
        to: `take({ grant, started, validityMs: grant.validityMs })`,
      },
    ],
  },
  {
    name: "hand-over-before-its-end",
    breaks: "a lease whose lock was passed on is over",
    changes: [
      {
        file: "core/lease/held-lease.ts",
        from: `if (this.isActive) activity.isReleased = true;`,
        to: `if (this.isActive && kept === undefined) activity.isReleased = true;`,
      },
    ],
  },
  {
    name: "touch-shortens-key",
    breaks: "an extend leaves a longer life as it is",
    changes: [
      {
        file: engine,
        from: "if (ttlMs > 0 && data.pttl(key) < ttlMs) data",
        to: "if (ttlMs > 0 && (view.fences || data.pttl(key) < ttlMs)) data",
      },
    ],
  },
  {
    name: "plain-touch-shortens-key",
    breaks: "an extend without fences leaves a longer life as it is",
    changes: [
      {
        file: engine,
        from: "if (ttlMs > 0 && data.pttl(key) < ttlMs) data",
        to: "if (ttlMs > 0 && (!view.fences || data.pttl(key) < ttlMs)) data",
      },
    ],
  },
  {
    name: "renew-shortens-key",
    breaks: "a renewal of many locks leaves a longer life as it is",
    changes: [
      {
        file: scripts,
        from: "operations.map((operation) => run(operation, view));",
        to: `operations.map((operation) => {
    const line = run(operation, view);
    const { code, locks, ttlMs } = operation;
    const isRenewed = operations.length > 1 && code === "T" && line === "K" && ttlMs > 0;
    if (isRenewed) for (const key of locks) context.data.pexpire(key, ttlMs);
    return line;
  });`,
      },
    ],
  },
  {
    name: "batched-grant-repeats-fence",
    breaks: "a batch says which fence it granted, if that is not the proposal",
    changes: [
      {
        file: engine,
        from: '(fence === proposal ? "G" : `G ${fence}`)',
        to: '(fence === "" ? `G ${proposal}` : "G")',
      },
    ],
  },
  {
    name: "aborted-grant-kept",
    breaks: "a call that was aborted when its grant arrived gives the grant back",
    changes: [
      {
        file: acquisition,
        from: `          if (this.cancelled) return await this.#giveBack(grant);
          waiter?.granted(grant, label);`,
        to: `          waiter?.granted(grant, label);`,
      },
    ],
  },
];
