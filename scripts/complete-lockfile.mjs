// @ts-check
/**
 * Adds missing entries to package-lock.json. Run it after `npm install` has changed that file.
 * Tools with native code list one optional package per platform. A package mirror without those of
 * other platforms leaves them out of the lockfile, and then `npm ci` refuses it. The versions of
 * the missing entries are exact, and the platform is in their names. Only the integrity is left
 * out.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";

const lockfile = fileURLToPath(new URL("../package-lock.json", import.meta.url));
const systems = [
  "android",
  "darwin",
  "freebsd",
  "linux",
  "netbsd",
  "openbsd",
  "openharmony",
  "win32",
];
const processors = ["arm64", "ia32", "loong64", "mips64el", "ppc64", "riscv64", "s390x", "x64"];

/**
 * @typedef {Record<string, unknown> & {
 *   version?: string, dev?: boolean, optionalDependencies?: Record<string, string>
 * }} Entry
 */

/**
 * Returns entries for the optional packages that `packages` requires and does not have.
 *
 * @param {Record<string, Entry>} packages
 * @returns {Map<string, Entry>}
 */
export function missingEntries(packages) {
  /** @type {Map<string, Entry>} */
  const missing = new Map();
  for (const [path, entry] of Object.entries(packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      const hoisted = `node_modules/${name}`;
      if (packages[hoisted] !== undefined || packages[`${path}/${hoisted}`] !== undefined) continue;
      if (!/^\d+\.\d+\.\d+/.test(version)) throw new Error(`${name}@${version} is not exact`);
      const { cpu, libc, os } = platformOf(name);
      // In the same order as npm.
      missing.set(hoisted, {
        version,
        cpu,
        ...(entry.dev === true ? { dev: true } : {}),
        ...(libc === undefined ? {} : { libc }),
        optional: true,
        ...(os === undefined ? {} : { os }),
      });
    }
  }
  return missing;
}

/**
 * @param {string} name such as `@scope/binding-linux-arm64-musl`
 * @returns {{ cpu: string[], libc?: string[], os?: string[] }}
 */
function platformOf(name) {
  const words = name.split(/[/-]/);
  if (words.includes("wasm32")) return { cpu: ["wasm32"] };
  const os = systems.find((each) => words.includes(each));
  if (os === undefined) throw new Error(`${name}: no platform in its name`);
  const cpu = processors.find((each) => words.includes(each)) ?? "arm";
  const last = words.at(-1) ?? "";
  if (last.startsWith("musl")) return { cpu: [cpu], libc: ["musl"], os: [os] };
  if (last.startsWith("gnu")) return { cpu: [cpu], libc: ["glibc"], os: [os] };
  return { cpu: [cpu], os: [os] };
}

function main() {
  const lock = JSON.parse(readFileSync(lockfile, "utf8"));
  const missing = missingEntries(lock.packages);
  if (missing.size === 0) return;
  const entries = [...Object.entries(lock.packages), ...missing];
  entries.sort(([a], [b]) => a.localeCompare(b, "en"));
  lock.packages = Object.fromEntries(entries);
  writeFileSync(lockfile, `${JSON.stringify(lock, null, 2)}\n`);
  console.log(`added ${missing.size} packages of other platforms to package-lock.json`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) main();
