import { InvalidOptionError } from "../core/errors.ts";
import { isObject } from "./guard.ts";

// The symbol is registered, so that an expression of another copy of the package is recognised.
const brand: unique symbol = Symbol.for("holdfast.sql.expression") as never;

/** SQL for a value in `set`, with its parameters. `expression` creates it. */
export interface SqlExpression {
  readonly [brand]: true;
  /** Pieces of SQL text. One parameter belongs between each two neighbouring pieces. */
  readonly texts: readonly string[];
  readonly values: readonly unknown[];
}

/**
 * Template tag for a value in `set` that the server computes: `` expression`total + ${10}` ``. The
 * text is SQL and is sent as it is; what stands in `${…}` becomes a parameter, never SQL.
 */
export function expression(
  texts: TemplateStringsArray,
  ...values: readonly unknown[]
): SqlExpression {
  if (!Array.isArray(texts) || texts.every((text) => text.trim() === "")) {
    throw new InvalidOptionError("expression", "a template with SQL: expression`…`", texts);
  }
  const isMissing = (value: unknown): boolean => value === undefined || typeof value === "function";
  if (values.some(isMissing)) {
    throw new InvalidOptionError("expression", "given values or null as parameters", undefined);
  }
  return { [brand]: true, texts: [...texts], values };
}

export function isExpression(value: unknown): value is SqlExpression {
  return isObject(value) && value[brand] === true;
}

/** Returns the SQL, with the text that `placeholder` returns for each parameter. */
export function renderExpression(
  { texts, values }: SqlExpression,
  placeholder: (value: unknown) => string,
): string {
  const parts = texts.map((text, index) =>
    index < values.length ? text + placeholder(values[index]) : text,
  );
  return `(${parts.join("")})`;
}
