import {
  type AcquireTimeoutError,
  type ErrorCode,
  type HoldfastError,
  type InvalidOptionError,
  isHoldfastError,
  type LeaseLostError,
} from "../../core/errors.ts";

/** Assertions for the cases. They use no test runner, so the cases run under any. */

interface ErrorByCode {
  readonly ACQUIRE_TIMEOUT: AcquireTimeoutError;
  readonly INVALID_OPTION: InvalidOptionError;
  readonly LEASE_LOST: LeaseLostError;
}

type ErrorOf<Code extends ErrorCode> = Code extends keyof ErrorByCode
  ? ErrorByCode[Code]
  : HoldfastError;

export function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

export function same(actual: unknown, expected: unknown, what: string): void {
  if (Object.is(actual, expected)) return;
  throw new Error(`${what}: expected ${show(expected)}, got ${show(actual)}`);
}

export function present<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw new Error(`${what}: expected something, got undefined`);
  return value;
}

export function sameList(
  actual: readonly unknown[],
  expected: readonly unknown[],
  what: string,
): void {
  const alike = actual.length === expected.length;
  if (alike && actual.every((value, index) => Object.is(value, expected[index]))) return;
  throw new Error(`${what}: expected ${show(expected)}, got ${show(actual)}`);
}

/** Returns the value with which `call` rejects. Throws if the call does not reject. */
export async function rejection(call: PromiseLike<unknown>, what: string): Promise<unknown> {
  let result: unknown;
  try {
    result = await call;
  } catch (error) {
    return error;
  }
  throw new Error(`${what}: expected a rejection, got ${show(result)}`);
}

/** Returns the Holdfast error with which `call` rejects. Throws if its code is not `code`. */
export async function refusal<Code extends ErrorCode>(
  call: PromiseLike<unknown>,
  code: Code,
  what: string,
): Promise<ErrorOf<Code>> {
  return coded(await rejection(call, what), code, what);
}

export function thrown(act: () => unknown, what: string): unknown {
  let result: unknown;
  try {
    result = act();
  } catch (error) {
    return error;
  }
  throw new Error(`${what}: expected an exception, got ${show(result)}`);
}

export function coded<Code extends ErrorCode>(
  error: unknown,
  code: Code,
  what: string,
): ErrorOf<Code> {
  if (isHoldfastError(error, code)) return error as ErrorOf<Code>;
  throw new Error(`${what}: expected an error of code ${code}, got ${show(error)}`, {
    cause: error,
  });
}

function show(value: unknown): string {
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "string") return JSON.stringify(value.slice(0, 200));
  if (Array.isArray(value)) return `[${value.map(show).join(", ")}]`;
  return typeof value === "object" && value !== null ? "an object" : String(value);
}
