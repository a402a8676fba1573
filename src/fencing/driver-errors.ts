import { isObject } from "./guard.ts";

const depthMax = 5;

/**
 * Returns the SQLSTATE of a Postgres error (five characters), which all drivers put in `code`.
 * Searches the causes of the error as well, because query builders wrap the driver's error.
 */
export function sqlState(error: unknown): string | undefined {
  const code = firstInCauses(error, ({ code: found }) => found);
  return typeof code === "string" ? code : undefined;
}

/** Returns the number of a MySQL error, which is the same in every language of the server. */
export function errorNumber(error: unknown): number | undefined {
  const number = firstInCauses(error, ({ errno }) => errno);
  return typeof number === "number" ? number : undefined;
}

function firstInCauses(
  error: unknown,
  read: (error: Record<PropertyKey, unknown>) => unknown,
): unknown {
  let current = error;
  for (let depth = 0; depth < depthMax && isObject(current); depth += 1) {
    const found = read(current);
    if (found !== undefined) return found;
    // `original` is the driver's error in Sequelize.
    current = current["cause"] ?? current["original"];
  }
  return undefined;
}
