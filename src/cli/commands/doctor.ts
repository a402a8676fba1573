import { renderFindings, type Finding } from "../../core/report/doctor.ts";
import { isDenied } from "../failure.ts";
import type { Output } from "../output.ts";
import type { Unreachable } from "../redis-clients.ts";
import { flagDuration, type AddCommand, type Session } from "../session.ts";

const examples = `
Examples:
  holdfast doctor --store redlock:redis://a,redis://b,redis://c
  holdfast doctor --json | jq -r '.findings[].code'

Exit codes: 0 nothing grave, 1 warnings, 2 errors.`;

export const addDoctor: AddCommand = (program, host) => {
  program
    .command("doctor")
    .summary("look for what is wrong with the store")
    .description("Look for what is wrong with servers, clocks, rights and options.")
    .option("-t, --ttl <duration>", "the TTL to judge by", "10s")
    .addHelpText("after", examples)
    .action(
      host.act((session, flags: { ttl: string }) => doctor(session, flags.ttl), {
        keepsExitCode: true,
      }),
    );
};

async function doctor(session: Session, ttl: string): Promise<"ok" | "no" | "errors"> {
  const { output } = session;
  const ttlMs = flagDuration("--ttl", ttl, 100, 86_400_000);
  return await session.using(
    async ({ locks, description, unreachable }) => {
      const found = await locks.doctor();
      const findings = found.map((finding) => {
        const server = unreachable.find(({ node }) => node === finding.node);
        return server === undefined ? finding : withReason(finding, server);
      });
      if (output.json) output.document({ store: description, findings });
      else output.line(`${description}\n\n${coloured(findings, output).trimEnd()}`);
      if (findings.some(({ level }) => level === "error")) return "errors";
      return findings.some(({ level }) => level === "warning") ? "no" : "ok";
    },
    // The store is opened even if no server can be reached, because that is a finding as well.
    { defaults: { ttl: ttlMs }, withoutServers: true },
  );
}

/** Adds the server's address and the reason to a finding about an unreachable server. */
function withReason(finding: Finding, { address, why }: Unreachable): Finding {
  if (finding.code !== "unreachable") return finding;
  const named = { ...finding, what: `${address} cannot be reached: ${why}` };
  if (!isDenied(why)) return named;
  return {
    ...named,
    code: "wrong-password",
    what: `${address} refuses the user: ${why}`,
    why: "a node that refuses us does not vote",
    remedy: "put the user and password of this server into its address, percent-encoded",
  };
}

function coloured(findings: readonly Finding[], { colors }: Output): string {
  const paint = { error: colors.red, warning: colors.yellow, info: colors.cyan };
  return renderFindings(findings).replaceAll(/^(error|warning|info)\b/gm, (level) => {
    return paint[level as keyof typeof paint](level);
  });
}
