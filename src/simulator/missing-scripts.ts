import type { AttemptRecord } from "./process/recording-store.ts";
import type { Scene } from "./scene.ts";
import type { HeardReply } from "./votes.ts";

/** A process and a node of which it has just heard that the node lacks a script. */
interface Lacking {
  readonly from: string;
  readonly to: string;
  /** Owners of attempts that still wait for the node's vote. */
  readonly owners: Set<string>;
}

/**
 * A node that lacks a script is well, and has done nothing: whoever still waits for its vote sends
 * the text, in the very turn in which it hears of it. An attempt that counts the node as failed
 * instead costs no more than a repeat, which nobody else would notice.
 */
export class MissingScripts {
  readonly #scene: Scene;
  readonly #report: (text: string) => void;
  #last: Lacking | undefined;

  constructor(scene: Scene, report: (text: string) => void) {
    this.#scene = scene;
    this.#report = report;
  }

  /** Before the process acts on it; `attempts` are all of that process, by their owners. */
  onHeard(
    from: string,
    to: string,
    { command, reply }: Pick<HeardReply, "command" | "reply">,
    attempts: ReadonlyMap<string, AttemptRecord>,
  ): void {
    if (!(reply instanceof Error) || !reply.message.startsWith("NOSCRIPT")) return;
    // Only an acquire or a raise names the owner of an attempt that is not decided yet.
    const owners = command.filter((word) => attempts.get(word)?.isDecided === false);
    if (owners.length === 0) return;
    const lacking = { from, to, owners: new Set(owners) };
    this.#last = lacking;
    this.#scene.after(0, () => this.#judge(lacking));
  }

  /** Handed to the driver, whether it is connected or not. */
  onSent(from: string, to: string, command: readonly string[]): void {
    const last = this.#last;
    if (command[0] !== "EVAL" || last?.from !== from || last.to !== to) return;
    for (const word of command) last.owners.delete(word);
  }

  /** All that the reply set off in its process has run. */
  #judge(lacking: Lacking): void {
    const { from, to, owners } = lacking;
    if (this.#last === lacking) this.#last = undefined;
    if (owners.size === 0) return;
    const told = `${to} lacked a script, and ${from} did not send it the text`;
    this.#report(`${told}, though it waited for its vote (${[...owners].join(", ")})`);
  }
}
