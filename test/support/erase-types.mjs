/**
 * Module hooks by which Node itself runs the tests and the source they test. Types become spaces, so that every line and
 * column is the one that was written and nothing has to be mapped back; and imports stay Node's own, which cost a call
 * nothing. What the test runner makes of a module instead takes it ten times as long, and then every use of an import
 * asks a getter for it.
 *
 *   import "tilewright/kernels"  ─▶ package.json: ./dist/kernels/index.js ─▶ src/kernels/index.ts ─▶ its types erased
 *
 * Tests and the snippets they run import "tilewright" as a user does: it is the source, so that no build is needed and
 * every test shares one instance of the library. Node runs this module on a thread of its own.
 */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { transformSync } from "@swc/wasm-typescript";

const root = new URL("../../", import.meta.url);
const manifest = JSON.parse(await readFile(new URL("package.json", root), "utf8"));

/** By what a user imports, the source of it. */
const sources = new Map(
  Object.entries(manifest.exports).flatMap(([path, { default: built }]) => {
    const source = built?.replace(/^\.\/dist\//, "src/").replace(/\.js$/, ".ts");
    return source === undefined
      ? []
      : [[path.replace(/^\./, manifest.name), new URL(source, root).href]];
  }),
);

export async function resolve(specifier, context, nextResolve) {
  const url = sources.get(specifier);
  return url === undefined
    ? nextResolve(specifier, context)
    : { url, format: "module", shortCircuit: true };
}

export async function load(url, context, nextLoad) {
  if (!/^file:.*\.ts(\?.*)?$/.test(url)) return nextLoad(url, context);
  const filename = fileURLToPath(url);
  const text = await readFile(filename, "utf8");
  const { code } = transformSync(text, { mode: "strip-only", module: true, filename });
  return { format: "module", source: code, shortCircuit: true };
}
