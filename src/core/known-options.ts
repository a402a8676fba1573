import { InvalidOptionError } from "./errors.ts";

/** Names that other libraries use, and what they are called here. */
const otherNames: Readonly<Record<string, string>> = {
  timeout: "wait",
  waitTimeout: "wait",
  acquireTimeout: "wait",
  duration: "ttl",
  expiry: "ttl",
  expires: "ttl",
  lease: "ttl",
  lockTimeout: "ttl",
  refresh: "renew",
  autoRenew: "renew",
  autoExtend: "renew",
  refreshInterval: "renew",
  retries: "retry",
  retryCount: "retry",
  retryDelay: "retry",
  retryInterval: "retry",
  name: "label",
  owner: "label",
  identifier: "label",
  abortSignal: "signal",
  maxDuration: "maxHold",
  maxTime: "maxHold",
  keyPrefix: "prefix",
};

/** Throws InvalidOptionError for an unknown name: a misspelled option would have no effect. */
export function knownOptions(option: string, given: object, names: readonly string[]): void {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new InvalidOptionError(option, "an object of options", given);
  }
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue;
    const expected = `one of the known options (${names.join(", ")})`;
    const meant = meantBy(name, names);
    const guess = meant === undefined ? "" : ` (did you mean ${meant}?)`;
    const message = `there is no option "${name.slice(0, 80)}"${guess}; known: ${names.join(", ")}`;
    throw new InvalidOptionError(name, expected, name, message);
  }
}

function meantBy(name: string, names: readonly string[]): string | undefined {
  // Other libraries name the unit: `ttlMs`, `waitSeconds`.
  const bare = name.replace(/(?:Ms|Millis|Milliseconds|Sec|Seconds)$/, "");
  for (const one of [name, bare]) {
    const other = Object.hasOwn(otherNames, one) ? otherNames[one] : one;
    if (other !== undefined && names.includes(other)) return other;
  }
  const near = names.map((known) => ({ known, edits: editsBetween(name, known) }));
  near.sort((a, b) => a.edits - b.edits);
  const [best] = near;
  return best !== undefined && best.edits <= Math.min(2, best.known.length / 2)
    ? best.known
    : undefined;
}

/** Returns the least number of letters to insert, delete or replace. */
function editsBetween(one: string, other: string): number {
  const [a, b] = [one.slice(0, 40).toLowerCase(), other.toLowerCase()];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
