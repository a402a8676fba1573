/**
 * All exit codes of the command line, shown by `holdfast help exit-codes` and in
 * docs/reference/cli.md. Holdfast's own codes are in ranges that commands rarely use, because
 * `exec` passes on the code of its command.
 */

interface ExitCode {
  readonly code: number;
  readonly means: string;
}

export const exitCodes = {
  ok: { code: 0, means: "done; for `exec`: the command ended with 0" },
  no: {
    code: 1,
    means: "the answer is no: warnings of `doctor`, a declined `break`, a violation in `simulate`",
  },
  errors: { code: 2, means: "`doctor` found errors" },
  misuse: { code: 64, means: "unknown command or option, missing or bad value, bad configuration" },
  unavailable: { code: 69, means: "the store cannot be reached, or too few of its servers answer" },
  internal: { code: 70, means: "a bug in holdfast; run again with `--debug` and report it" },
  held: { code: 75, means: "not acquired, or not free: others held it until the time was up" },
  lost: { code: 76, means: "`exec`: the lease was lost or in doubt, and the command was stopped" },
  denied: {
    code: 77,
    means: "wrong password, or rights that are missing, also on the folder of an embedded store",
  },
  stale: { code: 79, means: "`fence check`: a greater fence was seen, do not write" },
  changed: { code: 80, means: "`break`: another holder has it by now; nothing was broken" },
  unsupported: { code: 81, means: "this store, client or platform cannot do that" },
  cannotRun: { code: 126, means: "`exec`: the command is not executable" },
  notFound: { code: 127, means: "`exec`: the command was not found" },
} as const satisfies Readonly<Record<string, ExitCode>>;

export type ExitName = keyof typeof exitCodes;

/** Added to the signal number if a process ended by a signal, as shells do. */
export const signalBase = 128;

export const signalRow =
  "ended by signal n: the command of `exec`, or holdfast itself while waiting";

/** Returns the table as rows of code and meaning. */
export function exitCodeRows(): readonly (readonly [string, string])[] {
  const rows = Object.values(exitCodes).map(({ code, means }) => [String(code), means] as const);
  return [...rows, [`${signalBase}+n`, signalRow]];
}
