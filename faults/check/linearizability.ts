/**
 * Decides if a history of concurrent operations is linearizable.
 *
 * Problem: rules about pairs of operations miss faults that only three or more of them show: each
 * pair could be put in order, but all together cannot.
 *
 * Idea: an operation took effect at one moment between its start and its end. The check searches for
 * an order of these moments in which the model of the object allows every operation, as Wing and
 * Gong describe it, and leaves out what it has already tried: the same operations in effect with the
 * same state (Lowe). Operations of different objects do not influence each other, so that each
 * object is checked alone.
 *
 * Limits: the search is exponential in the number of operations that are open at one time. After
 * `stepsMax` steps it gives up, which the caller has to report: a history that was not decided has
 * not passed.
 */

/** One operation, as its caller saw it. */
export interface Operation<Input> {
  readonly name: string;
  readonly fromMs: number;
  /** End of the operation; Infinity if it may take effect at any later time. */
  readonly toMs: number;
  /** False if the operation may also have had no effect, because its reply is missing. */
  readonly isCertain: boolean;
  readonly input: Input;
}

/** Sequential behaviour of an object. */
export interface Model<State, Input> {
  readonly initial: State;
  /** Returns the state after the operation; undefined if the object would not reply like this. */
  step(state: State, input: Input): State | undefined;
  /** Returns a text that is equal for equal states. */
  keyOf(state: State): string;
}

export type Verdict =
  | { readonly kind: "linearizable" }
  /** No order exists. `stuck` could not be put in order, after any order of those before it. */
  | { readonly kind: "violation"; readonly stuck: string; readonly before: readonly string[] }
  | { readonly kind: "undecided"; readonly steps: number };

/** Limit of steps. A history without many open operations needs about one step per operation. */
const stepsMaxDefault = 2_000_000;

/** Node of the list of starts and ends that are not in effect yet, in order of time. */
interface Entry {
  readonly place: number;
  readonly isStart: boolean;
  before: Entry | undefined;
  after: Entry | undefined;
}

export function linearize<State, Input>(
  model: Model<State, Input>,
  operations: readonly Operation<Input>[],
  stepsMax = stepsMaxDefault,
): Verdict {
  const search = new Search(model, operations);
  return search.run(stepsMax);
}

class Search<State, Input> {
  readonly #model: Model<State, Input>;
  readonly #operations: readonly Operation<Input>[];
  readonly #head: Entry = { place: -1, isStart: false, before: undefined, after: undefined };
  readonly #ends: (Entry | undefined)[] = [];
  readonly #tried = new Set<string>();
  /** Operations in effect, in their order, each with the state before it. */
  readonly #order: { readonly entry: Entry; readonly before: State }[] = [];
  readonly #inEffect: InEffect;
  #missing: number;
  /** End that the longest order so far could not pass, and that order. */
  #stuck: { readonly place: number; readonly before: readonly number[] } | undefined;

  constructor(model: Model<State, Input>, operations: readonly Operation<Input>[]) {
    this.#model = model;
    this.#operations = operations;
    this.#missing = operations.filter(({ isCertain }) => isCertain).length;
    this.#inEffect = new InEffect(operations.length);
    this.#link();
  }

  run(stepsMax: number): Verdict {
    let state = this.#model.initial;
    let entry = this.#head.after;
    for (let steps = 0; this.#missing > 0; steps += 1) {
      if (steps >= stepsMax) return { kind: "undecided", steps };
      if (entry?.isStart === true) {
        const next = this.#next(entry.place, state);
        if (next === undefined) {
          entry = entry.after;
          continue;
        }
        this.#takeEffect(entry, state);
        state = next;
        entry = this.#head.after;
        continue;
      }
      // An operation ended that is not in effect yet: the order so far is wrong.
      this.#noteStuck(entry);
      const last = this.#order.pop();
      if (last === undefined) return this.#violation();
      this.#undo(last.entry);
      state = last.before;
      entry = last.entry.after;
    }
    return { kind: "linearizable" };
  }

