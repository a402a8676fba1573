import { renderFindings, type Finding } from "../../core/report/doctor.ts";
import type { Output } from "../output.ts";
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
    async ({ locks, description }) => {
      const findings = await locks.doctor();
      if (output.json) output.document({ store: description, findings });
      else output.line(`${description}\n\n${coloured(findings, output).trimEnd()}`);
      if (findings.some(({ level }) => level === "error")) return "errors";
      return findings.some(({ level }) => level === "warning") ? "no" : "ok";
    },
    { defaults: { ttl: ttlMs } },
  );
}

function coloured(findings: readonly Finding[], { colors }: Output): string {
  const paint = { error: colors.red, warning: colors.yellow, info: colors.cyan };
  return renderFindings(findings).replaceAll(/^(error|warning|info)\b/gm, (level) => {
    return paint[level as keyof typeof paint](level);
  });
}
