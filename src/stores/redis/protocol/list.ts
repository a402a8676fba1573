import { QuorumError, StoreError, UnsupportedError, type Vote } from "../../../core/errors.ts";
import type { Inspection } from "../../../core/store.ts";
import { holderOf } from "../commands/decode.ts";
import { unexpected } from "../commands/refusals.ts";
import { findLocks } from "../scripts/generated.ts";
import { inspect } from "./inspect.ts";
import type { Quorum } from "./quorum.ts";
import { nodeTimeoutMs } from "./store-settings.ts";

/**
 * Number of keys per SCAN. Such a SCAN takes well below a millisecond, during which the server runs
 * nothing else.
 */
const pageKeys = 500;
/** Limit of SCANs per node: together they cover ten million keys, which takes minutes. */
const pagesMax = 20_000;
const looksAtOnce = 64;
const ordinaryTtlMs = 10_000;

/**
 * Lists every lock that is on any node, each inspected on all nodes. SCAN returns every key that
 * exists during the whole scan. Skips values that Holdfast did not write: a foreign client's lock
 * looks like any other key.
 */
export async function list(quorum: Quorum): Promise<readonly Inspection[]> {
  const { nodes, size } = quorum;
  if (nodes.some(({ connection }) => connection.topology === "cluster")) {
    throw new UnsupportedError(
      "the locks of a Cluster cannot be listed: SCAN sees one of its servers only, and a client " +
        "routes by key. Inspect resources by name, or list each server through a client of its own",
    );
  }
  const scans = await Promise.all(nodes.map((_node, index) => scanned(quorum, index)));
  const seen = scans.filter((scan) => scan.keys !== undefined);
  if (seen.length < size) {
    const votes = scans.map(({ vote }) => vote);
    const cause = votes.find((vote) => vote.cause !== undefined)?.cause;
    throw new QuorumError("list", [], votes, { quorum: size, cause });
  }
  const { prefix } = quorum.options;
  const keys = [...new Set(seen.flatMap((scan) => scan.keys ?? []))];
  const found: Inspection[] = [];
  for (let first = 0; first < keys.length; first += looksAtOnce) {
    const looks = keys
      .slice(first, first + looksAtOnce)
      .map((key) => inspect(quorum, key.slice(prefix.length), key));
    found.push(...(await Promise.all(looks)));
  }
  return found.filter(({ state, foreign }) => state !== "free" && foreign !== true);
}

interface Scan {
  readonly keys: readonly string[] | undefined;
  readonly vote: Vote;
}

async function scanned(quorum: Quorum, index: number): Promise<Scan> {
  const node = quorum.nodes[index]?.name ?? "";
  const startedMs = quorum.clock.monotonicMs();
  try {
    const keys = await scan(quorum, index);
    const ms = quorum.clock.monotonicMs() - startedMs;
    return { keys, vote: { node, vote: "granted", ms } };
  } catch (cause) {
    const ms = quorum.clock.monotonicMs() - startedMs;
    return { keys: undefined, vote: { node, vote: "failed", ms, cause } };
  }
}

async function scan(quorum: Quorum, index: number): Promise<readonly string[]> {
  const { prefix } = quorum.options;
  // The user's client may add its own prefix to keys, but not to the pattern of SCAN. A script that
  // returns its key shows that prefix.
  const whole = textOf(
    await sendTo(quorum, index, ["EVAL", "return KEYS[1]", "1", prefix], prefix),
  );
  const own = whole.slice(0, whole.length - prefix.length);
  const match = whole.replaceAll(/[\\*?[\]]/g, "\\$&") + "*";
  const found = new Set<string>();
  let cursor = "0";
  for (let page = 0; page < pagesMax; page += 1) {
    const rest = ["MATCH", match, "COUNT", String(pageKeys), "TYPE", "string"];
    const reply = await sendTo(quorum, index, ["SCAN", cursor, ...rest], "");
    const [next, keys] = reply as [unknown, unknown];
    const names = textsOf(keys)
      .map((key) => key.slice(own.length))
      .filter((key) => !key.startsWith("holdfast:"));
    for (const key of await locksAmong(quorum, index, names)) found.add(key);
    cursor = String(next);
    if (cursor === "0") return [...found];
  }
  throw new StoreError(`this node has more than ${pagesMax * pageKeys} keys: too many to list`);
}

async function locksAmong(
  quorum: Quorum,
  index: number,
  names: readonly string[],
): Promise<readonly string[]> {
  const [first] = names;
  if (first === undefined) return [];
  const command = ["EVAL", findLocks.source, String(names.length), ...names];
  const values = textsOf(await sendTo(quorum, index, command, first));
  return names.filter((_name, place) => {
    return holderOf(values[place] ?? "", undefined).foreign !== true;
  });
}

/**
 * Sends through the connection and not through `RedisNode.run`: the node reads the server's time
 * from replies, and a value of another application could look like a time.
 */
function sendTo(
  quorum: Quorum,
  index: number,
  command: readonly string[],
  key: string,
): Promise<unknown> {
  const { nodes, scheduler, options } = quorum;
  const timeoutMs = nodeTimeoutMs(options, ordinaryTtlMs);
  return new Promise((resolve, reject) => {
    const timer = scheduler.at(scheduler.clock.monotonicMs() + timeoutMs, true, () => {
      reject(new Error(`no answer within ${Math.round(timeoutMs)} ms`));
    });
    const connection = nodes[index]?.connection;
    const connecting = connection?.firstConnect?.() ?? Promise.resolve();
    connecting
      .then(() => connection?.send(key, command))
      .then(resolve, reject)
      .finally(() => scheduler.cancel(timer));
  });
}

function textOf(reply: unknown): string {
  if (typeof reply === "string") return reply;
  throw unexpected(reply);
}

function textsOf(reply: unknown): readonly string[] {
  if (Array.isArray(reply)) return reply.map(textOf);
  throw unexpected(reply);
}
