import { StoreError } from "../../core/errors.ts";
import type { Finding } from "../../core/report/doctor.ts";
import { unknownInspection } from "../../core/report/one-node.ts";
import type {
  AcquireRequest,
  AttemptOutcome,
  BreakAnswer,
  ExtendOutcome,
  Grant,
  Inspection,
  NodeStatus,
  OnExtended,
  OpenStore,
  ProveOutcome,
  ReleaseOutcome,
  StoreContext,
  Waiting,
} from "../../core/store.ts";
import { leftMs } from "../../core/time/instant.ts";
import type { RunQuery } from "../../fencing/postgres-query.ts";
import { type Answer, Connection } from "./connection.ts";
import { examine } from "./doctor.ts";
import type { PostgresGrant } from "./grant.ts";
import type { Listen } from "./listener.ts";
import { fencesPerGrant, type Result } from "./operation.ts";
import { type PostgresSettings, validityMsOf } from "./options.ts";
import { type Done, Outbox } from "./outbox.ts";
import { cancelled, heldOutcome, inspectionIn } from "./outcomes.ts";
import { OwedReleases } from "./owed-releases.ts";
import { node, ServerWatch } from "./server-watch.ts";
import { Sweeping } from "./sweeping.ts";
import { PostgresWaiting } from "./waiting.ts";
import { WakeUps } from "./wake-ups.ts";

/** Limit for repetitions of a release whose reply was lost. */
const releasesMax = 2;

/** Result of a list. */
interface Named {
  /** Name of the resource in base64. */
  readonly name: string;
}

/** Store of one manager in a table of Postgres. Each request is one short transaction. */
export class PostgresStore implements OpenStore {
  readonly #context: StoreContext;
  readonly #settings: PostgresSettings;
  readonly #watch: ServerWatch;
  readonly #connection: Connection;
  readonly #outbox: Outbox;
  readonly #owed: OwedReleases;
  readonly #wakeUps: WakeUps;
  readonly #sweeping: Sweeping;

  constructor(
    query: RunQuery,
    listen: Listen | undefined,
    settings: PostgresSettings,
    context: StoreContext,
  ) {
    const { scheduler, runtime } = context;
    const { timeoutMs } = settings;
    this.#context = context;
    this.#settings = settings;
    this.#watch = new ServerWatch(context, settings.drift);
    this.#connection = new Connection(query, scheduler, settings, this.#watch);
    this.#outbox = new Outbox(this.#connection, runtime.clock, timeoutMs);
    this.#owed = new OwedReleases(this.#outbox, scheduler);
    const base = runtime.random.uniqueBase();
    this.#wakeUps = new WakeUps(base, listen, this.#connection, context, timeoutMs);
    this.#sweeping = new Sweeping(this.#connection, runtime);
  }

  async attempt(request: AcquireRequest): Promise<AttemptOutcome> {
    const { resources, owner, ttlMs, cancellation } = request;
    if (cancellation.cancelled) return cancelled(request, undefined);
    const sent = this.#outbox.send({ do: "acquire", resources, owner, ttlMs });
    return await this.#outcome(request, sent, false);
  }

  /** Returns a wait for one resource. A wait for several has no place in a queue, and polls. */
  waiting(resources: readonly string[]): Waiting | undefined {
    const [resource] = resources;
    if (resource === undefined || resources.length > 1) return undefined;
    return new PostgresWaiting(resource, {
      outbox: this.#outbox,
      wakeUps: this.#wakeUps,
      outcome: (request, sent, isQueued) => this.#outcome(request, sent, isQueued),
    });
  }

