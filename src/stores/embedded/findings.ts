import type { Finding } from "../../core/report/doctor.ts";
import type { HoldfastError } from "../../core/errors.ts";
import type { Machine } from "./machine.ts";

/**
 * Returns the finding about a directory in memory. The store also emits it as a warning when it
 * first opens the directory.
 */
export function memoryFinding(node: string, path: string): Finding {
  return {
    level: "warning",
    code: "fences-in-memory",
    node,
    what: `the locks are kept in memory: ${path}`,
    why: "the directory is empty after a reboot, so fences begin again at 1",
    remedy: "use a directory on a disk if fences must never repeat",
  };
}

export function faultFinding(node: string, error: HoldfastError): Finding {
  return {
    level: "error",
    code: "directory-unusable",
    node,
    what: error.message,
    why: "no lock can be taken, renewed or given back",
    remedy: "put right what it says, and ask again",
  };
}

/**
 * Returns the finding about a directory in which nothing has been locked since the machine was
 * started.
 */
export function unusedFinding(node: string, directory: string): Finding {
  return {
    level: "info",
    code: "directory-unused",
    node,
    what: `nothing has been locked in ${directory} since this machine was started`,
    why: "there is nothing to examine: the first lock creates what it needs",
    remedy: "if locks are in use, check the path",
  };
}

/**
 * Returns a finding for each missing function of the system: /proc of this process, or a boot id.
 */
export function machineFindings(node: string, machine: Machine): readonly Finding[] {
  const findings: Finding[] = [];
  if (machine.self.place === "") {
    findings.push({
      level: "warning",
      code: "crashes-unseen",
      node,
      what: "/proc is missing or belongs to another pid namespace",
      why: "others cannot see that this process has died: what it held is free after its TTL only",
      remedy: "mount a /proc of its own into the container",
    });
  }
  if (machine.bootId === undefined) {
    findings.push({
      level: "info",
      code: "boots-unseen",
      node,
      what: "this system has no number for each boot",
      why: "every commit waits for the disk, and after a reboot a lock may stay until its TTL",
      remedy: "nothing to be done",
    });
  }
  return findings;
}
