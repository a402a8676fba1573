import { spawnSync } from "node:child_process";

/** Reports a missing server once, instead of in hundreds of failed tests. */
export default function setup(): void {
  const { status, error } = spawnSync("redis-server", ["--version"], { stdio: "ignore" });
  if (status === 0 && error === undefined) return;
  throw new Error(
    "redis-server was not found on the PATH. The tests start real Redis servers: run `npm test`, " +
      "which installs them where it can, or `node scripts/ensure-servers.mjs`, which says how.",
  );
}
