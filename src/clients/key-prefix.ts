/** Commands that Holdfast may send and whose arguments are all keys. */
const keysOnly = new Set(["DEL", "EXISTS", "MGET", "TOUCH", "UNLINK"]);
const scripts = new Set(["EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO"]);

/**
 * Returns the command with `prefix` before each key, for clients that do not apply their key prefix
 * to raw commands. The first argument is a key if it equals `key`.
 */
export function withKeyPrefix(prefix: string, key: string, command: readonly string[]): string[] {
  const prefixed = [...command];
  const name = command[0] ?? "";
  let first = 1;
  let last = command[1] === key ? 1 : 0;
  if (scripts.has(name)) {
    first = 3;
    last = 2 + Number(command[2]);
  } else if (keysOnly.has(name)) {
    last = command.length - 1;
  }
  for (let index = first; index <= last; index += 1) {
    prefixed[index] = prefix + (command[index] ?? "");
  }
  return prefixed;
}
