/**
 * What an import costs a program: esbuild's bundle of it, minified and compressed, without what is loaded later by `import()`. The sizes are held
 * against `import-budgets.json`, a line each, by `test/import-budgets.test.ts`.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import type { Plugin } from "esbuild";
import manifest from "../package.json" with { type: "json" };
import { repositoryRoot } from "../test/source-files.ts";
import budgets from "./import-budgets.json" with { type: "json" };

const entries = Object.entries(manifest.exports).flatMap(([path, target]) =>
  typeof target === "string" ? [] : [path.replace(/^\./, "tilewright")],
);

/** Programs by what they are called in the table: each entry with all that it exports, and what somebody uses of some. */
const programs: ReadonlyMap<string, string> = new Map([
  ...entries.map((entry) => [entry, `export * from "${entry}";`] as const),
  ["a number format", 'import { f32 } from "tilewright"; console.log(f32.name);'],
  ["a file of numbers", 'import { readNpy } from "tilewright/files"; console.log(readNpy);'],
  ["a kernel", 'import { kernel } from "tilewright"; console.log(kernel);'],
  ["a device", 'import { open } from "tilewright"; console.log(open);'],
  [
    "three lines of arrays",
    'import { array, matmul } from "tilewright/arrays"; console.log(await matmul(array([[1, 2], [3, 4]]), array([1, -1])).values());',
  ],
]);

const deferred: Plugin = {
  name: "deferred",
  setup(bundler) {
    bundler.onResolve({ filter: /./ }, ({ path, kind }) =>
      kind === "dynamic-import" ? { path, external: true } : undefined,
    );
  },
};

/** The size of a program in thousands of bytes; `folder` is one from which the package is found. */
async function sizeOf(contents: string, folder: string): Promise<number> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: folder },
    plugins: [deferred],
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    write: false,
    logLevel: "error",
  });
  const bytes = outputFiles.reduce((sum, file) => sum + gzipSync(file.contents).length, 0);
  return Math.round(bytes / 100) / 10;
}

export interface ImportSize {
  readonly name: string;
  readonly size: number;
  readonly budget: number | undefined;
}

/** A budget may be exceeded by so much: compressed sizes change with names of files and of compressors. */
const margin = 1.03;
const smallest = 0.2;

export function isExceeded({ size, budget = 0 }: ImportSize): boolean {
  return size > budget * margin + smallest;
}

export async function importSizes(folder: string): Promise<readonly ImportSize[]> {
  const known: Readonly<Record<string, number>> = budgets;
  const sizes: ImportSize[] = [];
  for (const [name, program] of programs)
    sizes.push({ name, size: await sizeOf(program, folder), budget: known[name] });
  return sizes;
}

export function sizeTable(sizes: readonly ImportSize[]): string {
  const lines = sizes.map((each) => {
    const { name, size, budget } = each;
    const numbers = [size, budget ?? 0].map((number) => number.toFixed(1).padStart(7)).join(" ");
    return `${name.padEnd(22)} ${numbers}${isExceeded(each) ? "  exceeded" : ""}`;
  });
  return ["kB, compressed            is   budget", ...lines].join("\n");
}

/** Takes what was measured as the budgets. */
export function writeBudgets(sizes: readonly ImportSize[]): void {
  const measured = Object.fromEntries(sizes.map(({ name, size }) => [name, size]));
  const path = join(repositoryRoot, "scripts/import-budgets.json");
  writeFileSync(path, `${JSON.stringify(measured, undefined, 2)}\n`);
}
