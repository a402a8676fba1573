import { resolve } from "node:path";
import { Failure } from "../failure.ts";
import type { Verdict } from "../fence/fence-file.ts";
import type { AddCommand, Session } from "../session.ts";
import { parseStoreAddress } from "../store-address.ts";

const examples = `
Examples:
  holdfast fence check --file /srv/report.fence "$HOLDFAST_FENCE" && mv new.csv /srv/report.csv
  holdfast fence check --redis redis://localhost --key guard:report || exit

Inside exec the fence may be left out: it is in HOLDFAST_FENCE. A fence that is not smaller than
the greatest seen passes and is kept (exit code 0); a smaller one is stale (79). The check and your
write are still two steps: keep them close together, or let the place of writing check the fence.`;

interface CheckFlags {
  readonly file?: string;
  readonly redis?: string;
  readonly key?: string;
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
    .argument("[fence]", "the fence of the lease (default: HOLDFAST_FENCE)")
    .option("--file <path>", "keep the greatest fence in this file")
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
};

async function check(
  { output }: Session,
  given: string | undefined,
  flags: CheckFlags,
): Promise<"ok" | "stale"> {
  const fence = fenceOf(given);
  const { file, redis, key } = flags;
  if ((file === undefined) === (redis === undefined)) {
    throw new Failure("misuse", "fence check needs --file PATH, or --redis URL with --key NAME");
  }
  const verdict = file === undefined ? await inRedis(redis, key, fence) : await inFile(file, fence);
  if (output.json) output.document(verdict);
  if (verdict.accepted) return "ok";
  if (!output.json) output.note(`fence ${fence} is stale: ${verdict.seen} was seen`);
  return "stale";
}

function fenceOf(given: string | undefined): bigint {
  if (given === undefined || given === "") {
    throw new Failure("misuse", "fence check needs a fence, as argument or in HOLDFAST_FENCE");
  }
  if (/^[1-9]\d{0,18}$/.test(given) && BigInt(given) < 2n ** 63n) return BigInt(given);
  throw new Failure("misuse", `expected the fence to be a number above 0, got "${given}"`);
}

async function inFile(path: string, fence: bigint): Promise<Verdict> {
  const { checkFenceFile } = await import("../fence/fence-file.ts");
  return checkFenceFile(resolve(path), fence);
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
    const told = error instanceof Error ? error.message : String(error);
    throw new Failure("unavailable", `cannot check the fence: ${told}`, error);
  } finally {
    opened.close();
  }
}
