/**
 * The part of the library's Command class that is used here. The class is reached through a client.
 */
interface CommandLike {
  args: unknown;
  toWritable(socket?: unknown): unknown;
}

type CommandClass = new (name: string, args: string[], options: object) => CommandLike;

/** Client that may accept command objects created outside of it. */
export interface CommandTaker {
  readonly options?: { readonly keyPrefix?: string | undefined } | undefined;
  call(name: string, args: string[]): Promise<unknown>;
  sendCommand?(command: object): Promise<unknown>;
}

/**
 * Returns a function that sends a command that is encoded only once for all servers of a quorum.
 * Returns undefined if the library's Command class does not behave as expected.
 *
 * perf (inflight): ioredis encodes a batch (100 words or more) anew for each server, which takes 28
 * µs each time. Writing an already encoded text takes 4 µs. A single command is faster as well: its
 * words are scanned once instead of four times.
 */
export function sharedCommands(
  client: CommandTaker,
): ((command: readonly string[]) => Promise<unknown>) | undefined {
  // A key prefix makes the library change the words while it encodes them.
  if ((client.options?.keyPrefix ?? "") !== "") return undefined;
  const Command = commandClassOf(client);
  if (Command === undefined) return undefined;
  const Shared = sharedClass(Command);
  const taker = client as CommandTaker & { sendCommand(command: object): Promise<unknown> };
  return (command) => taker.sendCommand(new Shared(command));
}

/**
 * Returns the library's Command class, or undefined if its encoding differs from ours. Clients do
 * not expose the class, so the function makes a client build a sample command, which is never sent.
 */
function commandClassOf(client: CommandTaker): CommandClass | undefined {
  if (typeof client.sendCommand !== "function") return undefined;
  const words = ["echo", "é"];
  let made: CommandLike | undefined;
  // The prototype of the probe is the client's prototype, and not the client itself. perf:
  // JavaScript engines slow down an object that is used as a prototype, and so every call on the
  // client.
  const probe = Object.create(Object.getPrototypeOf(client) as object, {
    options: { value: { ...client.options, enableAutoPipelining: false } },
    sendCommand: {
      value(command: CommandLike): Promise<void> {
        made = command;
        return Promise.resolve();
      },
    },
  }) as CommandTaker;
  try {
    void probe.call("echo", words.slice(1));
    if (made?.toWritable() !== encoded(words)) return undefined;
    return made.constructor as CommandClass;
  } catch {
    return undefined;
  }
}

type SharedClass = new (words: readonly string[]) => CommandLike;

/**
 * Subclass of each library's Command class. perf: engines optimise code that works with few
 * classes.
 */
const sharedClasses = new WeakMap<CommandClass, SharedClass>();

function sharedClass(Command: CommandClass): SharedClass {
  let found = sharedClasses.get(Command);
  if (found === undefined) {
    found = newSharedClass(Command);
    sharedClasses.set(Command, found);
  }
  return found;
}

function newSharedClass(Command: CommandClass): SharedClass {
  return class extends Command {
    readonly #text: string;

    constructor(words: readonly string[]) {
      super(lowered(words[0]), [], sharedOptions);
      const shared = encodedOnce(words);
      this.args = shared.args;
      this.#text = shared.text;
    }

    override toWritable(): string {
      return this.#text;
    }
  };
}

const sharedOptions = { replyEncoding: "utf8" };
const usualNames: Readonly<Record<string, string>> = { EVALSHA: "evalsha", SET: "set" };

/**
 * Returns the command name in lower case. Only for such names iovalkey finds the keys to prefix.
 *
 * perf (sequential): frequent names are constants, which the library's lookup tables find faster.
 */
export function lowered(name = ""): string {
  return usualNames[name] ?? name.toLowerCase();
}

let last: { words: readonly string[]; args: readonly string[]; text: string } | undefined;

function encodedOnce(words: readonly string[]): { args: readonly string[]; text: string } {
  if (last?.words !== words) last = { words, args: words.slice(1), text: encoded(words) };
  return last;
}

// perf: the global `Buffer` is a getter, so it is read only once.
const bytes = Buffer;

/** RESP headers of words, by the length of the word. A header includes the line end before it. */
const lengths = Array.from({ length: 64 }, (_, length) => `\r\n$${length}\r\n`);

/**
 * Encoded beginnings of EVALSHA commands, by number of words and script: the number of words and
 * the first two. perf (sequential): a program uses few of them again and again.
 */
const beginnings: (Map<string, string> | undefined)[] = [];
/** Limit for the number of words of a command whose beginning is kept. */
const keptWordsMax = 64;

function scriptCallOf(script: string, wordCount: number): string {
  const known = beginnings[wordCount]?.get(script);
  if (known !== undefined) return known;
  const text = `*${wordCount}${lined("EVALSHA")}${lined(script)}`;
  if (wordCount <= keptWordsMax) {
    (beginnings[wordCount] ??= new Map<string, string>()).set(script, text);
  }
  return text;
}

function lined(word: string): string {
  return (lengths[word.length] ?? `\r\n$${word.length}\r\n`) + word;
}

function encoded(words: readonly string[]): string {
  const [name, script] = words;
  const isCall = name === "EVALSHA" && script !== undefined;
  let text = isCall ? scriptCallOf(script, words.length) : `*${words.length}`;
  for (let index = isCall ? 2 : 0; index < words.length; index += 1) {
    text += lined(words[index] ?? "");
  }
  text += "\r\n";
  // perf: counts the bytes of the whole text at once. Multi-byte characters make the header lengths
  // wrong, so a text that has any is encoded again, word by word.
  return bytes.byteLength(text) === text.length ? text : encodedByBytes(words);
}

function encodedByBytes(words: readonly string[]): string {
  let text = `*${words.length}\r\n`;
  for (const word of words) text += `$${bytes.byteLength(word)}\r\n${word}\r\n`;
  return text;
}
