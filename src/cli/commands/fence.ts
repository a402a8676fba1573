import { resolve } from "node:path";
import { Failure } from "../failure.ts";
import type { Verdict } from "../fence/fence-file.ts";
import type { AddCommand, Session } from "../session.ts";
import { parseStoreAddress } from "../store-address.ts";

const examples = `
Examples:
  holdfast fence check --file /srv/report.fence --create    the first time
  holdfast fence check --file /srv/report.fence "$HOLDFAST_FENCE" && mv new.csv /srv/report.csv
  holdfast fence check --redis redis://localhost --key guard:report || exit

Inside exec the fence may be left out: it is in HOLDFAST_FENCE. A fence that is not smaller than
the greatest seen passes and is kept (exit code 0); a smaller one is stale (79). The check and your
write are still two steps: keep them close together, or let the place of writing check the fence.`;

const lowerExamples = `
Examples:
  holdfast exec report -- holdfast fence lower --file /srv/report.fence

After a fence that is more than a day ahead of the clock was kept, every holder is refused. This
replaces it by the fence of the lease that you hold now. Other fences stay, so that earlier holders
stay refused.`;

interface CheckFlags {
  readonly file?: string;
  readonly redis?: string;
  readonly key?: string;
  readonly create?: boolean;
}

export const addFence: AddCommand = (program, host) => {
  const fence = program
    .command("fence")
    .summary("refuse stale writers in shell scripts")
    .description("Refuse stale writers in shell scripts.");
  fence
    .command("check")
    .summary("does this fence still count?")
    .description(
      "Pass if no greater fence was seen, and keep this one; fail with 79 if it is stale.",
    )
    .argument("[fence]", "the fence of the lock (default: HOLDFAST_FENCE)")
    .option("--file <path>", "keep the greatest fence in this file")
    .option("--create", "with --file: begin to keep fences there, if none was kept before")
    .option("--redis <url>", "keep it in Redis, under --key")
    .option("--key <name>", "the key in Redis; the same for all writers of one thing")
    .addHelpText("after", examples)
    .action(
      host.act(
        (session, given: string | undefined, flags: CheckFlags) =>
          check(session, given ?? process.env["HOLDFAST_FENCE"], flags),
        { keepsExitCode: true },
      ),
    );
  fence
    .command("lower")
    .summary("replace a kept fence that is far ahead of the clock")
    .description("Replace a kept fence that is far ahead of the clock: it refuses every holder.")
    .argument("[fence]", "the fence of a lock that you hold (default: HOLDFAST_FENCE)")
    .requiredOption("--file <path>", "where the fence is kept")
    .addHelpText("after", lowerExamples)
    .action(
      host.act((session, given: string | undefined, { file }: { file: string }) =>
        lower(session, given ?? process.env["HOLDFAST_FENCE"], file),
      ),
    );
};

async function check(
  { output }: Session,
  given: string | undefined,
  flags: CheckFlags,
): Promise<"ok" | "stale"> {
  const fence = await fenceOf(given);
  const { file, redis, key, create = false } = flags;
  if ((file === undefined) === (redis === undefined)) {
    throw new Failure("misuse", "fence check needs --file PATH, or --redis URL with --key NAME");
  }
  const verdict =
    file === undefined ? await inRedis(redis, key, fence) : await inFile(file, fence, create);
  if (output.json) output.document(verdict);
  if (verdict.accepted) return "ok";
  const isAhead = verdict.seen > (await greatestPlausible());
  const remedy = isAhead ? ", far ahead of the clock; see holdfast fence lower --help" : "";
  if (!output.json) output.note(`fence ${fence} is stale: ${verdict.seen} was seen${remedy}`);
  return "stale";
}

async function lower({ output }: Session, given: string | undefined, file: string): Promise<"ok"> {
  const fence = await fenceOf(given);
  const { lowerFenceFile } = await import("../fence/fence-file.ts");
  const removed = lowerFenceFile(resolve(file), fence, await greatestPlausible());
  if (output.json) output.document({ removed });
  else if (removed.length === 0) output.line("no kept fence is far ahead of the clock");
  else output.line(`removed ${removed.join(", ")}; kept ${fence}`);
  return "ok";
}

async function fenceOf(given: string | undefined): Promise<bigint> {
  if (given === undefined || given === "") {
    throw new Failure("misuse", "this needs a fence, as argument or in HOLDFAST_FENCE");
  }
  if (!/^[1-9]\d{0,18}$/.test(given) || BigInt(given) >= 2n ** 63n) {
    throw new Failure("misuse", `expected the fence to be a number above 0, got "${given}"`);
  }
  if (BigInt(given) <= (await greatestPlausible())) return BigInt(given);
  // If this fence were stored, it would refuse every later holder.
  const what = `fence ${given} is more than a day ahead of this machine's clock`;
  throw new Failure("misuse", `${what}: no lease has such a fence, unless a clock is wrong`);
}

/** Returns the greatest fence that a lease can have now, in microseconds since 1970. */
async function greatestPlausible(): Promise<bigint> {
  const { greatestPlausible: greatest } = await import("../../fencing/plausible-fence.ts");
  return greatest(undefined) ?? 2n ** 63n - 1n;
}

async function inFile(path: string, fence: bigint, create: boolean): Promise<Verdict> {
  const { checkFenceFile } = await import("../fence/fence-file.ts");
  return checkFenceFile(resolve(path), fence, create);
}

async function inRedis(
  url: string | undefined,
  key: string | undefined,
  fence: bigint,
): Promise<Verdict> {
  if (key === undefined || key === "") {
    throw new Failure("misuse", "fence check --redis needs --key NAME");
  }
  const address = parseStoreAddress(url ?? "", process.cwd());
  if (address.kind !== "redis") {
    throw new Failure("misuse", "expected --redis to be one redis:// or rediss:// address");
  }
  const { openRedisClients } = await import("../redis-clients.ts");
  const { redisFences } = await import("../../fencing/redis.ts");
  const opened = await openRedisClients(address.servers, 1);
  try {
    const [client] = opened.clients;
    const admission = await redisFences(client, { prefix: "" }).admit(key, fence);
    return { ...admission, fence };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Failure("unavailable", `cannot check the fence: ${message}`, error);
  } finally {
    opened.close();
  }
}
