import { describe, expect, test } from "vitest";
import { linearize, type Model, type Operation } from "../../faults/check/linearizability.ts";
import { registerModel, type RegisterInput } from "../../faults/check/register-model.ts";
import { SeededRandom } from "../../src/simulator/seeded-random.ts";

type Input = { readonly write: number } | { readonly read: number };

/** A register that holds a number, 0 at first. */
const register: Model<number, Input> = {
  initial: 0,
  step(state, input) {
    if ("write" in input) return input.write;
    return input.read === state ? state : undefined;
  },
  keyOf: String,
};

function operation(fromMs: number, toMs: number, input: Input, isCertain = true): Operation<Input> {
  return { name: JSON.stringify(input), fromMs, toMs, isCertain, input };
}

describe("a history is linearizable if", () => {
  test("it is empty", () => {
    expect(linearize(register, []).kind).toBe("linearizable");
  });

  test("two reads that overlap a write see it in either order", () => {
    const write = operation(0, 10, { write: 1 });
    const reads = [operation(1, 3, { read: 0 }), operation(4, 6, { read: 1 })];
    expect(linearize(register, [write, ...reads]).kind).toBe("linearizable");
  });

  test("a write without a reply took effect late, or never", () => {
    const write = operation(0, Infinity, { write: 1 }, false);
    const early = operation(1, 2, { read: 0 });
    const late = operation(50, 60, { read: 1 });
    expect(linearize(register, [write, early]).kind).toBe("linearizable");
    expect(linearize(register, [write, early, late]).kind).toBe("linearizable");
  });
});

describe("a history is not linearizable if", () => {
  test("a later read returns the older value", () => {
    const write = operation(0, 10, { write: 1 });
    const reads = [operation(1, 3, { read: 1 }), operation(4, 6, { read: 0 })];
    expect(linearize(register, [write, ...reads])).toEqual({
      kind: "violation",
      stuck: '{"read":0}',
      before: ['{"write":1}', '{"read":1}'],
    });
  });

  test("a value comes back that was overwritten, seen by three readers only together", () => {
    const writes = [operation(0, 20, { write: 1 }), operation(0, 20, { write: 2 })];
    const reads = [1, 2, 1].map((value, at) => operation(1 + at * 4, 3 + at * 4, { read: value }));
    expect(linearize(register, [...writes, ...reads]).kind).toBe("violation");
    for (const left of reads) {
      const two = reads.filter((read) => read !== left);
      expect(linearize(register, [...writes, ...two]).kind).toBe("linearizable");
    }
  });
});

test("a search that reaches its limit is reported as undecided", () => {
  const writes = Array.from({ length: 12 }, (_, at) => operation(0, 100, { write: at + 1 }));
  const impossible = operation(50, 60, { read: 99 });
  expect(linearize(register, [...writes, impossible], 200)).toEqual({
    kind: "undecided",
    steps: 200,
  });
});

test("the verdict is that of trying every order, on random histories", () => {
  const verdicts = new Set<string>();
  for (let seed = 1; seed <= 400; seed += 1) {
    const operations = randomHistory(new SeededRandom(String(seed)));
    const expected = hasOrder(register, operations) ? "linearizable" : "violation";
    expect(linearize(register, operations).kind, `seed ${seed}`).toBe(expected);
    verdicts.add(expected);
  }
  expect([...verdicts].toSorted()).toEqual(["linearizable", "violation"]);
});

test("a guarded register accepts exactly the fences that are not smaller than one before", () => {
  const claim = (fence: bigint, isAccepted: boolean): RegisterInput => {
    return { kind: "claim", fence, isAccepted };
  };
  const at = (inputs: readonly RegisterInput[]) =>
    linearize(
      registerModel,
      inputs.map((input, index) => {
        return { name: input.kind, fromMs: index * 2, toMs: index * 2 + 1, isCertain: true, input };
      }),
    ).kind;
  expect(at([claim(2n, true), claim(2n, true), claim(1n, false)])).toBe("linearizable");
  expect(at([claim(2n, true), claim(1n, true)])).toBe("violation");
  expect(at([claim(1n, true), claim(2n, false)])).toBe("violation");
});

test("a long history with few open operations is decided in about one step each", () => {
  const operations = Array.from({ length: 20_000 }, (_, at) =>
    at % 2 === 0
      ? operation(at * 2, at * 2 + 3, { write: at })
      : operation(at * 2 + 1.5, at * 2 + 1.9, { read: at - 1 }),
  );
  expect(linearize(register, operations, 100_000).kind).toBe("linearizable");
});

function randomHistory(random: SeededRandom): Operation<Input>[] {
  const pick = (below: number): number => Math.floor(random.fraction() * below);
  return Array.from({ length: 2 + pick(5) }, () => {
    const fromMs = pick(12);
    const isCertain = pick(5) > 0;
    const toMs = isCertain ? fromMs + 1 + pick(8) : Infinity;
    const value = pick(3);
    return operation(fromMs, toMs, pick(2) === 0 ? { write: value } : { read: value }, isCertain);
  });
}

/** Tries every order of every set of operations that has all certain ones. */
function hasOrder<State>(
  model: Model<State, Input>,
  left: readonly Operation<Input>[],
  state: State = model.initial,
): boolean {
  if (left.every(({ isCertain }) => !isCertain)) return true;
  return left.some((next) => {
    const others = left.filter((each) => each !== next);
    if (others.some(({ toMs }) => toMs < next.fromMs)) return false;
    const after = model.step(state, next.input);
    return after !== undefined && hasOrder(model, others, after);
  });
}
