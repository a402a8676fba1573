import { posix } from "node:path";
import type { SourceFile } from "../support/source-files.ts";

/**
 * Finds links that lead nowhere: relative links and `#anchors` of all Markdown pages, paths that
 * pages show as code, and pages that code names (`docs/….md`, with or without an anchor).
 * Looks only at the files it is given, so a test can plant a dead link.
 */
export function deadLinks(files: readonly SourceFile[]): string[] {
  const texts = new Map(files.map(({ path, text }) => [path, text]));
  const known = new Set([...texts.keys()].flatMap((path) => [path, ...parentsOf(path)]));
  const anchors = new Map<string, ReadonlySet<string>>();

  function complaintAbout(target: string, anchor: string): string | undefined {
    if (!known.has(target)) return `${target} does not exist`;
    if (anchor === "" || !target.endsWith(".md")) return undefined;
    const found = anchors.get(target) ?? anchorsIn(texts.get(target) ?? "");
    anchors.set(target, found);
    return found.has(anchor) ? undefined : `${target} has no heading for #${anchor}`;
  }

  return files.flatMap(({ path, text }) =>
    referencesIn(path, text).flatMap(({ line, target, anchor }) => {
      const complaint = complaintAbout(target, anchor);
      return complaint === undefined ? [] : [`${path}:${line}: ${complaint}`];
    }),
  );
}

interface Reference {
  readonly line: number;
  /** Path from the root of the project. */
  readonly target: string;
  readonly anchor: string;
}

function referencesIn(path: string, text: string): Reference[] {
  if (path.endsWith(".md")) return [...linksIn(path, text), ...pathsInCode(text)];
  if (/\.(ts|mts|mjs|js|lua|json)$/.test(path)) return pagesNamedIn(text);
  return [];
}

/** Inline links and images, reference definitions, and HTML. What is in code is no link. */
function linksIn(path: string, markdown: string): Reference[] {
  const prose = withoutFences(markdown).replaceAll(/`[^`\n]*`/g, "");
  const forms = [
    /\]\(\s*<?([^\s)>]+)/g,
    /^ {0,3}\[[^\]^][^\]]*\]:\s*<?([^\s>]+)/gm,
    /\b(?:href|src)="([^"]+)"/g,
  ];
  return forms
    .flatMap((form) => [...prose.matchAll(form)])
    .filter(([, link = ""]) => !/^([a-z][a-z+.-]*:|\/\/)/i.test(link))
    .map((match) => {
      const [to = "", anchor = ""] = (match[1] ?? "").split("#");
      const file = decodeURIComponent(to.replace(/\?.*$/, "")).replace(/\/$/, "");
      const target = file === "" ? path : posix.join(posix.dirname(path), file);
      return { line: lineAt(prose, match.index), target, anchor: decodeURIComponent(anchor) };
    });
}

const folders = "bench|docs|examples|faults|scripts|src|test|tools";

/** Files that a page names as code: `src/core/lease/lease.ts`, and commands that run one. */
function pathsInCode(markdown: string): Reference[] {
  const name = new RegExp(
    String.raw`(?<![\w./-])(?:${folders})/[\w./-]+\.(?:md|mjs|ts|lua)\b`,
    "g",
  );
  return [...withoutFences(markdown).matchAll(/`[^`\n]+`/g)].flatMap((span) =>
    [...span[0].matchAll(name)].map(([target]) => {
      return { line: lineAt(markdown, span.index), target, anchor: "" };
    }),
  );
}

function pagesNamedIn(code: string): Reference[] {
  return [...code.matchAll(/(?<![\w./-])(docs\/[\w/-]+\.md)(?:#([\w-]+))?/g)].map((match) => {
    return { line: lineAt(code, match.index), target: match[1] ?? "", anchor: match[2] ?? "" };
  });
}

/** The anchors that a page has, made of its headings as GitHub makes them. */
function anchorsIn(markdown: string): Set<string> {
  const prose = withoutFences(markdown);
  const given = [...prose.matchAll(/\b(?:id|name)="([^"]+)"/g)].map((match) => match[1] ?? "");
  const anchors = new Set(given);
  for (const [, heading = ""] of prose.matchAll(/^#{1,6} +(.*?)(?: +#+)?$/gm)) {
    const slug = slugOf(heading);
    let anchor = slug;
    for (let more = 1; anchors.has(anchor); more += 1) anchor = `${slug}-${more}`;
    anchors.add(anchor);
  }
  return anchors;
}

function slugOf(heading: string): string {
  const text = heading.replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, "$1");
  const kept = text.toLowerCase().replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, "");
  return kept.trim().replaceAll(" ", "-");
}

/** The text without fenced code; lines stay where they are. */
function withoutFences(markdown: string): string {
  return markdown.replaceAll(/^ *(```|~~~)[\s\S]*?^ *\1/gm, (code) =>
    code.replaceAll(/[^\n]/g, ""),
  );
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

function parentsOf(path: string): string[] {
  const parent = posix.dirname(path);
  return parent === "." ? ["."] : [parent, ...parentsOf(parent)];
}
