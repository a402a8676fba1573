import { quarantineMs, type ResolvedStoreOptions } from "../options.ts";
import { hashOf, hexOf } from "./hash.ts";
import { formatOf } from "./layout-format.ts";

/** Which groups there are, as all clients of a deployment must agree. */
export class Layout {
  readonly version: number;
  /** Sorted: the global order in which groups are locked. */
  readonly ids: readonly string[];
  readonly retired: readonly string[];
  /** So long may a lease of this layout live on. */
  readonly holdMs: number;
  readonly #digest: string;

  constructor(terms: {
    readonly version: number;
    readonly ids: readonly string[];
    readonly retired: readonly string[];
    readonly options: ResolvedStoreOptions;
  }) {
    const { version, ids, retired, options } = terms;
    this.version = version;
    this.ids = ids;
    this.retired = retired;
    this.holdMs = quarantineMs(options, options.ttlMaxMs);
    // How many nodes make a quorum and how long a lease may live must be common knowledge too.
    const text = `${ids.join(",")} ${options.nodeCount} ${options.ttlMaxMs}`;
    this.#digest = hexOf(hashOf(text));
  }

  /** What a node of `group` has in its record when the layout is open. */
  open(group: string): string {
    return this.#format("groups", group);
  }

  /** The same while it is closed for everybody. */
  claimed(group: string): string {
    return this.#format("claim", group);
  }

  /** Groups of an earlier layout that nobody has spoken for. */
  missing(earlier: readonly string[]): readonly string[] {
    const known = new Set([...this.ids, ...this.retired]);
    return [...new Set(earlier)].filter((id) => !known.has(id)).sort();
  }

  /** Whether `format` is that of another group of this very layout. */
  isMixedUp(format: string, group: string): boolean {
    return this.ids.some((id) => id !== group && this.open(id) === format);
  }

  #format(state: "groups" | "claim", group: string): string {
    return formatOf({ state, version: this.version, digest: this.#digest, group });
  }
}
