/** GLIDE's names of error codes, mapped to the codes that the server sends. */
const codes = new Map([
  ["ResponseError", "ERR"],
  ["NoScriptError", "NOSCRIPT"],
  ["BusyLoadingError", "LOADING"],
  ["ExecAbortError", "EXECABORT"],
  ["Moved", "MOVED"],
  ["Ask", "ASK"],
  ["TryAgain", "TRYAGAIN"],
  ["ClusterDown", "CLUSTERDOWN"],
  ["CrossSlot", "CROSSSLOT"],
  ["MasterDown", "MASTERDOWN"],
  ["ReadOnly", "READONLY"],
  ["NotBusy", "NOTBUSY"],
  ["PermissionDenied", "NOPERM"],
]);

const known = /^An error was signalled by the server: - (\w+): ([^]*)$/;
const unknown = /^([A-Z]+): ([^]*)$/;

/**
 * Returns the error with the server's original code, or any other error unchanged. GLIDE rewrites
 * error replies ("NOSCRIPT No matching script" becomes "An error was signalled by the server: -
 * NoScriptError: No matching script"), and callers decide by the code.
 */
export function serverError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const [, kind = "", text = ""] = known.exec(error.message) ?? unknown.exec(error.message) ?? [];
  if (kind === "") return error;
  return new Error(`${codes.get(kind) ?? kind} ${text}`, { cause: error });
}
