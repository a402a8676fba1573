/** Runs `work` with an abort signal that aborts on SIGINT, SIGTERM or SIGHUP. */
export async function interruptible<Result>(
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<{ readonly result: Result } | { readonly interrupted: NodeJS.Signals }> {
  const controller = new AbortController();
  let received: NodeJS.Signals | undefined;
  const listeners = (["SIGINT", "SIGTERM", "SIGHUP"] as const).map((signal) => {
    const listener = (): void => {
      received ??= signal;
      controller.abort();
    };
    process.on(signal, listener);
    return () => process.off(signal, listener);
  });
  try {
    const result = await work(controller.signal);
    return { result };
  } catch (error) {
    if (received !== undefined) return { interrupted: received };
    throw error;
  } finally {
    for (const end of listeners) end();
  }
}
