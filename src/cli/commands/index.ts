import type { AddCommand } from "../session.ts";
import { addBench } from "./bench.ts";
import { addBreak } from "./break.ts";
import { addCompletion } from "./completion.ts";
import { addDemo } from "./demo.ts";
import { addDoctor } from "./doctor.ts";
import { addExec } from "./exec.ts";
import { addFence } from "./fence.ts";
import { addHelp } from "./help.ts";
import { addInit } from "./init.ts";
import { addInspect } from "./inspect.ts";
import { addLs } from "./ls.ts";
import { addSimulate } from "./simulate.ts";
import { addStore } from "./store.ts";
import { addWait } from "./wait.ts";
import { addWatch } from "./watch.ts";

/** All commands, in the order of the help. */
export const commands: readonly AddCommand[] = [
  addExec,
  addLs,
  addInspect,
  addWatch,
  addWait,
  addBreak,
  addDoctor,
  addBench,
  addSimulate,
  addDemo,
  addFence,
  addInit,
  addStore,
  addCompletion,
  addHelp,
];
