import { constants } from "node:os";
import { signalBase } from "./exit-codes.ts";

/** Signals that end holdfast while it has no command to pass them on to. */
export const endingSignals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

let listeners: readonly (() => void)[] = [];

/**
 * Ends the process with 128 + n at signal n, until `handOverSignals()`. The default effect of a
 * signal is not enough: the kernel ignores it for the first process of a container.
 */
export function endOnSignals(): void {
  listeners = endingSignals.map((signal) => {
    const listener = (): void => endBy(signal);
    process.on(signal, listener);
    return () => process.off(signal, listener);
  });
}

/**
 * Removes the listeners of `endOnSignals`. Called right after other listeners were installed, so
 * that no signal is missed.
 */
export function handOverSignals(): void {
  for (const end of listeners) end();
  listeners = [];
}

/**
 * Ends the process with 128 + n for signal n, as shells do. Must be called only while no lock is
 * held.
 */
export function endBy(signal: NodeJS.Signals): never {
  process.exit(signalBase + constants.signals[signal]);
}
