import type { ClientEvent, History, Register } from "../history.ts";
import type { Model, Operation } from "./linearizability.ts";

/** Operation on one register behind a fence guard, as a client saw it. */
export type RegisterInput =
  /** Raises the fence of the register, or is refused because that is greater already. */
  | { readonly kind: "claim"; readonly fence: bigint; readonly isAccepted: boolean }
  /** Returns the last write. */
  | { readonly kind: "read"; readonly value: string }
  | {
      readonly kind: "write";
      readonly fence: bigint;
      readonly value: string;
      readonly isAccepted: boolean;
    };

interface RegisterState {
  readonly fence: bigint;
  readonly value: string;
}

/** A register that refuses every claim and write whose fence is smaller than one before. */
export const registerModel: Model<RegisterState, RegisterInput> = {
  initial: { fence: 0n, value: "origin" },
  step(state, input) {
    if (input.kind === "read") return state.value === input.value ? state : undefined;
    if (input.fence >= state.fence !== input.isAccepted) return undefined;
    if (!input.isAccepted) return state;
    return { fence: input.fence, value: input.kind === "write" ? input.value : state.value };
  },
  keyOf: ({ fence, value }) => `${fence} ${value}`,
};

type Access = Extract<ClientEvent, { readonly what: "read" | "write" }>;

/**
 * Returns the operations on the register of `resource`. A claim or a write without a reply may have
 * taken effect at any later time, or never. Returns none for a run that did not record its reads.
 */
export function registerOperations(
  { events }: History,
  register: Register,
  resource: string,
): Operation<RegisterInput>[] {
  const fences = new Map<string, bigint>();
  const accesses = new Map<string, Access[]>();
  for (const event of events) {
    if (!("resource" in event) || event.resource !== resource) continue;
    if (event.what === "granted" && event.fence !== undefined) {
      fences.set(event.lease, BigInt(event.fence));
    }
    if ((event.what !== "read" && event.what !== "write") || event.register !== register) continue;
    const known = accesses.get(event.op);
    if (known === undefined) accesses.set(event.op, [event]);
    else known.push(event);
  }
  const hasReads = [...accesses.values()].flat().some(({ what }) => what === "read");
  if (!hasReads) return [];
  return [...accesses].flatMap(([op, all]) => {
    const fence = fences.get(all[0]?.lease ?? "");
    return fence === undefined ? [] : [...readsOf(op, fence, all), ...writesOf(op, fence, all)];
  });
}

/** Returns the claim before a read, and the read itself. */
function readsOf(op: string, fence: bigint, all: readonly Access[]): Operation<RegisterInput>[] {
  const call = all.find(({ what, phase }) => what === "read" && phase === "call");
  if (call === undefined) return [];
  const done = all.find((event) => event.what === "read" && event.phase === "done");
  const refused = all.find(({ what, phase }) => what === "write" && phase === "refused-claim");
  const end = done ?? refused;
  const common = { fromMs: call.t, toMs: end?.t ?? Infinity, isCertain: end !== undefined };
  const input = { kind: "claim", fence, isAccepted: refused === undefined } as const;
  const claim = { ...common, name: `${op} claims with ${fence}`, input };
  if (done?.what !== "read" || done.value === undefined) return [claim];
  const { value } = done;
  return [claim, { ...common, name: `${op} reads ${value}`, input: { kind: "read", value } }];
}

function writesOf(op: string, fence: bigint, all: readonly Access[]): Operation<RegisterInput>[] {
  const call = all.find(({ what, phase }) => what === "write" && phase === "call");
  if (call === undefined) return [];
  const end = all.find(({ what, phase }) => {
    return what === "write" && (phase === "accepted" || phase === "refused");
  });
  const isAccepted = end?.phase !== "refused";
  return [
    {
      name: `${op} writes with ${fence}${isAccepted ? "" : ", refused"}`,
      fromMs: call.t,
      toMs: end?.t ?? Infinity,
      isCertain: end !== undefined,
      input: { kind: "write", fence, value: op, isAccepted },
    },
  ];
}
