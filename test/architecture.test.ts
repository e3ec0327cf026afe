/**
 * The shape of the source: folders import only downwards, files form no cycles, the library needs no
 * host and no package, and files stay short enough to read.
 */
import { posix } from "node:path";
import { describe, expect, test } from "vitest";
import { listFiles, readText } from "./source-files.ts";

/** A folder imports only from itself and from folders before it. */
const folderOrder = [
  "support",
  "formats",
  "files",
  "targets",
  "ir",
  "layout",
  "lang",
  "passes",
  "order",
  "sim",
  "ptx",
  "lower",
  "emulator",
  "device",
  "cuda",
  "runtime",
  "bench",
  "tune",
  "kernels",
  "graph",
  "arrays",
  "testing",
  "cli",
];
const entry = "src/index.ts";

/** Who may import what is not ours. */
const outsideImports: { readonly [folder: string]: RegExp } = {
  cli: /./,
  cuda: /^node:/,
  files: /^fflate$/,
  testing: /^vitest$/,
};
/** Files that a browser has a stand-in for, or never loads. */
const nodeFiles = /^src\/emulator\/threads\/node(-worker)?\.ts$/;

interface Import {
  readonly from: string;
  readonly specifier: string;
  /** The imported file, for an import of ours. */
  readonly target: string | undefined;
  /** Whether nothing of it is left at run time. */
  readonly typeOnly: boolean;
  /** When it is called, not when the file is loaded. */
  readonly later: boolean;
}

/** Imports as Prettier writes them, outside of comments. */
const statement = /^(?:import|export) (?:(?<names>[^;"'=]*)\bfrom )?"(?<specifier>[^"\n]+)";$/gm;
const expression = /^(?!\s*(?:\*|\/\/)).*\bimport\("(?<specifier>[^"\n]+)"\)/gm;

const files = listFiles("src", /\.ts$/);
const sources = files.filter((file) => !file.endsWith(".test.ts"));
const imports = new Map(sources.map((file) => [file, importsOf(file)]));
const allImports = [...imports.values()].flat();

function importsOf(file: string): readonly Import[] {
  const text = readText(file);
  const found = [statement, expression].flatMap((form) =>
    [...text.matchAll(form)].map(({ groups }) => ({ groups, later: form === expression })),
  );
  return found.map(({ groups, later }) => {
    const { names = "", specifier = "" } = groups ?? {};
    const ours = specifier.startsWith(".");
    return {
      from: file,
      specifier,
      later,
      target: ours ? posix.join(posix.dirname(file), specifier) : undefined,
      typeOnly: /^type\b/.test(names),
    };
  });
}

/** The folder below src that holds a file; "" for the files in src itself. */
function folderOf(file: string): string {
  const [, folder, rest] = file.split("/");
  return rest === undefined ? "" : (folder ?? "");
}

/** The entry may import every folder but the command line's, which it comes just before. */
function rank(file: string): number {
  return file === entry ? folderOrder.indexOf("cli") - 0.5 : folderOrder.indexOf(folderOf(file));
}

function describeImport({ from, specifier }: Import): string {
  return `${from} imports ${specifier}`;
}

/**
 * The first cycle found by depth-first search, as the files along it. Types may refer to each other
 * across files; what is evaluated may not.
 */
function findCycle(): readonly string[] {
  const finished = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): readonly string[] => {
    if (finished.has(file)) return [];
    const start = path.indexOf(file);
    if (start >= 0) return [...path.slice(start), file];
    path.push(file);
    for (const { target, typeOnly } of imports.get(file) ?? []) {
      const cycle = target === undefined || typeOnly ? [] : visit(target);
      if (cycle.length > 0) return cycle;
    }
    path.pop();
    finished.add(file);
    return [];
  };
  for (const file of sources) {
    const cycle = visit(file);
    if (cycle.length > 0) return cycle;
  }
  return [];
}

describe("architecture", () => {
  test("every folder has its place in the order, and in the page on architecture", () => {
    const unplaced = files.filter(
      (file) => file !== entry && !folderOrder.includes(folderOf(file)),
    );
    expect(unplaced).toEqual([]);
    const listed = readText("docs/architecture.md").matchAll(/^\| `src\/(\w+)` /gm);
    expect([...listed].map(([, folder]) => folder)).toEqual(folderOrder);
  });

  test("relative imports name existing files, with their extension", () => {
    const unknown = allImports.filter(({ target }) => target !== undefined && !imports.has(target));
    expect(unknown.map(describeImport)).toEqual([]);
  });

  test("folders import only downwards", () => {
    const upward = allImports.filter(
      ({ from, target }) => target !== undefined && rank(target) > rank(from),
    );
    expect(upward.map(describeImport)).toEqual([]);
  });

  test("no file imports the entry", () => {
    expect(allImports.filter(({ target }) => target === entry).map(describeImport)).toEqual([]);
  });

  test("files form no cycles", () => {
    expect(findCycle()).toEqual([]);
  });

  test("the entry loads no back end before one is opened", () => {
    const loaded = new Set<string>([entry]);
    for (const file of loaded)
      for (const { target, typeOnly, later } of imports.get(file) ?? [])
        if (target !== undefined && !typeOnly && !later) loaded.add(target);
    expect([...loaded].filter((file) => /-backend\.ts$|^src\/cuda\//.test(file))).toEqual([]);
    expect(loaded.size).toBeGreaterThan(100);
  });

  test("only the outermost folders import Node modules or packages", () => {
    const outside = allImports.filter(
      ({ from, specifier, target }) =>
        target === undefined &&
        outsideImports[folderOf(from)]?.test(specifier) !== true &&
        !(nodeFiles.test(from) && specifier.startsWith("node:")),
    );
    expect(outside.map(describeImport)).toEqual([]);
  });
});

describe("unit tests", () => {
  test("share what lies in test itself and in test/support, and no cases or other tests", () => {
    const allowed = /^(src|examples)\/|^test\/(support\/.*|[^/]+)\.ts$/;
    const wrong = files
      .filter((file) => file.endsWith(".test.ts"))
      .flatMap(importsOf)
      .filter(({ target = "src/" }) => target.endsWith(".test.ts") || !allowed.test(target));
    expect(wrong.map(describeImport)).toEqual([]);
  });
});

describe("source files", () => {
  test("have at most 600 lines", () => {
    const long = [...files, ...listFiles("test", /\.ts$/)]
      .map((file) => ({ file, lines: readText(file).split("\n").length - 1 }))
      .filter(({ lines }) => lines > 600);
    expect(long).toEqual([]);
  });

  test("begin by saying why they exist", () => {
    const header = /^(#!.*\n)?\/\*\*/;
    expect(sources.filter((file) => !header.test(readText(file)))).toEqual([]);
  });

  test("name no path of a particular machine", () => {
    // Assembled, so that this file does not match itself.
    const places = ["work", "home", "root", "Users"].map((name) => `/${name}/`);
    const offenders = listFiles("", /\.(ts|mjs|js|json|md|txt|ir)$/).filter((file) => {
      const text = readText(file);
      return places.some((place) => text.includes(place));
    });
    expect(offenders).toEqual([]);
  });
});
