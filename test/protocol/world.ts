import * as fc from "fast-check";
import { shardOf } from "../../src/stores/redis/commands/keys.ts";
import { ModelNode, StepCounter } from "./model-node.ts";
import { Actor, quiet, resource, ttlMs } from "./stage.ts";

/**
 * One event of a schedule. `pick` selects among the possible events; an action for which none is
 * possible does nothing. So every sequence is a schedule, and can be shrunk to a shorter one.
 */
export interface Action {
  readonly kind: "begin" | "execute" | "receive" | "run" | "lose" | "expire" | "bump" | "wait";
  readonly actor: number;
  readonly node: number;
  readonly pick: number;
}

/** Actions that bring attempts to their end are more frequent than disturbances. */
export function actions(length: number): fc.Arbitrary<Action[]> {
  const kind = fc.oneof(
    { weight: 8, arbitrary: fc.constant("run" as const) },
    { weight: 4, arbitrary: fc.constant("execute" as const) },
    { weight: 4, arbitrary: fc.constant("receive" as const) },
    { weight: 5, arbitrary: fc.constant("expire" as const) },
    { weight: 3, arbitrary: fc.constant("begin" as const) },
    { weight: 1, arbitrary: fc.constant("lose" as const) },
    { weight: 1, arbitrary: fc.constant("bump" as const) },
    { weight: 1, arbitrary: fc.constant("wait" as const) },
  );
  const small = fc.nat({ max: 6 });
  const action = fc.record({ kind, actor: small, node: small, pick: small });
  return fc.array(action, { minLength: length / 2, maxLength: length, size: "max" });
}

/** Time after which a client sends a silent node a second request, and later goes on without it. */
const nodeTimeoutMs = 1_000;

interface Completed {
  readonly owner: string;
  readonly fence: number;
  readonly at: number;
}

/** Model nodes, and real clients whose messages move only by actions. */
export class World {
  readonly nodes: readonly ModelNode[];
  readonly actors: readonly Actor[];
  readonly completed: Completed[] = [];
  readonly #steps = new StepCounter();
  readonly #seen = new Set<string>();

  constructor(nodeCount: number, proposals: readonly number[], comparesFence = true) {
    this.nodes = Array.from(
      { length: nodeCount },
      (_, index) => new ModelNode(index, this.#steps, comparesFence),
    );
    const backends = this.nodes.map(({ backend }) => backend);
    const options = { admission: "off", maxTtl: ttlMs, nodeTimeout: nodeTimeoutMs } as const;
    this.actors = proposals.map((proposes) => new Actor(backends, options, { proposes }));
  }

  async act(action: Action): Promise<void> {
    const actor = this.actors[action.actor % this.actors.length];
    const index = action.node % this.nodes.length;
    const node = this.nodes[index];
    const line = actor?.lines[index];
    if (actor === undefined || node === undefined || line === undefined) return;
    const held = line.pending[action.pick % Math.max(1, line.pending.length)];
    switch (action.kind) {
      case "begin":
        if (actor.outcome !== undefined || this.#isIdle(actor)) await actor.begins();
        break;
      case "execute":
        if (held !== undefined) await line.execute(held);
        break;
      case "receive":
        if (held !== undefined && held.replies.length > 0) {
          held.answer(held.replies[action.pick % held.replies.length]);
        }
        break;
      case "run":
        if (held !== undefined) held.answer(await line.execute(held));
        break;
      case "lose":
        held?.fail(new Error("the connection was closed"));
        break;
      case "expire":
        node.expire(resource);
        break;
      case "wait":
        actor.clock.advance(nodeTimeoutMs);
        break;
      case "bump":
        node.bump(String(shardOf(resource)));
        break;
      default:
        action.kind satisfies never;
    }
    await quiet();
    this.#note(actor);
  }

  /** Lets every message arrive. Returns the number of attempts that stay undecided. */
  async finish(): Promise<number> {
    for (let left = true; left;) {
      left = false;
      for (const line of this.actors.flatMap(({ lines }) => lines)) {
        for (const held of line.pending.slice()) {
          held.answer(held.replies[0] ?? (await line.execute(held)));
          left = true;
        }
      }
      await quiet();
    }
    // No message is under way now: what is still pending can only end by its timeout.
    for (const actor of this.actors) actor.clock.advance(nodeTimeoutMs);
    await quiet();
    for (const actor of this.actors) this.#note(actor);
    return this.actors.filter(({ begun, outcome }) => begun && outcome === undefined).length;
  }

  /** Returns a description of each broken promise. */
  violations(): string[] {
    const found: string[] = [];
    for (const a of this.completed) {
      for (const b of this.completed) {
        if (a === b) continue;
        if (a.fence === b.fence) found.push(`fence ${a.fence} twice`);
        const asked = this.nodes.flatMap(({ firstAsked }) => firstAsked.get(b.owner) ?? []);
        if (a.at < Math.min(...asked) && a.fence >= b.fence) {
          found.push(`${b.fence} began after ${a.fence} was complete`);
        }
        if (this.#confirmedInWrongOrder(a, b)) {
          found.push(`a node confirmed ${a.fence} before ${b.fence}`);
        }
      }
    }
    return found;
  }

  #confirmedInWrongOrder(a: Completed, b: Completed): boolean {
    if (a.fence < b.fence) return false;
    return this.nodes.some(({ events }) => {
      const of = ({ owner, fence }: Completed) =>
        events.filter((event) => event.owner === owner && event.fence === fence);
      return of(a).some((first) => of(b).some((second) => first.at < second.at));
    });
  }

  #isIdle(actor: Actor): boolean {
    return actor.lines.every(({ pending }) => pending.length === 0);
  }

  #note(actor: Actor): void {
    const { grant } = actor;
    if (grant === undefined || this.#seen.has(grant.owner)) return;
    this.#seen.add(grant.owner);
    const at = this.#steps.next();
    this.completed.push({ owner: grant.owner, fence: Number(grant.fence), at });
  }
}
