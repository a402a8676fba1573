// @ts-check
/**
 * Source maps that are small enough to be published: one entry for each line of the source that
 * can be in a stack trace. Traces show lines, so they stay exact; a full map would be larger than
 * the code.
 */

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const valueOf = new Map(digits.split("").map((digit, index) => [digit, index]));

/** Matches code that can throw or call a function: everything except literals and assignments. */
const canBeInTrace = /[(.`[]|throw|await|yield/;

/**
 * Returns the map of minified code without names, texts and columns of the sources.
 *
 * @param {string} code
 * @param {{ file?: string | undefined, sources: readonly (string | null)[], mappings: string }} map
 */
export function mapLines(code, { file, sources, mappings }) {
  const texts = code.split("\n");
  let [source, line] = [0, 0];
  let [writtenSource, writtenLine] = [0, 0];
  const lines = mappings.split(";").map((generated, row) => {
    /** @type {{ column: number, source: number, line: number }[]} */
    const starts = [];
    let column = 0;
    for (const segment of generated === "" ? [] : generated.split(",")) {
      const [columns = 0, sourceStep, lineStep] = decode(segment);
      column += columns;
      if (sourceStep === undefined || lineStep === undefined) continue;
      source += sourceStep;
      line += lineStep;
      const last = starts.at(-1);
      if (last?.source !== source || last.line !== line) starts.push({ column, source, line });
    }
    let writtenColumn = 0;
    const kept = starts.filter((start, index) =>
      canBeInTrace.test(texts[row]?.slice(start.column, starts[index + 1]?.column) ?? ""),
    );
    return kept
      .map((start) => {
        const steps = [start.column - writtenColumn, start.source - writtenSource];
        const segment = [...steps, start.line - writtenLine, 0].map(encode).join("");
        [writtenColumn, writtenSource, writtenLine] = [start.column, start.source, start.line];
        return segment;
      })
      .join(",");
  });
  const sourceRoot = sources.length > 1 ? sharedFolder(sources) : "";
  const paths = sources.map((path) => path?.slice(sourceRoot.length) ?? null);
  const root = sourceRoot === "" ? {} : { sourceRoot };
  return { version: 3, file, ...root, sources: paths, names: [], mappings: lines.join(";") };
}

/**
 * Returns the folder that all sources are in, with the slash at its end. Written once, it saves
 * several kilobytes.
 *
 * @param {readonly (string | null)[]} sources
 */
function sharedFolder(sources) {
  const folders = sources.map((path) => path?.split("/").slice(0, -1) ?? []);
  const [first = []] = folders;
  const differs = first.findIndex((name, index) => folders.some((each) => each[index] !== name));
  const shared = differs === -1 ? first : first.slice(0, differs);
  return shared.map((name) => `${name}/`).join("");
}

/** @param {string} segment numbers in base 64, the lowest five bits and the sign first */
function decode(segment) {
  const numbers = [];
  let [number, shift] = [0, 0];
  for (const digit of segment) {
    const value = valueOf.get(digit) ?? 0;
    number += (value & 31) << shift;
    shift += 5;
    if (value < 32) {
      numbers.push(number & 1 ? -(number >>> 1) : number >>> 1);
      [number, shift] = [0, 0];
    }
  }
  return numbers;
}

/** @param {number} number */
function encode(number) {
  let rest = number < 0 ? (-number << 1) | 1 : number << 1;
  let text = "";
  do {
    const value = rest & 31;
    rest >>>= 5;
    text += digits[rest > 0 ? value | 32 : value];
  } while (rest > 0);
  return text;
}
