import type { RedisConnection } from "../../clients/contract.ts";
import type { RedisClient } from "../../clients/redis-client.ts";
import { InvalidOptionError } from "../../core/errors.ts";
import { connectionAt } from "./node/given-client.ts";
import { resolveStoreOptions, type RedisStoreOptions } from "./options.ts";
import type { StoreSettings } from "./protocol/store-settings.ts";

type Refused = "fencing" | "crossSlot" | "replicas";

/**
 * Options of `redlockGroups`: those of each group (an independent quorum; the groups share the
 * resources), and those of the layout, which is the set of groups that all clients use.
 */
export interface GroupsOptions extends Omit<RedisStoreOptions, Refused> {
  /**
   * Version of the layout, which is the set of groups that all clients use. To change the groups,
   * their ids, their number of nodes or `maxTtl`, give all clients a greater version. Nodes then
   * refuse clients of the older layout. They grant for the new layout as soon as every lease of the
   * older one must be over. A quorum without groups counts as version 1.
   * @default 1
   */
  readonly layout?: number;
  /**
   * Name of each group: 1 to 40 letters, digits, dots, dashes or underscores. The name decides
   * which resources belong to the group, so a group keeps its name if its position changes.
   * @default "1", "2", … by position
   */
  readonly ids?: readonly string[];
  /**
   * Clients of the groups that only the previous layout has, by group id. Those groups are closed
   * before this layout grants. `[]` states that the servers of the group are gone for good.
   * @default none
   */
  readonly retired?: Readonly<Record<string, readonly RedisClient[]>>;
}

export interface GivenGroup {
  readonly id: string;
  readonly connections: readonly RedisConnection[];
}

export interface ResolvedGroups {
  readonly version: number;
  /** Groups of the layout, sorted by id. */
  readonly groups: readonly GivenGroup[];
  readonly retired: readonly GivenGroup[];
  readonly options: StoreSettings;
}

const groupsMax = 64;
const nodesMax = 31;
const versionMax = 1_000_000_000;

export function resolveGroups(given: unknown, options: GroupsOptions): ResolvedGroups {
  if (!Array.isArray(given) || given.length === 0 || given.length > groupsMax) {
    throw new InvalidOptionError("groups", `1 to ${groupsMax} lists of Redis clients`, given);
  }
  const { layout = 1, ids: names, retired: leaving, ...rest } = checkedObject(options);
  const ids = checkedIds(names ?? given.map((_, index) => String(index + 1)), given.length);
  const groups = ids.map((id, index): GivenGroup => {
    return { id, connections: connectionsAt(`groups[${index}]`, given[index]) };
  });
  const retired = Object.entries(leaving ?? {}).map(([id, clients]): GivenGroup => {
    return { id, connections: connectionsAt(`retired.${id}`, clients) };
  });
  checkedIds([...ids, ...retired.map(({ id }) => id)], ids.length + retired.length);
  const first = groups[0]?.connections.length ?? 0;
  if (groups.some(({ connections }) => connections.length !== first || first === 0)) {
    const sizes = groups.map(({ connections }) => connections.length).join(", ");
    throw new InvalidOptionError("groups", "lists of the same length, at least 1", sizes);
  }
  const clients = [...given.flat(), ...Object.values(leaving ?? {}).flat()];
  if (new Set(clients).size < clients.length) {
    throw new InvalidOptionError("groups", "different clients", "the same client twice");
  }
  return {
    version: checkedVersion(layout),
    groups: groups.sort((a, b) => (a.id < b.id ? -1 : 1)),
    retired,
    options: resolveStoreOptions(rest, first),
  };
}

/**
 * Throws for options that groups do not support. Groups always use fences, because their layout is
 * stored in the node record, which only scripts with fences read.
 */
function checkedObject(options: GroupsOptions): GroupsOptions {
  if (typeof options !== "object" || options === null) {
    throw new InvalidOptionError("options", "an object of options", options);
  }
  const refused = { fencing: "fence", crossSlot: "fence", replicas: "vote without replicas" };
  for (const [name, always] of Object.entries(refused)) {
    if (name in options) {
      const expected = `left out: groups always ${always}`;
      throw new InvalidOptionError(name, expected, Reflect.get(options, name));
    }
  }
  return options;
}

function connectionsAt(option: string, clients: unknown): RedisConnection[] {
  if (!Array.isArray(clients) || clients.length > nodesMax) {
    throw new InvalidOptionError(option, `a list of at most ${nodesMax} Redis clients`, clients);
  }
  return clients.map((client, index) => {
    const connection = connectionAt(`${option}[${index}]`, client);
    if (connection.topology === "standalone") return connection;
    throw new InvalidOptionError(`${option}[${index}]`, "a client of one server", "a Cluster");
  });
}

function checkedIds(ids: readonly unknown[], count: number): readonly string[] {
  const checked = Array.isArray(ids)
    ? ids.filter((id): id is string => typeof id === "string" && /^[\w.-]{1,40}$/.test(id))
    : [];
  if (checked.length !== count || new Set(checked).size !== count) {
    const expected = "a different name of 1 to 40 letters, digits, dots or dashes for each group";
    throw new InvalidOptionError("ids", expected, Array.isArray(ids) ? ids.join(", ") : ids);
  }
  return checked;
}

function checkedVersion(layout: unknown): number {
  if (typeof layout === "number" && Number.isInteger(layout)) {
    if (layout >= 1 && layout <= versionMax) return layout;
  }
  throw new InvalidOptionError("layout", `a whole number from 1 to ${versionMax}`, layout);
}
