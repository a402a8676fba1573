/**
 * The command and all processes that it started.
 *
 * Problem: a command starts processes that leave its process group (`timeout`, `set -m`, `setsid`)
 * or its family (a daemon: its parent has ended). All of them work under the lock.
 * Idea: a process belongs to the command if its parent does, if a process of the command leads its
 * group or session, or if it was started with the mark of this run in its environment.
 * Limits: processes of other users cannot be signalled. On other systems than Linux there are
 * neither sessions nor marks: a process in a group of its own is not found if its parent has ended.
 */

export interface Target {
  /** Pid of the command; 0 while the command is being started and only its mark is known. */
  readonly pid: number;
  /**
   * `group`: the command leads its own process group, and a signal to the group reaches all of it.
   * `tree`: the command is in the process group of holdfast, because the terminal must reach it.
   */
  readonly kind: "group" | "tree";
  /** Text in the environment of the command that no other run has. */
  readonly mark: string;
  /** Start time of the command, as the process list reports it. */
  readonly started: string | undefined;
}
