import type { AttemptRecord } from "./process/recording-store.ts";
import { ownerAndFence } from "./node/script-context.ts";
import type { Scene } from "./scene.ts";
import type { ReceivedReply } from "./votes.ts";

/** A NOSCRIPT reply of node `to`, which process `from` has just received. */
interface Lacking {
  readonly from: string;
  readonly to: string;
  /** Owners of attempts that still wait for the node's vote. */
  readonly owners: Set<string>;
}

/**
 * Checks that a client answers NOSCRIPT by sending the script's source at once.
 *
 * A node without the script is healthy and has not run the command. An attempt that waits for its
 * vote must therefore send the source in the same turn in which the NOSCRIPT reply arrives. If an
 * attempt wrongly counted the node as failed, the client would only retry. No other check detects
 * that error.
 */
export class MissingScripts {
  readonly #scene: Scene;
  readonly #report: (text: string) => void;
  #last: Lacking | undefined;

  constructor(scene: Scene, report: (text: string) => void) {
    this.#scene = scene;
    this.#report = report;
  }

  /** Called before the process handles a reply. `attempts` maps owners to its attempts. */
  onReceived(
    from: string,
    to: string,
    { command, reply }: Pick<ReceivedReply, "command" | "reply">,
    attempts: ReadonlyMap<string, AttemptRecord>,
  ): void {
    if (!(reply instanceof Error) || !reply.message.startsWith("NOSCRIPT")) return;
    // Only acquires, and updates of a stored fence, contain the owner of an undecided attempt.
    const owners = ownersIn(command).filter((word) => attempts.get(word)?.isDecided === false);
    if (owners.length === 0) return;
    const lacking = { from, to, owners: new Set(owners) };
    this.#last = lacking;
    this.#scene.after(0, () => this.#judge(lacking));
  }

  /**
   * Called when the process passes a command to the driver, even if the driver is not connected.
   */
  onSent(from: string, to: string, command: readonly string[]): void {
    const last = this.#last;
    if (command[0] !== "EVAL" || last?.from !== from || last.to !== to) return;
    for (const owner of ownersIn(command)) last.owners.delete(owner);
  }

  /**
   * Called when all code that the NOSCRIPT reply triggered has run. Reports attempts that did not
   * send the source.
   */
  #judge(lacking: Lacking): void {
    const { from, to, owners } = lacking;
    if (this.#last === lacking) this.#last = undefined;
    if (owners.size === 0) return;
    const what = `${to} lacked a script, and ${from} did not send it the text`;
    this.#report(`${what}, though it waited for its vote (${[...owners].join(", ")})`);
  }
}

/** Returns the words of a command, without the fence if a word is "owner|fence". */
function ownersIn(command: readonly string[]): string[] {
  return command.map((word) => ownerAndFence(word).owner);
}
