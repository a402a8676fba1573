import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { projectRoot } from "../support/source-files.ts";

/** A block of a page that a reader runs: shell commands or a program. */
export interface Block {
  readonly kind: "sh" | "ts";
  readonly text: string;
}

export function blocksOf(page: string): readonly Block[] {
  const text = readFileSync(join(projectRoot, page), "utf8");
  return [...text.matchAll(/^```(sh|ts)\n([^]*?)^```$/gm)].map(([, kind, code]) => {
    return { kind: kind === "sh" ? "sh" : "ts", text: code ?? "" };
  });
}

export interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/**
 * Leads connections to the addresses of the documentation to the servers of the test, whose ports
 * are in NEWCOMER_PORTS. Loaded into each Node.js process of the newcomer.
 */
const preload = `
import { Socket } from "node:net";
const ports = JSON.parse(process.env.NEWCOMER_PORTS ?? "{}");
const { connect } = Socket.prototype;
Socket.prototype.connect = function (...args) {
  const options = Array.isArray(args[0]) ? args[0][0] : args[0];
  const port = ports[(options?.host ?? "localhost") + ":" + options?.port];
  if (port !== undefined) Object.assign(options, { host: "127.0.0.1", port });
  return connect.apply(this, args);
};
`;

/** A machine with Node.js, a clone of this project, and an empty project beside it. */
export class Newcomer {
  readonly #root = mkdtempSync(join(tmpdir(), "holdfast-newcomer-"));
  readonly clone = join(this.#root, "holdfast");
  readonly project = join(this.#root, "project");
  readonly bin = join(this.#root, "bin");
  readonly #env: Record<string, string>;
  #programs = 0;

  constructor(env: Readonly<Record<string, string>>) {
    for (const folder of [this.clone, this.project, this.bin]) mkdirSync(folder);
    writeFileSync(join(this.project, "package.json"), '{ "private": true, "type": "module" }\n');
    const path = join(this.#root, "preload.mjs");
    writeFileSync(path, preload);
    this.#copyClone();
    this.#env = {
      PATH: [this.bin, dirname(process.execPath), process.env["PATH"]].join(delimiter),
      HOME: this.#root,
      XDG_STATE_HOME: join(this.#root, "state"),
      NODE_OPTIONS: `--import ${path}`,
      npm_config_loglevel: "error",
      npm_config_update_notifier: "false",
      npm_config_cache: join(process.env["HOME"] ?? this.#root, ".npm"),
      ...env,
    };
    const ping = ["ping", "--fetch-retries=0", "--fetch-timeout=10000"];
    if (spawnSync("npm", ping, { stdio: "ignore" }).status !== 0) this.#installWithoutNetwork();
  }

  /** Without the npm registry, packages come from this checkout. */
  #installWithoutNetwork(): void {
    console.warn("the npm registry cannot be reached: packages come from node_modules");
    const link = `ln -sfn "${projectRoot}/node_modules/$name" "node_modules/$name"`;
    this.shim(
      "npm",
      `PATH=\${PATH#*:}; [ "$1" = install ] || exec npm "$@"; shift
      mkdir -p node_modules; for name; do case "$name" in
        *.tgz) npm install --offline "$name";;
        *) ${link};;
      esac; done; echo "added $# packages"`,
    );
  }

  /** Copies the files of this checkout. Its packages are installed already: that takes minutes. */
  #copyClone(): void {
    const list = ["ls-files", "--cached", "--others", "--exclude-standard"];
    const { stdout } = spawnSync("git", list, { cwd: projectRoot, encoding: "utf8" });
    const names = stdout.split("\n").filter((name) => name !== "" && !name.startsWith("docs/"));
    for (const name of names.filter((one) => existsSync(join(projectRoot, one)))) {
      cpSync(join(projectRoot, name), join(this.clone, name));
    }
    symlinkSync(join(projectRoot, "node_modules"), join(this.clone, "node_modules"), "dir");
  }

  /** Runs a shell command, in the project unless `cwd` is given. */
  shell(command: string, cwd = this.project): Promise<Ended> {
    return this.#run("sh", ["-e", "-c", command], cwd);
  }

  /** Runs a program of several parts, each as the documentation has it. */
  async program(...parts: readonly string[]): Promise<Ended> {
    this.#programs += 1;
    const name = `program-${this.#programs}.mjs`;
    writeFileSync(join(this.project, name), parts.join("\n"));
    return await this.#run("node", [name], this.project);
  }

  /** Starts a shell command that does not end by itself. Returns a function that ends it. */
  start(command: string): { readonly output: () => string; end(): Promise<Ended> } {
    const running = this.#spawn("sh", ["-e", "-c", `exec ${command}`], this.project, true);
    return {
      output: running.output,
      end() {
        // The whole group, because npx starts the program.
        process.kill(-running.pid, "SIGTERM");
        return running.ended;
      },
    };
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.project, name), text, { mode: 0o755 });
  }

  /** Writes a program that stands before others of its name. */
  shim(name: string, script: string): void {
    writeFileSync(join(this.bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }

  read(name: string): string {
    return readFileSync(join(this.#root, name), "utf8");
  }

  get root(): string {
    return this.#root;
  }

  remove(): void {
    rmSync(this.#root, { recursive: true, force: true });
  }

  async #run(file: string, args: readonly string[], cwd: string): Promise<Ended> {
    return await this.#spawn(file, args, cwd, false).ended;
  }

  #spawn(
    file: string,
    args: readonly string[],
    cwd: string,
    detached: boolean,
  ): { readonly pid: number; readonly ended: Promise<Ended>; readonly output: () => string } {
    const stdio = ["ignore", "pipe", "pipe"] as const;
    const child = spawn(file, args, { cwd, env: this.#env, detached, stdio: [...stdio] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (data) => (output += String(data)));
    }
    const ended = new Promise<Ended>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code) => resolve({ code, output }));
    });
    return { pid: child.pid ?? 0, ended, output: () => output };
  }
}
