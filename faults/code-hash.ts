import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

/** Names the sources of Holdfast that a run is of, so that its report can say so. */
export function codeHash(root: string): string {
  const hash = createHash("sha1");
  for (const folder of ["core", "stores", "clients"]) {
    const path = join(root, "src", folder);
    const files = readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort();
    for (const file of files) hash.update(relative(root, file)).update(readFileSync(file));
  }
  return hash.digest("hex").slice(0, 10);
}
