/** The declarations that users' programs can reach: the compiler writes a file for every module, and most are nobody's but the library's. */
import { readFileSync } from "node:fs";
import { posix } from "node:path";
import manifest from "../package.json" with { type: "json" };

const imported = /(?:\bfrom|\bimport\(|^import)\s*"(\.[^"]+)"/gm;

/** The paths, within `folder`, that declarations of the package's entries lead to. */
export function reachedTypes(folder: string): ReadonlySet<string> {
  const reached = new Set<string>();
  const visit = (path: string): void => {
    if (reached.has(path)) return;
    reached.add(path);
    const text = readFileSync(posix.join(folder, path), "utf8").replace(/\/\*[^]*?\*\//g, "");
    for (const [, name = ""] of text.matchAll(imported))
      visit(posix.join(posix.dirname(path), name.replace(/\.[jt]s$/, ".d.ts")));
  };
  for (const target of Object.values(manifest.exports))
    if (typeof target !== "string") visit(target.types.replace("./dist/", ""));
  return reached;
}

/** What the tables of ops say of each in words: as types these are literals, and nobody's program asks which. */
const summary = /\breadonly summary: "(?:[^"\\]|\\.)*";/g;

/** A declaration as it is packed. */
export function packedType(text: string): string {
  return text.replace(summary, "readonly summary: string;");
}
