/**
 * Builds the worker's code into dist/playground/worker, in parts that are loaded as they are needed (src/parts.ts), and
 * tells where each names the others:
 *
 *   start.js                                makes addresses for the others and loads the first
 *   worker.js ──▶ chunks of the simulator   what the first program needs
 *   loadPart("compiler-….js") …             the rest, later
 */
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { build } from "esbuild";
import { bundling, output, source } from "./bundle.mjs";

export const workerOutput = join(output, "worker");

/** Writes an output with calls of `loadPart` for imports that come later; gives where it names those that come before. */
function finishPart(name, imports) {
  let text = readFileSync(join(workerOutput, name), "utf8");
  const named = (kind) =>
    imports.filter((each) => each.kind === kind).map(({ path }) => basename(path));
  for (const later of named("dynamic-import"))
    text = text.replaceAll(`import("./${later}")`, `loadPart("${later}")`);
  writeFileSync(join(workerOutput, name), text);
  const found = named("import-statement").map((other) => {
    const from = text.indexOf(`"./${other}"`) + 1;
    if (from === 0) throw new Error(`${name} does not name ${other}`);
    // Everything before it is ASCII, so that places in the text are places in the file.
    return [from, from + `./${other}`.length, other];
  });
  return found.sort(([left], [right]) => left - right);
}

/** Every file with what it imports, for the page. */
export async function buildWorker() {
  await build({
    ...bundling,
    entryPoints: { start: join(source, "src/worker/start.ts") },
    outdir: workerOutput,
    format: "iife",
  });
  const { metafile } = await build({
    ...bundling,
    entryPoints: { worker: join(source, "src/worker/main.ts") },
    outdir: workerOutput,
    format: "esm",
    splitting: true,
    metafile: true,
    charset: "ascii",
    // Workers of the emulator's own are only for pages that share memory, which a frame without origin cannot.
    define: { "import.meta.url": '"about:blank"' },
  });
  return Object.fromEntries(
    Object.entries(metafile.outputs).map(([path, { imports }]) => [
      basename(path),
      finishPart(basename(path), imports),
    ]),
  );
}

/** The files that a worker begins with. */
export function firstParts(parts) {
  const found = new Set();
  const add = (name) => {
    found.add(name);
    for (const [, , other] of parts[name]) if (!found.has(other)) add(other);
  };
  add("worker.js");
  return ["start.js", ...found];
}
