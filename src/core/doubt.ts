/** Why a lease is in doubt, and which answers are young enough to end that. */
export class Doubt {
  #cause: unknown;
  #raised = 0;

  get cause(): unknown {
    return this.#cause;
  }

  /** A question went unanswered: any later yes ends the doubt. */
  note(cause: unknown): void {
    this.#cause = cause;
  }

  /** What granted it has changed: only a yes to a question asked after this ends the doubt. */
  raise(cause: unknown): void {
    this.#cause = cause;
    this.#raised += 1;
  }

  /** Called before a question; on a yes to it, call the result: it says whether all is well. */
  ask(): () => boolean {
    const before = this.#raised;
    return () => {
      if (before !== this.#raised) return false;
      this.#cause = undefined;
      return true;
    };
  }
}
