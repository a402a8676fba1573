/** What is used of the command class that ioredis and iovalkey make public with their clients. */
interface CommandLike {
  args: unknown;
  toWritable(socket?: unknown): unknown;
}

type CommandClass = new (name: string, args: string[], options: object) => CommandLike;

/** A client that may take commands which somebody else has made. */
export interface CommandTaker {
  readonly options?: { readonly keyPrefix?: string | undefined } | undefined;
  call(name: string, args: string[]): Promise<unknown>;
  sendCommand?(command: object): Promise<unknown>;
}

/**
 * The servers of a quorum mostly get the very same command, and ioredis would put the words of a
 * batch, a hundred or more, together anew for each of them: 28 µs each time, where writing the
 * finished text takes 4. Here they are encoded once, and each server's command hands out the same
 * text. A command that goes alone gains from it, too: it is looked through once and not four times.
 * Undefined where this client, or the one it will be some day, does it in another way than we know.
 */
export function sharedCommands(
  client: CommandTaker,
): ((command: readonly string[]) => Promise<unknown>) | undefined {
  // A prefix is put before keys while the words are put together.
  if ((client.options?.keyPrefix ?? "") !== "") return undefined;
  const Command = commandClassOf(client);
  if (Command === undefined) return undefined;
  const Shared = sharedClass(Command);
  const taker = client as CommandTaker & { sendCommand(command: object): Promise<unknown> };
  return (command) => taker.sendCommand(new Shared(command));
}

/** No client tells which class its commands are of, so one is made, and not sent. */
function commandClassOf(client: CommandTaker): CommandClass | undefined {
  if (typeof client.sendCommand !== "function") return undefined;
  const words = ["echo", "é"];
  let made: CommandLike | undefined;
  // Beside the client and not behind it: engines make an object that others inherit from one of a
  // kind, and what the library does with five clients would be slow for all of them.
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

/** One for all clients of a library: its code is fast only for objects of few classes. */
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
 * In lower case, because iovalkey finds the keys of a command (to prefix them) only then; and the
 * usual ones as constants, because the library looks each name up in several tables.
 */
export function lowered(name = ""): string {
  return usualNames[name] ?? name.toLowerCase();
}

let last: { words: readonly string[]; args: readonly string[]; text: string } | undefined;

function encodedOnce(words: readonly string[]): { args: readonly string[]; text: string } {
  if (last?.words !== words) last = { words, args: words.slice(1), text: encoded(words) };
  return last;
}

// Taken once: the global is a getter.
const bytes = Buffer;

/** What comes before a word of so many bytes, and after the one before it. */
const lengths = Array.from({ length: 64 }, (_, length) => `\r\n$${length}\r\n`);

function encoded(words: readonly string[]): string {
  let text = `*${words.length}`;
  for (const word of words) {
    text += (lengths[word.length] ?? `\r\n$${word.length}\r\n`) + word;
  }
  text += "\r\n";
  // Mostly there are as many bytes as characters, and all of them are counted at once.
  return bytes.byteLength(text) === text.length ? text : encodedByBytes(words);
}

function encodedByBytes(words: readonly string[]): string {
  let text = `*${words.length}\r\n`;
  for (const word of words) text += `$${bytes.byteLength(word)}\r\n${word}\r\n`;
  return text;
}
