import type { DemoEvent } from "./events.ts";

/** Returns a sentence for an event, or undefined if the picture shows it well enough. */
export function narrate(event: DemoEvent): string | undefined {
  const { worker } = event;
  switch (event.kind) {
    case "acquired":
      return `${worker} holds the lock, fence ${event.fence}`;
    case "killed":
      return `${worker} is killed (SIGKILL)`;
    case "frozen":
      return `${worker} is frozen (SIGSTOP), its write not yet sent`;
    case "resumed":
      return `${worker} goes on (SIGCONT) and sends its write`;
    case "lost":
      return `${worker} reports its lease lost (${event.reason}), fence ${event.fence}`;
    case "write":
      return event.answer === "refused"
        ? `${event.account} refuses ${worker}: fence ${event.fence}, seen ${event.seen}`
        : `${event.account} account set by ${worker}: ${event.before} -> ${event.after}`;
    case "failed":
      return `${worker} failed: ${event.message}`;
    default:
      return undefined;
  }
}

export function timed(atMs: number, sentence: string): string {
  return `${(atMs / 1_000).toFixed(2).padStart(6)} s  ${sentence}`;
}
