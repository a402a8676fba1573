import type { Finding } from "../../core/report/doctor.ts";
import type { HoldfastError } from "../../core/errors.ts";
import type { Machine } from "./machine.ts";

/** Finding about a directory in memory. Also emitted as a warning when it is first opened. */
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

/** Finding about a directory in which nothing has been locked since the machine was started. */
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

/** Returns findings if the system does not provide what the store uses. */
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
      what: "this system does not tell one boot from the next",
      why: "every commit waits for the disk, and after a reboot a lock may stay until its TTL",
      remedy: "nothing to be done",
    });
  }
  return findings;
}
