import type { Emitter } from "../../../core/events.ts";
import type { Scheduler, Task } from "../../../core/time/scheduler.ts";
import type { NodeObserver, RedisNode } from "./node.ts";
import { faultFinding } from "./fault-findings.ts";
import { infoFindings } from "./info-findings.ts";
import { readServerInfo } from "./server-info.ts";
import { aboutNode, type NodeFinding } from "./node-finding.ts";

/** Codes of findings that can disappear. Such a finding is reported again if it comes back. */
const curable = new Set(["eviction", "memory-full", "replica", "loading", "version-too-old"]);

const infoDenied: NodeFinding = {
  level: "warning",
  code: "info-denied",
  what: "this user may not run INFO",
  why: "the same server given twice, its version and its restarts are unknown",
  remedy: "allow it: ACL SETUSER <user> +info",
};

const lostAfterMs = 5_000;

interface Look {
  /** Run id of the process that sent the last reply; undefined before the first one. */
  runId: string | undefined;
  /** Monotonic time of the request under way, if any. A driver may lose a request silently. */
  underWaySinceMs: number | undefined;
  readonly reported: Set<string>;
}

/**
 * Reads INFO from each server in the background: on first contact, after an outage, and when
 * another process replies. Emits each finding about the server as a `warning`, once per node. Never
 * delays or fails an acquire, and never keeps the process running.
 */
export class Survey implements NodeObserver {
  readonly #scheduler: Scheduler;
  readonly #events: Emitter;
  readonly #looks = new Map<RedisNode, Look>();
  readonly #tasks = new Set<Task>();
  readonly #stops: readonly (() => void)[];
  #closed = false;

  constructor(nodes: readonly RedisNode[], scheduler: Scheduler, events: Emitter) {
    this.#scheduler = scheduler;
    this.#events = events;
    const named = (name: string): RedisNode | undefined => nodes.find((node) => node.name === name);
    this.#stops = [
      events.on("node-recovered", ({ node }) => this.look(named(node))),
      events.on("node-failed", ({ node, cause }) => this.#onFault(named(node), cause)),
    ];
  }

  onIdentified(node: RedisNode): void {
    this.look(node);
    if (node.infoDenied) this.#events.emit("warning", aboutNode(node.name, infoDenied));
  }

  /** Sends INFO, because the node may have another server than before. */
  onScriptMissing(node: RedisNode): void {
    this.look(node);
  }

  /** Sends INFO soon, behind the commands that the caller is about to send. */
  look(node: RedisNode | undefined): void {
    // In a Cluster any server may reply to a command without a key, so INFO would prove nothing.
    if (node === undefined || this.#closed || node.connection.topology === "cluster") return;
    const look = this.#lookAt(node);
    const nowMs = this.#scheduler.clock.monotonicMs();
    const underWay = nowMs - (look.underWaySinceMs ?? -Infinity) < lostAfterMs;
    if (underWay || node.infoDenied) return;
    look.underWaySinceMs = nowMs;
    const task = this.#scheduler.at(nowMs, false, () => {
      this.#tasks.delete(task);
      void this.#send(node, look);
    });
    this.#tasks.add(task);
  }

  /** Called when a script returned the beginning of its process's run id. */
  noticeRunId(node: RedisNode | undefined, runId: string): void {
    const known = node === undefined ? undefined : this.#looks.get(node)?.runId;
    if (known !== undefined && !known.startsWith(runId)) this.look(node);
  }

  close(): void {
    this.#closed = true;
    for (const stop of this.#stops) stop();
    for (const task of this.#tasks) this.#scheduler.cancel(task);
  }

  #lookAt(node: RedisNode): Look {
    let look = this.#looks.get(node);
    if (look === undefined) {
      look = { runId: undefined, underWaySinceMs: undefined, reported: new Set() };
      this.#looks.set(node, look);
    }
    return look;
  }

  /** Never rejects: a server that does not reply is reported by the votes. */
  async #send(node: RedisNode, look: Look): Promise<void> {
    try {
      const info = readServerInfo(await node.connection.send("", ["INFO"]));
      if (this.#closed) return;
      look.runId = info.runId;
      node.reportInfo(info);
      const found = infoFindings(info);
      for (const code of curable) {
        if (!found.some((each) => each.code === code)) look.reported.delete(code);
      }
      for (const finding of found) this.#report(node, look, finding, finding.code);
    } catch {
    } finally {
      look.underWaySinceMs = undefined;
    }
  }

  #onFault(node: RedisNode | undefined, cause: unknown): void {
    const finding = faultFinding(cause);
    if (node === undefined || finding === undefined) return;
    const key = curable.has(finding.code) ? finding.code : `${finding.code} ${finding.what}`;
    this.#report(node, this.#lookAt(node), finding, key);
  }

  #report(node: RedisNode, look: Look, finding: NodeFinding, key: string): void {
    if (finding.level === "info" || look.reported.has(key)) return;
    look.reported.add(key);
    this.#events.emit("warning", aboutNode(node.name, finding));
  }
}
