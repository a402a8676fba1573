import { isObject } from "./guard.ts";

/**
 * Library that is no driver. Its objects have methods that a guard would take for those of a
 * driver.
 */
interface QueryBuilder {
  readonly library: string;
  /** Methods by which objects of the library are recognised. */
  readonly methods: readonly string[];
  readonly recipe: string;
}

const queryBuilders: readonly QueryBuilder[] = [
  {
    library: "Knex",
    methods: ["raw", "queryBuilder"],
    recipe: "call withGuard with the driver's pool and end builders with .connection(tx)",
  },
  {
    library: "Sequelize",
    methods: ["query", "getQueryInterface"],
    recipe: "pass transaction.connection",
  },
  {
    library: "Kysely",
    methods: ["selectFrom", "executeQuery"],
    recipe: "pass (sql, params) => trx.executeQuery(CompiledQuery.raw(sql, params))",
  },
  {
    library: "Drizzle",
    methods: ["select", "insert", "execute"],
    recipe: "call withGuard with the driver's pool and write through drizzle(tx)",
  },
];

/**
 * Returns a recipe for an error message if `db` comes from one of these libraries, otherwise an
 * empty text.
 */
export function recipeFor(db: unknown): string {
  if (!isObject(db) && typeof db !== "function") return "";
  const given = db as unknown as Record<string, unknown>;
  const found = queryBuilders.find(({ methods }) =>
    methods.every((method) => typeof given[method] === "function"),
  );
  if (found === undefined) return "";
  return `. This is ${found.library}: ${found.recipe} (docs/guides/query-builders.md)`;
}
