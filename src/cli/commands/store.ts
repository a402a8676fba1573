import { describeStore, parseStoreAddress } from "../store-address.ts";
import type { AddCommand, Session } from "../session.ts";
import type { StoreSource } from "../store-choice.ts";

const examples = `
Examples:
  holdfast store
  holdfast store --json | jq -r .from`;

export const addStore: AddCommand = (program, host) => {
  program
    .command("store")
    .summary("say which store is used, and why")
    .description("Say which store is used and where that is set. Connects to nothing.")
    .addHelpText("after", examples)
    .action(host.act((session) => Promise.resolve(store(session))));
};

function store({ output, chosen, sources }: Session): "ok" {
  const description = describeStore(chosen.address);
  const unused = sources
    .slice(1)
    .map((source) => ({ store: described(source), from: source.from }));
  if (output.json) {
    output.document({ store: description, from: chosen.from, unused });
    return "ok";
  }
  output.line(`${description} (${chosen.from})`);
  for (const { store: other, from } of unused) output.line(`not used: ${other} (${from})`);
  return "ok";
}

/** An address that is not used may be invalid. */
function described({ address, base }: StoreSource): string {
  try {
    return describeStore(parseStoreAddress(address, base));
  } catch {
    return "an invalid address";
  }
}