  /** Returns the state after the operation; undefined if it is impossible here, or was tried. */
  #next(place: number, state: State): State | undefined {
    const operation = this.#operations[place];
    const next = operation && this.#model.step(state, operation.input);
    if (next === undefined) return undefined;
    const key = `${this.#inEffect.keyWith(place)} ${this.#model.keyOf(next)}`;
    if (this.#tried.has(key)) return undefined;
    this.#tried.add(key);
    return next;
  }

  #takeEffect(entry: Entry, before: State): void {
    this.#order.push({ entry, before });
    this.#inEffect.toggle(entry.place);
    if (this.#operations[entry.place]?.isCertain === true) this.#missing -= 1;
    remove(entry);
    const end = this.#ends[entry.place];
    if (end !== undefined) remove(end);
  }

  #undo(entry: Entry): void {
    const end = this.#ends[entry.place];
    if (end !== undefined) putBack(end);
    putBack(entry);
    this.#inEffect.toggle(entry.place);
    if (this.#operations[entry.place]?.isCertain === true) this.#missing += 1;
  }

  #noteStuck(entry: Entry | undefined): void {
    if (entry === undefined) return;
    if (this.#stuck !== undefined && this.#stuck.before.length >= this.#order.length) return;
    const before = this.#order.map((each) => each.entry.place);
    this.#stuck = { place: entry.place, before };
  }

  #violation(): Verdict {
    const { place = -1, before = [] } = this.#stuck ?? {};
    const nameOf = (at: number): string => this.#operations[at]?.name ?? "?";
    return { kind: "violation", stuck: nameOf(place), before: before.map(nameOf) };
  }

  /** Makes the list. At one moment, starts come before ends: the operations then overlap. */
  #link(): void {
    const entries = this.#operations.flatMap(({ fromMs, toMs, isCertain }, place) => {
      const both = { place, before: undefined, after: undefined };
      const start = { atMs: fromMs, entry: { ...both, isStart: true } };
      const end = { atMs: toMs, entry: { ...both, isStart: false } };
      // An operation that may have had no effect has no end that the search must not pass.
      return isCertain ? [start, end] : [start];
    });
    entries.sort((a, b) => a.atMs - b.atMs || Number(b.entry.isStart) - Number(a.entry.isStart));
    let last = this.#head;
    for (const { entry } of entries) {
      const linked: Entry = entry;
      linked.before = last;
      last.after = linked;
      last = linked;
      if (!linked.isStart) this.#ends[linked.place] = linked;
    }
  }
}

function remove(entry: Entry): void {
  if (entry.before !== undefined) entry.before.after = entry.after;
  if (entry.after !== undefined) entry.after.before = entry.before;
}

function putBack(entry: Entry): void {
  if (entry.before !== undefined) entry.before.after = entry;
  if (entry.after !== undefined) entry.after.before = entry;
}

/**
 * Set of the operations in effect, with a key that changes with each of them. The key is exact: the
 * length of the gapless beginning, and the places after it.
 */
class InEffect {
  readonly #has: Uint8Array;
  /** Every place below this one is in the set. */
  #gapless = 0;
  readonly #beyond = new Set<number>();

  constructor(size: number) {
    this.#has = new Uint8Array(size);
  }

  toggle(place: number): void {
    const isNew = this.#has[place] === 0;
    this.#has[place] = isNew ? 1 : 0;
    if (!isNew && place < this.#gapless) {
      for (let at = place + 1; at < this.#gapless; at += 1) this.#beyond.add(at);
      this.#gapless = place;
      return;
    }
    if (isNew) this.#beyond.add(place);
    else this.#beyond.delete(place);
    while (this.#beyond.delete(this.#gapless)) this.#gapless += 1;
  }

  /** Returns the key of the set with one more place. */
  keyWith(place: number): string {
    const beyond = [...this.#beyond, place].sort((a, b) => a - b);
    return `${this.#gapless} ${beyond.join(" ")}`;
  }
}
