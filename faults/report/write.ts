import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Report } from "./report.ts";

export function writeReport(folder: string, { name, text, json, svg }: Report): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.md`), text);
  writeFileSync(join(folder, `${name}.json`), json);
  writeFileSync(join(folder, `${name}.svg`), svg);
}
