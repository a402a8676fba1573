/** What GLIDE's core calls the error codes it knows, and the code as the server sent it. */
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
 * The error as the server worded it. GLIDE rewrites error replies ("NOSCRIPT No matching script"
 * becomes "An error was signalled by the server: - NoScriptError: No matching script"), and the
 * code decides what to do next. Any other error comes back as it is.
 */
export function serverError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const [, kind = "", text = ""] = known.exec(error.message) ?? unknown.exec(error.message) ?? [];
  if (kind === "") return error;
  return new Error(`${codes.get(kind) ?? kind} ${text}`, { cause: error });
}
