import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A file of the project, with its path from the project root, always with `/`. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

export const projectRoot: string = fileURLToPath(new URL("../..", import.meta.url));

const ignored = new Set([".git", "coverage", "dist", "node_modules"]);

/** Every text file that belongs to the project, in a stable order. */
export function readProject(): SourceFile[] {
  return pathsUnder("").map((path) => ({
    path,
    text: readFileSync(join(projectRoot, path), "utf8"),
  }));
}

function pathsUnder(folder: string): string[] {
  const entries = readdirSync(join(projectRoot, folder), { withFileTypes: true });
  return entries
    .filter((entry) => !ignored.has(entry.name) && !/\.(tgz|log)$/.test(entry.name))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) return pathsUnder(path);
      return entry.isFile() ? [path] : [];
    });
}
