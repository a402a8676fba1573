import type { Command } from "commander";
import { Failure } from "../failure.ts";
import type { AddCommand, Session } from "../session.ts";

const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

const examples = `
Examples:
  holdfast completion bash > ~/.local/share/bash-completion/completions/holdfast
  holdfast completion zsh > "\${fpath[1]}/_holdfast"
  holdfast completion fish > ~/.config/fish/completions/holdfast.fish`;

export const addCompletion: AddCommand = (program, host) => {
  program
    .command("completion")
    .summary("print the completion of a shell")
    .description("Print a script that completes commands and options in your shell.")
    .argument("<shell>", shells.join(", "))
    .addHelpText("after", examples)
    .action(
      host.act((session, shell: string) => Promise.resolve(completion(session, program, shell))),
    );
};

function completion({ output }: Session, program: Command, shell: string): "ok" {
  const makers = { bash, zsh, fish } satisfies Record<Shell, (words: readonly Entry[]) => string>;
  if (!(shells as readonly string[]).includes(shell)) {
    throw new Failure("misuse", `expected one of ${shells.join(", ")}, got "${shell}"`);
  }
  const script = makers[shell as Shell](entriesOf(program));
  if (output.json) output.document({ shell, script });
  else output.line(script.trimEnd());
  return "ok";
}

interface Entry {
  /** Command path, such as `fence`; empty for the program itself. */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly summary: string }[];
  readonly options: readonly { readonly flag: string; readonly summary: string }[];
}

function entriesOf(program: Command): readonly Entry[] {
  const entries: Entry[] = [];
  const visit = (command: Command, path: string): void => {
    const own = command === program ? [] : program.options;
    const shown = [...command.options, ...own].filter(({ hidden }) => !hidden);
    const options = shown.flatMap(({ long, description }) => {
      return long === undefined || long === null ? [] : [{ flag: long, summary: description }];
    });
    const commands = command.commands.map((child) => {
      return { name: child.name(), summary: child.summary() || child.description() };
    });
    entries.push({ path, commands, options: [...options, { flag: "--help", summary: "help" }] });
    for (const child of command.commands) visit(child, `${path} ${child.name()}`.trim());
  };
  visit(program, "");
  return entries;
}

/**
 * Returns the bash script. It completes the names of held resources. After `--`, bash completes the
 * command of `exec` as usual; without the package bash-completion, only the command's name.
 */
function bash(entries: readonly Entry[]): string {
  const cases = entries.map(({ path, commands, options }) => {
    const words = [...commands.map(({ name }) => name), ...options.map(({ flag }) => flag)];
    return `    "${path}") words="${words.join(" ")}" ;;`;
  });
  const names = entries.flatMap(({ path }) => (path === "" ? [] : [`"${path}"`]));
  return `# bash completion of holdfast
_holdfast() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" words="" word index
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    if [[ $word == -- ]]; then
      if declare -F _command_offset > /dev/null; then
        _command_offset $((index + 1))
      elif ((COMP_CWORD == index + 1)); then
        COMPREPLY=($(compgen -c -- "$current"))
      fi
      return
    fi
    for known in ${names.join(" ")}; do
      [[ "\${path:+$path }$word" == "$known" ]] && path="$known"
    done
  done
  case "$path" in
${cases.join("\n")}
  esac
  if [[ $path =~ ^(exec|inspect|wait|break)$ && $current != -* ]]; then
    # A name is only compared and quoted: \`compgen -W\` would run what is in it.
    COMPREPLY=()
    while IFS= read -r word; do
      [[ $word == "$current"* ]] && COMPREPLY+=("$(printf %q "$word")")
    done < <(holdfast ls --names 2> /dev/null)
    return
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _holdfast holdfast
`;
}

function zsh(entries: readonly Entry[]): string {
  const cases = entries.map(({ path, commands, options }) => {
    const words = [
      ...commands.map(({ name, summary }) => `${name}:${summary}`),
      ...options.map(({ flag, summary }) => `${flag}:${summary}`),
    ];
    return `    "${path}") known=(${words.map(quoted).join(" ")}) ;;`;
  });
  const names = entries.flatMap(({ path }) => (path === "" ? [] : [quoted(path)]));
  return `#compdef holdfast
_holdfast() {
  local -a known paths
  local path="" word index
  paths=(${names.join(" ")})
  for ((index = 2; index < CURRENT; index++)); do
    word="\${words[index]}"
    if [[ $word == -- ]]; then
      shift $index words
      ((CURRENT -= index))
      _normal
      return
    fi
    ((\${paths[(Ie)\${path:+$path }$word]})) && path="\${path:+$path }$word"
  done
  case "$path" in
${cases.join("\n")}
  esac
  _describe holdfast known || _files
}
_holdfast "$@"
`;
}

function fish(entries: readonly Entry[]): string {
  const lines = entries.flatMap(({ path, commands, options }) => {
    const [last = ""] = path.split(" ").slice(-1);
    const when = path === "" ? "__fish_use_subcommand" : `__fish_seen_subcommand_from ${last}`;
    const start = `complete -c holdfast -n ${quoted(when)}`;
    return [
      ...commands.map(({ name, summary }) => `${start} -f -a ${name} -d ${quoted(summary)}`),
      ...options.map(({ flag, summary }) => `${start} -l ${flag.slice(2)} -d ${quoted(summary)}`),
    ];
  });
  return `# fish completion of holdfast\n${lines.join("\n")}\n`;
}

/** Returns the text in single quotes, valid in all three shells. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "’")}'`;
}
