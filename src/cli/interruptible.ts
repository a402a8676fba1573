/** Runs `work` with an abort signal that aborts on SIGINT, SIGTERM or SIGHUP. */
export async function interruptible<Result>(
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<{ readonly result: Result } | { readonly interrupted: NodeJS.Signals }> {
  const controller = new AbortController();
  let heard: NodeJS.Signals | undefined;
  const listeners = (["SIGINT", "SIGTERM", "SIGHUP"] as const).map((signal) => {
    const listener = (): void => {
      heard ??= signal;
      controller.abort();
    };
    process.on(signal, listener);
    return () => process.off(signal, listener);
  });
  try {
    const result = await work(controller.signal);
    return { result };
  } catch (error) {
    if (heard !== undefined) return { interrupted: heard };
    throw error;
  } finally {
    for (const end of listeners) end();
  }
}
