import type { Scheduler } from "../../core/time/scheduler.ts";
import type { Instant } from "../../core/ports.ts";
import type { Row, RunQuery } from "../../fencing/postgres-query.ts";
import { failureOf, NoReplyError, type Failure } from "./faults.ts";
import { decode, encode, type Operation, type Reply } from "./operation.ts";
import { inSchema } from "./schema/migration.ts";

/** Receives what replies and failures show about the server. */
export interface ServerObserver {
  onReply(reply: Reply, sent: Instant): void;
  onFailure(failure: Failure): void;
}

/** Outcome of one statement. A promise of it never rejects. */
export type Answer<Value> =
  | { readonly ok: true; readonly value: Value }
  | {
      readonly ok: false;
      readonly failure: Failure;
      /** Resolves when the driver has settled the statement. It may run until then. */
      readonly settled: Promise<unknown>;
    };

/** Sends statements through the user's client, each with a time limit. */
export class Connection {
  readonly schema: string;
  readonly #query: RunQuery;
  readonly #scheduler: Scheduler;
  readonly #timeoutMs: number;
  readonly #observer: ServerObserver;
  readonly #runSql: string;
  readonly #enterSql: string;

  constructor(
    query: RunQuery,
    scheduler: Scheduler,
    settings: { readonly schema: string; readonly timeoutMs: number },
    observer: ServerObserver,
  ) {
    this.#query = query;
    this.#scheduler = scheduler;
    this.schema = settings.schema;
    this.#timeoutMs = settings.timeoutMs;
    this.#observer = observer;
    // The parameter is a text: some drivers would encode a jsonb parameter a second time.
    const run = "SELECT {schema}.run_v1($1::text::jsonb)::text AS reply";
    this.#runSql = inSchema(run, settings.schema);
    this.#enterSql = inSchema("SELECT {schema}.enter_v1()::text AS reply", settings.schema);
  }

  /** Runs the operations in one transaction. */
  async run(operations: readonly Operation[]): Promise<Answer<Reply>> {
    const params = [encode(operations)];
    for (let entered = false; ; entered = true) {
      const sent = this.#scheduler.clock.now();
      const answer = await this.send(this.#runSql, params, (rows) => {
        return decode(rows[0]?.["reply"] ?? null, operations.length);
      });
      if (!answer.ok) return answer;
      if (answer.value !== undefined) {
        this.#observer.onReply(answer.value, sent);
        return { ok: true, value: answer.value };
      }
      // This is another server than the one that granted last, perhaps a copy that lacks the latest
      // fences. It first begins a new generation: greater leading digits for all its fences.
      const entry = await this.send(this.#enterSql, [], () => undefined);
      if (!entry.ok) return entry;
      if (entered) return this.#failed(new Error("the server changes all the time"), entry);
    }
  }

  /** Sends one statement, and reads its rows. */
  async send<Value>(
    text: string,
    params: unknown[],
    read: (rows: readonly Row[]) => Value,
  ): Promise<Answer<Value>> {
    const call = Promise.resolve().then(() => this.#query(inSchema(text, this.schema), params));
    try {
      return { ok: true, value: read(await this.#limited(call)) };
    } catch (cause) {
      return this.#failed(cause, call);
    }
  }

  #failed(cause: unknown, call: unknown): Extract<Answer<never>, { ok: false }> {
    const failure = failureOf(cause, this.schema);
    this.#observer.onFailure(failure);
    return { ok: false, failure, settled: Promise.allSettled([call]) };
  }

  #limited<Result>(call: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      const dueMs = this.#scheduler.clock.monotonicMs() + this.#timeoutMs;
      const task = this.#scheduler.at(dueMs, true, () => reject(new NoReplyError(this.#timeoutMs)));
      call.then(resolve, reject).finally(() => this.#scheduler.cancel(task));
    });
  }
}
