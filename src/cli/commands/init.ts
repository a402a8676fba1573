import { renameSync, rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { Failure } from "../failure.ts";
import type { AddCommand, Session } from "../session.ts";
import { describeStore, hasPassword, parseStoreAddress } from "../store-address.ts";
import { configName } from "../store-choice.ts";

const examples = `
Examples:
  holdfast init --store embedded:./locks          locks between the processes of this machine
  holdfast init --store redis://localhost
  holdfast init --store redlock:redis://a,redis://b,redis://c

Every command in this folder and below then uses this store.`;

export const addInit: AddCommand = (program, host) => {
  program
    .command("init")
    .summary("write a holdfast.json that names the store")
    .description("Write a holdfast.json with the store of --store into this folder.")
    .option("--force", "replace the holdfast.json of this folder")
    .addHelpText("after", examples)
    .action(
      host.act((session, flags: { force?: boolean }) => {
        return Promise.resolve(init(session, flags.force ?? false));
      }),
    );
};

function init({ output, storeFlag }: Session, isForced: boolean): "ok" {
  if (storeFlag === undefined) {
    throw new Failure(
      "misuse",
      "init needs a store: --store embedded:./locks for this machine, or --store redis://HOST",
    );
  }
  const address = parseStoreAddress(storeFlag, process.cwd());
  const path = resolve(configName);
  const isSecret = hasPassword(address);
  const text = `${JSON.stringify({ store: storeFlag }, undefined, 2)}\n`;
  write(path, text, { isForced, mode: isSecret ? 0o600 : 0o666 });
  const store = describeStore(address);
  if (output.json) output.document({ path, store });
  else output.line(`${path}: ${store}`);
  if ((process.env["HOLDFAST_STORE"] ?? "") !== "") {
    output.warn("HOLDFAST_STORE is set, and is used instead of this file");
  }
  if (isSecret) output.warn("the file has a password: keep it out of version control");
  return "ok";
}

/** Creates the file. Replaces an existing one only with `--force`, and then in one step. */
function write(
  path: string,
  text: string,
  { isForced, mode }: { readonly isForced: boolean; readonly mode: number },
): void {
  const draft = `${path}.${process.pid}`;
  try {
    writeFileSync(isForced ? draft : path, text, { flag: "wx", mode });
    if (isForced) renameSync(draft, path);
  } catch (error) {
    if (isForced) rmSync(draft, { force: true });
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" && !isForced) {
      throw new Failure("misuse", `${path} exists: edit it, or replace it with --force`, error);
    }
    throw new Failure("misuse", `cannot write ${path}: ${message}`, error);
  }
}
