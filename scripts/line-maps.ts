/**
 * Source maps of joined modules, by line: a stack's line of `dist/chunk-….js` becomes the line of the source that it was made of. Columns are
 * seven eighths of what a map takes, and the sources themselves would double the package, so both are left out; the sources are named where the
 * repository has them.
 */
import { SourceMap } from "node:module";
import type { SourceMapPayload } from "node:module";

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** A number as maps write it: five bits a digit, the lowest first, the sign in the lowest. */
function encoded(value: number): string {
  let rest = value < 0 ? (-value << 1) | 1 : value << 1;
  let text = "";
  do {
    const low = rest & 31;
    rest >>>= 5;
    text += digits.charAt(rest > 0 ? low | 32 : low);
  } while (rest > 0);
  return text;
}

/** The bundler's map of `text`, reduced to a place for each line; sources are below `sourceRoot`. */
export function lineMap(map: string, text: string, sourceRoot: string): string {
  const entries = new SourceMap(JSON.parse(map) as SourceMapPayload);
  const sources = new Map<string, number>();
  let [lastSource, lastLine] = [0, 0];
  const mappings = text.split("\n").map((line, index) => {
    const found = entries.findEntry(index, Math.max(line.search(/\S/), 0));
    if (!("originalSource" in found) || found.generatedLine !== index) return "";
    const path = found.originalSource.replace(/^.*?(?=src\/)/, "");
    const source = sources.get(path) ?? sources.size;
    sources.set(path, source);
    const segment = [0, source - lastSource, found.originalLine - lastLine, 0];
    [lastSource, lastLine] = [source, found.originalLine];
    return segment.map(encoded).join("");
  });
  return JSON.stringify({
    version: 3,
    sourceRoot,
    sources: [...sources.keys()],
    names: [],
    mappings: mappings.join(";"),
  });
}
