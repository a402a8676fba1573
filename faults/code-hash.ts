import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

/** Returns a hash of the sources of Holdfast, which a report names. */
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