  async #outcome(
    request: AcquireRequest,
    sent: Promise<Answer<Done>>,
    isQueued: boolean,
  ): Promise<AttemptOutcome> {
    const { resources, owner, ttlMs, started, cancellation } = request;
    let answer: Answer<Done> | undefined;
    const arrived = sent.then((value) => {
      answer = value;
    });
    await cancellation.orUntil(arrived);
    if (answer === undefined) {
      // The statement may still run, so the release follows its end.
      return cancelled(
        request,
        arrived.then(() => this.#giveBack(request, arrived)),
      );
    }
    if (!answer.ok) {
      const { failure, settled } = answer;
      const cleanup = failure.certain ? undefined : this.#giveBack(request, settled);
      return { kind: "failed", error: failure.error, retryable: failure.retryable, cleanup };
    }
    const { result, generation } = answer.value;
    if (result.is !== "granted") return heldOutcome(result);
    this.#sweeping.begin();
    const grant: PostgresGrant = {
      resources,
      owner,
      fence: BigInt(result.fence ?? 0),
      validityMs: validityMsOf(ttlMs, this.#settings.drift),
      reserved: isQueued ? fencesPerGrant - 1 : 0,
      generation: BigInt(generation),
    };
    if (leftMs(this.#context.runtime.clock, started, grant.validityMs) > 0) {
      return { kind: "granted", grant };
    }
    const what = "the validity was over before the lock could be handed out";
    const error = new StoreError(what, { resources });
    const cleanup = this.#giveBack(request, Promise.resolve());
    return { kind: "failed", error, retryable: true, cleanup };
  }

  #giveBack(request: AcquireRequest, settled: Promise<unknown>): Promise<void> {
    return this.#owed.giveBack(request.resources, request.owner, request.ttlMs, settled);
  }

  handOver(given: Grant): boolean {
    const grant = given as PostgresGrant;
    if (grant.reserved <= 0) return false;
    grant.reserved -= 1;
    grant.fence += 1n;
    return true;
  }

  async extend(given: Grant, ttlMs: number): Promise<ExtendOutcome> {
    const grant = given as PostgresGrant;
    const { resources, owner } = grant;
    const answer = await this.#outbox.send({ do: "extend", resources, owner, ttlMs });
    const checked = this.#checked(grant, answer, "extended");
    if (checked !== true) return checked;
    return { kind: "extended", validityMs: validityMsOf(ttlMs, this.#settings.drift) };
  }

  extendMany(grants: readonly Grant[], ttlMs: number, onExtended: OnExtended): void {
    const { clock } = this.#context.runtime;
    for (const [index, grant] of grants.entries()) {
      void this.extend(grant, ttlMs).then((outcome) => onExtended(index, outcome, clock.now()));
    }
  }

  async prove(given: Grant): Promise<ProveOutcome> {
    const grant = given as PostgresGrant;
    const { resources, owner } = grant;
    const answer = await this.#outbox.send({ do: "prove", resources, owner });
    const checked = this.#checked(grant, answer, "proven");
    return checked === true ? { kind: "proven" } : checked;
  }

  /** Returns true if the server confirmed the grant, otherwise the outcome. */
  #checked(
    grant: PostgresGrant,
    answer: Answer<Done>,
    expected: Result["is"],
  ): true | Exclude<ProveOutcome, { kind: "proven" }> {
    if (!answer.ok) return { kind: "failed", error: answer.failure.error };
    const { result, generation } = answer.value;
    if (result.is === "gone") return { kind: "gone" };
    if (result.is === expected) {
      grant.generation = BigInt(generation);
      return true;
    }
    const what = "another transaction keeps the row of the lock locked";
    return { kind: "failed", error: new StoreError(what, { resources: grant.resources }) };
  }

  async release(grant: Grant): Promise<ReleaseOutcome> {
    const { resources, owner } = grant;
    for (let repeats = 0; ; repeats += 1) {
      const answer = await this.#outbox.send({ do: "release", resources, owner });
      if (answer.ok && answer.value.result.is === "released") return { released: true };
      if (answer.ok && answer.value.result.is === "gone") {
        // A repetition finds nothing if only the reply to the first release was lost.
        return repeats > 0 ? { released: true } : { released: false, reason: "taken" };
      }
      if (repeats < releasesMax && (answer.ok || answer.failure.retryable)) continue;
      this.#owed.owe(resources, owner, this.#settings.maxTtlMs);
      return { released: false, reason: "unreachable" };
    }
  }

  async inspect(resource: string): Promise<Inspection> {
    const answer = await this.#outbox.send({ do: "inspect", resources: [resource] });
    if (!answer.ok) {
      const { error, retryable } = answer.failure;
      if (!retryable) throw error;
      return unknownInspection(resource, node, error);
    }
    return inspectionIn(resource, answer.value.result);
  }

  async list(): Promise<readonly Inspection[]> {
    const text = "SELECT {schema}.list_v1()::text AS held";
    const answer = await this.#connection.send(text, [], (rows) => {
      const { held } = (rows[0] ?? {}) as { held?: string };
      return JSON.parse(held ?? "[]") as readonly (Result & Named)[];
    });
    if (!answer.ok) throw answer.failure.error;
    return answer.value.map((held) => {
      return inspectionIn(Buffer.from(held.name, "base64").toString(), held);
    });
  }

  async break(resource: string, owners: readonly string[]): Promise<BreakAnswer> {
    for (const owner of owners) {
      const answer = await this.#outbox.send({ do: "release", resources: [resource], owner });
      if (!answer.ok) return { kind: "failed", error: answer.failure.error };
      const { is } = answer.value.result;
      if (is === "released") return { kind: "broken" };
      if (is === "busy") {
        const what = "another transaction keeps the row of the lock locked: try again";
        return { kind: "failed", error: new StoreError(what, { resources: [resource] }) };
      }
    }
    return { kind: "gone" };
  }

  async nodes(): Promise<readonly NodeStatus[]> {
    const text =
      "SELECT current_setting('server_version') AS version, " +
      "{schema}.timeline_v1()::text AS timeline";
    const answer = await this.#connection.send(text, [], (rows) => rows[0]);
    const version = answer.ok ? String(answer.value?.["version"]) : undefined;
    const runId = answer.ok ? `timeline ${String(answer.value?.["timeline"])}` : undefined;
    const lastFault = answer.ok ? undefined : answer.failure.error;
    return [
      { node, admission: "off", quarantineRemainingMs: undefined, runId, version, lastFault },
    ];
  }

  async doctor(): Promise<readonly Finding[]> {
    const { schema } = this.#settings;
    const findings = await examine(this.#connection, schema, this.#watch.steppedMs);
    const isWorking = findings.every(({ level }) => level !== "error");
    const deaf = isWorking ? await this.#wakeUps.examine() : undefined;
    return deaf === undefined ? findings : [...findings, deaf];
  }

  async close(): Promise<void> {
    await Promise.all([this.#owed.close(), this.#wakeUps.close(), this.#sweeping.close()]);
  }
}
