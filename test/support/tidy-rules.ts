import { builtinModules } from "node:module";
import { posix } from "node:path";
import { missingEntries } from "../../scripts/complete-lockfile.mjs";
import { bannedWords, wordsOf } from "../../tools/shape/words.mjs";
import type { SourceFile } from "./source-files.ts";
import { type Located, readSyntax } from "./syntax.ts";

/**
 * The rules of the house as functions from files to complaints. They look at what they are given
 * and at nothing else, so a test can plant a violation and see it caught.
 */
export type Rule = (files: readonly SourceFile[]) => readonly string[];

const generated = "src/stores/redis/scripts/generated.ts";

/* ------------------------------------------------------------------ imports */

/**
 * Which folders of `src/` a file may import from, besides its own. The first match decides; a path
 * that matches nothing has no place in the layout.
 */
const layers: readonly { within: RegExp; mayImport: RegExp; own?: false }[] = [
  { within: /^index\.ts$/, mayImport: /^(core|runtime)\// },
  { within: /^store\.ts$/, mayImport: /^core\// },
  { within: /^core\//, mayImport: /^core\// },
  { within: /^runtime\//, mayImport: /^core\// },
  { within: /^stores\/redis\//, mayImport: /^(core|clients)\// },
  // Postgres is recognised by its drivers in one place, for guards and locks.
  { within: /^stores\/postgres\//, mayImport: /^(core|fencing)\// },
  { within: /^stores\/[^/]+\//, mayImport: /^core\// },
  { within: /^clients\/recognise\.ts$/, mayImport: /^clients\/[^/]+$/ },
  { within: /^clients\//, mayImport: /^clients\/contract\.ts$/ },
  { within: /^fencing\//, mayImport: /^(core|clients)\// },
  { within: /^(testing|simulator)\//, mayImport: /^(core|stores)\/|^clients\/contract\.ts$/ },
  { within: /^once\//, mayImport: /^(core|clients|fencing|runtime)\// },
  { within: /^schedule\//, mayImport: /^(core|clients|fencing)\// },
  { within: /^(election|telemetry)\//, mayImport: /^core\// },
  { within: /^(cli|dashboard)\//, mayImport: /^(?!cli\/|dashboard\/)/ },
];

/** The folder whose files belong together: `core/`, but `stores/redis/` and not all stores. */
function homeOf(path: string): string {
  return /^(stores\/[^/]+|[^/]+)\//.exec(path)?.[0] ?? path;
}

export const importsFollowTheLayers: Rule = (files) =>
  typescriptIn(files, "src/").flatMap((file) => {
    const path = file.path.slice("src/".length);
    const layer = layers.find(({ within }) => within.test(path));
    if (layer === undefined) return [`${file.path}: no import rule knows this place`];
    return readSyntax(file.path, file.text).imports.flatMap((specifier) => {
      if (!specifier.text.startsWith(".")) return [];
      const target = posix.join(posix.dirname(path), specifier.text);
      const ownHome = layer.own !== false && homeOf(target) === homeOf(path);
      if (ownHome || layer.mayImport.test(target)) return [];
      return [`${place(file, specifier)}: may not import ${specifier.text}`];
    });
  });

/**
 * The folders of `src/stores/redis/` by layer, the lowest first. A file may import from lower
 * layers and from its own folder, types as well. Loose files, named ".", build on all of them.
 */
const redisLayers: readonly (readonly string[])[] = [
  ["scripts"],
  ["commands"],
  ["node"],
  ["protocol"],
  ["admission", "queue", "failover"],
  ["doctor", "groups"],
  ["."],
];

const looseRedisFilesMax = 8;

const redisStore = "src/stores/redis/";

/** Returns the folder below `src/stores/redis/` that a file belongs to; "." for a loose file. */
function redisFolderOf(path: string): string {
  return /^([^/]+)\//.exec(path.slice(redisStore.length))?.[1] ?? ".";
}

export const redisFoldersFollowTheirOrder: Rule = (files) => {
  const inRedis = typescriptIn(files, redisStore);
  const layerOf = (folder: string): number => {
    return redisLayers.findIndex((layer) => layer.includes(folder));
  };
  const imports = inRedis.flatMap((file) => {
    const own = redisFolderOf(file.path);
    if (layerOf(own) < 0) return [`${file.path}: the folder ${own} has no layer`];
    return readSyntax(file.path, file.text).imports.flatMap((specifier) => {
      if (!specifier.text.startsWith(".")) return [];
      const target = posix.join(posix.dirname(file.path), specifier.text);
      if (!target.startsWith(redisStore)) return [];
      const other = redisFolderOf(target);
      if (other === own || (layerOf(other) >= 0 && layerOf(other) < layerOf(own))) return [];
      return [`${place(file, specifier)}: ${own} may not import from ${other}`];
    });
  });
  const loose = inRedis.filter(({ path }) => redisFolderOf(path) === ".");
  if (loose.length <= looseRedisFilesMax) return imports;
  return [...imports, ...loose.map(({ path }) => `${path}: one of ${loose.length} loose files`)];
};

/** The command line and the dashboard are bundled; everything else is loaded as it is. */
export const sourcesImportNoPackages: Rule = (files) =>
  typescriptIn(files, "src/")
    .filter(({ path }) => !/^src\/(cli|dashboard)\//.test(path))
    .flatMap((file) =>
      readSyntax(file.path, file.text)
        .imports.filter(({ text }) => !text.startsWith(".") && !isBuiltin(text))
        .map((specifier) => `${place(file, specifier)}: imports the package ${specifier.text}`),
    );

function isBuiltin(specifier: string): boolean {
  return specifier.startsWith("node:") || builtinModules.includes(specifier);
}

/* ----------------------------------------------------------------- ban list */

const pureFolders =
  /^src\/(core|simulator|stores(?!\/(embedded|postgres|etcd|zookeeper|consul)\/))\//;

const bannedNames = new Set([
  "Date",
  "console",
  "crypto",
  // The way around this list.
  "globalThis",
  "performance",
  "process",
  "setImmediate",
  "setInterval",
  "setTimeout",
]);

const bannedAccesses = new Set(["AbortSignal.timeout", "Math.random"]);

/** Time, chance and the machine come in through ports, or the simulator could not drive the code. */
export const pureCodeTouchesNothingOutside: Rule = (files) =>
  typescriptIn(files, "src/")
    .filter(({ path }) => pureFolders.test(path))
    .flatMap((file) => {
      const { imports, names, accesses } = readSyntax(file.path, file.text);
      return [
        ...imports.filter(({ text }) => isBuiltin(text)),
        ...names.filter(({ text }) => bannedNames.has(text)),
        ...accesses.filter(({ text }) => bannedAccesses.has(text)),
      ].map((use) => `${place(file, use)}: ${use.text} is banned here, also as a local name`);
    });

/* ------------------------------------------------------------ sizes, names */

const linesMax = 300;
const columnsMax = 100;

export const sourcesAreSmall: Rule = (files) =>
  files
    .filter(({ path }) => /^src\/.*\.(ts|lua)$/.test(path) && path !== generated)
    .flatMap(({ path, text }) => {
      const lines = text.replace(/\n$/, "").split("\n");
      const long = lines.flatMap((line, index) =>
        line.length > columnsMax ? [`${path}:${index + 1}: ${line.length} columns`] : [],
      );
      return lines.length > linesMax ? [`${path}: ${lines.length} lines`, ...long] : long;
    });

const kebabCase = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+)*$/;
/** Names that tools look for. */
const givenNames = new Set(["README.md", ".npmrc"]);

export const namesAreKebabCase: Rule = (files) =>
  inWorkFolders(files).flatMap(({ path }) =>
    path
      .split("/")
      // A part of a Lua script starts with an underscore, so that it is not taken for a script.
      .map((name) => (name.endsWith(".lua") ? name.replace(/^_/, "") : name))
      .filter((name) => !kebabCase.test(name) && !givenNames.has(name))
      .map((name) => `${path}: ${name} is not kebab-case`),
  );

export const namesSayWhatIsInside: Rule = (files) =>
  inWorkFolders(files)
    .filter(({ path }) => path.split(/[/.-]/).some((word) => /^(util|helper)s?$/.test(word)))
    .map(({ path }) => `${path}: a name that says nothing`);

function inWorkFolders(files: readonly SourceFile[]): SourceFile[] {
  return files.filter(({ path }) => /^(src|test|scripts|tools|bench|examples|docs)\//.test(path));
}

/* ----------------------------------------------------------------- contents */

export const sourcesLeaveNothingToDo: Rule = (files) =>
  linesMatching(
    files.filter(({ path }) => path.startsWith("src/")),
    /\b(TODO|FIXME)\b/,
  );

/** Files that name the banned words for a reason. */
const filesWithBannedWords = new Set([
  // Lists the names that were replaced.
  "CHANGELOG.md",
  // Quotes failures as they were reported when they were found.
  "test/simulator/seeds.json",
  // Defines the words.
  "tools/shape/words.mjs",
]);

/**
 * Things send, receive, return and report. Comments, names and texts use these words everywhere;
 * a name in camelCase is looked at word by word.
 */
export const filesUsePlainWords: Rule = (files) =>
  files
    .filter(({ path }) => !filesWithBannedWords.has(path))
    .flatMap(({ path, text }) =>
      text.split("\n").flatMap((line, index) => {
        const banned = wordsOf(line).filter((word) => bannedWords.has(word));
        return banned.map((word) => `${path}:${index + 1}: ${word}`);
      }),
    );

/** The project stands on its own: it names no place outside itself and no package server. */
export const filesStandAlone: Rule = (files) =>
  linesMatching(files, /\.\.[/]shared\b|(^|[^\w.~-])[/]work[/]|\bregistry\.[a-z]+\w*\.[a-z]/);

/**
 * Tests are skipped only for what `support/requirements.ts` finds missing, which fails on CI. No
 * test is left out by hand.
 */
export const testsAreSkippedByRequirements: Rule = (files) => {
  const way = /\.(only|runIf|skip|skipIf|todo)\(/;
  return files
    .filter(({ path }) => path.startsWith("test/") && path.endsWith(".test.ts"))
    .flatMap(({ path, text }) => {
      const knows = text.includes("support/requirements.ts");
      return text.split("\n").flatMap((line, index) => {
        const isAllowed = knows && /\.skipIf\(!/.test(line);
        return way.test(line) && !isAllowed ? [`${path}:${index + 1} skips tests by itself`] : [];
      });
    });
};

export const luaScriptsHaveAHeader: Rule = (files) =>
  files
    .filter(({ path }) => /\/(?!_)[^/]+\.lua$/.test(path))
    .flatMap(({ path, text }) => {
      const header = /^(?:--.*(?:\n|$))*/.exec(text)?.[0] ?? "";
      return ["KEYS", "ARGV", "Returns"]
        .filter((word) => !new RegExp(String.raw`\b${word}\b`).test(header))
        .map((word) => `${path}: the header does not name ${word}`);
    });

export const relativeLinksLead: Rule = (files) => {
  const known = new Set(files.flatMap(({ path }) => [path, ...parentsOf(path)]));
  return files
    .filter(({ path }) => /^[^/]+\.md$|^docs\/.*\.md$/.test(path))
    .flatMap(({ path, text }) =>
      linksIn(text)
        .filter((link) => !/^([a-z][a-z+.-]*:|#|\/\/)/i.test(link))
        .map((link) => decodeURIComponent(link.replace(/[#?].*$/, "")).replace(/\/$/, ""))
        .filter((link) => !known.has(posix.join(posix.dirname(path), link)))
        .map((link) => `${path}: links to ${link}, which does not exist`),
    );
};

/** Inline links and images, reference definitions, and HTML; what is in code is no link. */
function linksIn(markdown: string): string[] {
  const prose = markdown.replaceAll(/^(```|~~~)[\s\S]*?^\1/gm, "").replaceAll(/`[^`\n]*`/g, "");
  const forms = [
    /\]\(\s*<?([^\s)>]+)/g,
    /^ {0,3}\[[^\]^][^\]]*\]:\s*<?([^\s>]+)/gm,
    /\b(?:href|src)="([^"]+)"/g,
  ];
  return forms.flatMap((form) => [...prose.matchAll(form)].map((match) => match[1] ?? ""));
}

function parentsOf(path: string): string[] {
  const parent = posix.dirname(path);
  return parent === "." ? ["."] : [parent, ...parentsOf(parent)];
}

/* ----------------------------------------------------------------- manifest */

export const packageHasNoDependencies: Rule = (files) =>
  manifests(files, "package.json").flatMap((manifest) => {
    const forbidden = ["dependencies", "optionalDependencies", "bundleDependencies"];
    const optional = manifest["peerDependenciesMeta"] as Record<string, { optional?: boolean }>;
    return [
      ...forbidden
        .filter((field) => Object.keys(manifest[field] ?? {}).length > 0)
        .map((field) => `package.json: has ${field}`),
      ...Object.keys(manifest["peerDependencies"] ?? {})
        .filter((peer) => optional?.[peer]?.optional !== true)
        .map((peer) => `package.json: the peer ${peer} is not optional`),
    ];
  });

/** Where a package was fetched from differs per machine; its integrity does not. */
export const lockfileNamesNoServer: Rule = (files) =>
  manifests(files, "package-lock.json").flatMap((lock) =>
    Object.entries((lock["packages"] ?? {}) as Record<string, object>)
      .filter(([, entry]) => "resolved" in entry)
      .map(([name]) => `package-lock.json: ${name} has "resolved"`),
  );

/** Without the packages of other platforms `npm ci` refuses the lockfile. */
export const lockfileIsComplete: Rule = (files) =>
  manifests(files, "package-lock.json").flatMap((lock) =>
    [...missingEntries(lock["packages"] as never).keys()].map(
      (name) => `package-lock.json: lacks ${name}; run \`npm run lockfile\``,
    ),
  );

function manifests(files: readonly SourceFile[], path: string): Record<string, object>[] {
  return files.filter((file) => file.path === path).map((file) => JSON.parse(file.text));
}

/* ------------------------------------------------------------------- shared */

function typescriptIn(files: readonly SourceFile[], folder: string): SourceFile[] {
  return files.filter(({ path }) => path.startsWith(folder) && /\.(ts|tsx|mts)$/.test(path));
}

function linesMatching(files: readonly SourceFile[], pattern: RegExp): string[] {
  return files.flatMap(({ path, text }) =>
    text.split("\n").flatMap((line, index) => {
      const match = pattern.exec(line);
      return match === null ? [] : [`${path}:${index + 1}: ${match[0].trim()}`];
    }),
  );
}

function place(file: SourceFile, { line }: Located): string {
  return `${file.path}:${line}`;
}
