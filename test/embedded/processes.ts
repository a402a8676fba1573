import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { projectRoot } from "../support/source-files.ts";

/** Builds the package into its own folder, and starts processes that use it. */
export class Workshop {
  readonly folder: string;
  readonly #children = new Set<ChildProcess>();
  #directories = 0;

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "holdfast-embedded-"));
    this.#build(join(this.folder, "with", "dist"));
    cpSync(join(this.folder, "with", "dist"), join(this.folder, "without", "dist"), {
      recursive: true,
    });
    for (const place of ["with", "without"]) {
      cpSync(join(projectRoot, "package.json"), join(this.folder, place, "package.json"));
    }
    mkdirSync(join(this.folder, "with", "node_modules"));
    symlinkSync(
      join(projectRoot, "node_modules", "lmdb"),
      join(this.folder, "with", "node_modules", "lmdb"),
      "dir",
    );
  }

  /** Builds only the files that the workers load, into a folder that no other test uses. */
  #build(outDir: string): void {
    const config = {
      extends: join(projectRoot, "tsconfig.build.json"),
      compilerOptions: {
        rootDir: join(projectRoot, "src"),
        typeRoots: [join(projectRoot, "node_modules", "@types")],
        outDir,
      },
      include: [],
      files: ["index.ts", "stores/embedded/index.ts"].map((name) => join(projectRoot, "src", name)),
    };
    const path = join(this.folder, "tsconfig.json");
    writeFileSync(path, JSON.stringify(config));
    const tsc = join(projectRoot, "node_modules", "typescript", "bin", "tsc");
    const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", path], { encoding: "utf8" });
    if (status !== 0) throw new Error(`the sources do not compile:\n${stdout}`);
  }

  newDirectory(): string {
    this.#directories += 1;
    return join(this.folder, `locks-${this.#directories}`);
  }

  /** Starts `worker.mjs`; `through` is a command that runs it, such as `unshare`. */
  start(
    args: readonly string[],
    options: { lmdb?: "with" | "without"; through?: readonly string[]; uid?: number } = {},
  ): Worker {
    const { lmdb = "with", through = [], uid } = options;
    const worker = fileURLToPath(new URL("worker.mjs", import.meta.url));
    const command = [
      ...through,
      process.execPath,
      worker,
      join(this.folder, lmdb, "dist"),
      ...args,
    ];
    const child = spawn(command[0] ?? "", command.slice(1), {
      stdio: ["pipe", "pipe", "inherit"],
      ...(uid === undefined ? {} : { uid, gid: uid }),
    });
    this.#children.add(child);
    child.on("exit", () => this.#children.delete(child));
    return new Worker(child);
  }

  async close(): Promise<void> {
    const children = [...this.#children].map((child) => new Worker(child));
    for (const child of children) child.signal("SIGKILL");
    await Promise.all(children.map((child) => child.exit));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export class Worker {
  readonly pid: number;
  readonly exit: Promise<number | NodeJS.Signals>;
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(child: ChildProcess) {
    this.#child = child;
    this.pid = child.pid ?? 0;
    this.exit = new Promise((resolve, reject) => {
      if (child.exitCode !== null || child.signalCode !== null) resolve(child.exitCode ?? 0);
      child.on("exit", (code, signal) => resolve(signal ?? code ?? 0));
      child.on("error", reject);
    });
    const { stdout } = child;
    if (stdout === null) throw new Error("no stdout");
    this.#lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  }

  /** Returns the next line of the worker's output. */
  async line(): Promise<string> {
    const { done, value } = await this.#lines.next();
    if (done === true) throw new Error(`the worker ended (${await this.exit})`);
    return value;
  }

  /** Returns the fence of the lock that the worker reports. */
  async held(): Promise<bigint> {
    const line = await this.line();
    const fence = /^held (\d+)$/.exec(line)?.[1];
    if (fence === undefined) throw new Error(`expected a lock, got: ${line}`);
    return BigInt(fence);
  }

  say(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.exit;
  }
}
