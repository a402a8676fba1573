import { hashOf, hexOf } from "./hash.ts";
import { formatOf } from "../commands/layout-format.ts";
import { quarantineMs, type StoreSettings } from "../protocol/store-settings.ts";

/**
 * Set of groups (independent quorums that share the resources). All clients must use the same set.
 */
export class Layout {
  readonly version: number;
  /** Ids of the groups, sorted: all clients lock groups in this order. */
  readonly ids: readonly string[];
  readonly retired: readonly string[];
  /** Longest time for which a lease of this layout may last. */
  readonly holdMs: number;
  readonly #digest: string;

  constructor(terms: {
    readonly version: number;
    readonly ids: readonly string[];
    readonly retired: readonly string[];
    readonly options: StoreSettings;
  }) {
    const { version, ids, retired, options } = terms;
    this.version = version;
    this.ids = ids;
    this.retired = retired;
    this.holdMs = quarantineMs(options, options.ttlMaxMs);
    // The digest also covers the number of nodes and the longest TTL: all clients must agree on
    // them.
    const text = `${ids.join(",")} ${options.nodeCount} ${options.ttlMaxMs}`;
    this.#digest = hexOf(hashOf(text));
  }

  /**
   * Returns the format in the record of a node of `group` while the node grants for this layout.
   */
  open(group: string): string {
    return this.#format("groups", group);
  }

  /**
   * Returns the format in the record of a node of `group` while the node is claimed: it grants for
   * no client until this layout opens.
   */
  claimed(group: string): string {
    return this.#format("claim", group);
  }

  /** Returns the groups of an earlier layout that this layout neither contains nor retires. */
  missing(earlier: readonly string[]): readonly string[] {
    const known = new Set([...this.ids, ...this.retired]);
    return [...new Set(earlier)].filter((id) => !known.has(id)).sort();
  }

  /**
   * True if a node that was given for `group` has the format of another group of this layout: the
   * groups of this client are mixed up.
   */
  isMixedUp(format: string, group: string): boolean {
    return this.ids.some((id) => id !== group && this.open(id) === format);
  }

  #format(state: "groups" | "claim", group: string): string {
    return formatOf({ state, version: this.version, digest: this.#digest, group });
  }
}
