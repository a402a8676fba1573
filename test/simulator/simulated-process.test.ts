import { expect, test } from "vitest";
import { SimulatedProcess } from "../../src/simulator/process/simulated-process.ts";
import { Scene } from "../../src/simulator/scene.ts";
import { SeededRandom } from "../../src/simulator/seeded-random.ts";

/** A process that is stopped each time before its timer fires, and sets it anew when it resumes. */
function postponing() {
  const scene = new Scene(new SeededRandom("postponing"), "off");
  const machine = new SimulatedProcess(scene, "client-1", { rate: 1, wallSkewMs: 0 });
  const { clock } = machine.runtime;
  let fired = 0;
  let cancel: () => void = () => undefined;
  const set = (delayMs: number): void => {
    cancel();
    cancel = clock.setTimer(delayMs, true, () => {
      fired += 1;
    });
  };
  return {
    machine,
    fired: () => fired,
    set,
    /** Lets 20 ms pass in which the process is stopped. */
    stopped: () => {
      machine.pause(false);
      const endMs = scene.nowMs + 20;
      scene.after(20, () => undefined);
      while (scene.nowMs < endMs) scene.step();
      machine.resume(false);
    },
    run: () => {
      while (scene.step() !== undefined);
    },
  };
}

test("a timer that is set anew twice although it is overdue is a failure", () => {
  const { machine, set, stopped } = postponing();
  set(10);
  for (let times = 0; times < 2; times += 1) {
    stopped();
    set(0);
  }
  expect(machine.failures).toEqual([new Error("a timer that was overdue was set anew, twice")]);
});

test("an overdue timer may be set anew once, and any other as often as its process likes", () => {
  const { machine, set, stopped, run, fired } = postponing();
  set(10);
  stopped();
  set(0);
  run();
  expect(fired()).toBe(1);
  set(10);
  stopped();
  set(0);
  run();
  for (let times = 0; times < 5; times += 1) set(10);
  run();
  expect(fired()).toBe(3);
  expect(machine.failures).toEqual([]);
});
