import type { Emitter } from "../../../core/events.ts";
import type { Scheduler } from "../../../core/time/scheduler.ts";
import { newsMs, type ClockWatch } from "../../../core/time/clock-watch.ts";
import { duration, aboutNode, type NodeFinding } from "./node-finding.ts";
import type { RedisNode } from "./node.ts";

/**
 * Limit for the difference of two wall clocks. If it is greater, one clock is set wrong: NTP keeps
 * clocks within milliseconds.
 */
const apartMsMax = 1_000;
/** Time to wait for the clocks of the other nodes, so that a warning can name the wrong one. */
const othersMs = 1_000;

interface Seen {
  /**
   * Server time minus our monotonic time. `wallOffsetMs` is the server time minus our wall time.
   */
  offsetMs: number;
  wallOffsetMs: number;
  errorMs: number;
  isApart: boolean;
}

/**
 * Compares the servers' clocks with ours, by the time in replies. Estimates the servers' time, and
 * warns of each server whose wall clock is far from this client's.
 */
export class ServerClocks {
  readonly #nodeCount: number;
  readonly #scheduler: Scheduler;
  readonly #events: Emitter;
  readonly #seen = new Map<RedisNode, Seen>();
  readonly #warned = new Set<RedisNode>();
  /**
   * Lower median of the servers' times minus our monotonic time: one wrong clock does not move it.
   * Undefined before the first reply that has a time.
   */
  offsetMs: number | undefined = undefined;
  #waitsForOthers = false;

  constructor(nodeCount: number, scheduler: Scheduler, events: Emitter) {
    this.#nodeCount = nodeCount;
    this.#scheduler = scheduler;
    this.#events = events;
  }

  /** Called with the clock of a node after a reply that `hasNews`. */
  observe(node: RedisNode, { offsetMs = 0, errorMs }: ClockWatch): void {
    const seen = this.#seen.get(node);
    const isNews = seen === undefined || Math.abs(seen.offsetMs - offsetMs) > newsMs;
    const { clock } = this.#scheduler;
    const wallOffsetMs = offsetMs + clock.monotonicMs() - clock.wallMs();
    const isApart = Math.abs(wallOffsetMs) - errorMs > apartMsMax;
    this.#seen.set(node, { offsetMs, wallOffsetMs, errorMs, isApart });
    if (isNews) this.offsetMs = median([...this.#seen.values()].map((each) => each.offsetMs));
    if (this.#seen.size === this.#nodeCount) this.#warn();
    else if (isApart) this.#warnLater();
  }

  #warnLater(): void {
    if (this.#waitsForOthers) return;
    this.#waitsForOthers = true;
    const dueMs = this.#scheduler.clock.monotonicMs() + othersMs;
    this.#scheduler.at(dueMs, false, () => {
      this.#waitsForOthers = false;
      this.#warn();
    });
  }

  #warn(): void {
    for (const [node, seen] of this.#seen) {
      if (!seen.isApart || this.#warned.has(node)) continue;
      this.#warned.add(node);
      this.#events.emit("warning", aboutNode(node.name, this.#finding(seen)));
    }
  }

  #finding({ wallOffsetMs, errorMs }: Seen): NodeFinding {
    const all = [...this.#seen.values()];
    const agreeing = all.filter((other) => {
      const apartMs = Math.abs(other.wallOffsetMs - wallOffsetMs);
      return apartMs <= apartMsMax + other.errorMs + errorMs;
    });
    const byMs = duration(Math.abs(wallOffsetMs));
    const isBehind = wallOffsetMs > 0;
    const common = { level: "warning", code: "clock-offset" } as const;
    if (agreeing.length > 1 && agreeing.length * 2 > all.length) {
      return {
        ...common,
        what:
          `this client's clock is ${byMs} ${isBehind ? "behind" : "ahead of"} the server's; ` +
          `${agreeing.length} of ${all.length} servers agree that it is this client's that is off`,
        why: "its fences rest on its clock where all nodes have lost their counters",
        remedy: "run NTP on this machine, slewing instead of stepping",
      };
    }
    return {
      ...common,
      what: `the server's clock is ${byMs} ${isBehind ? "ahead of" : "behind"} this client's`,
      why: "the clock that is off will be set right one day, and a step ends locks early or late",
      remedy: "run NTP on the server and on this machine, slewing instead of stepping",
    };
  }
}

function median(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[(values.length - 1) >> 1];
}
