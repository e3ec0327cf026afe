/**
 * The shape of the source: folders import only downwards, files form no cycles, the library needs no
 * host and no package, and files stay short enough to read.
 */
import { describe, expect, test } from "vitest";
import { listFiles, readText } from "./source-files.ts";
import { importCircles, importsOf } from "./support/imports.ts";
import type { Import } from "./support/imports.ts";

/** A folder imports only from itself and from folders before it. */
const folderOrder = [
  "support",
  "workers",
  "formats",
  "files",
  "targets",
  "ir",
  "layout",
  "lang",
  "passes",
  "happens-before",
  "sim",
  "ptx",
  "lower",
  "emulator",
  "device",
  "cpu",
  "cuda",
  "runtime",
  "bench",
  "tune",
  "kernels",
  "graph",
  "arrays",
  "distributed",
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
const nodeFiles = /^src\/(workers\/node(-peers)?|runtime\/threads\/node-worker)\.ts$/;

const files = listFiles("src", /\.ts$/);
const sources = files.filter((file) => !file.endsWith(".test.ts"));
const imports = new Map(sources.map((file) => [file, importsOf(file, readText(file))]));
const allImports = [...imports.values()].flat();

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
    const listed = readText("docs/architecture.md").matchAll(/^\| `src\/([\w-]+)` /gm);
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

  test("types that refer to each other across files form circles of three files at most", () => {
    const apps = listFiles("apps", /\.tsx?$/).filter((file) => !file.endsWith(".test.ts"));
    const all = [...sources, ...apps].map(
      (file) => [file, importsOf(file, readText(file))] as const,
    );
    // Interfaces in a file that imports neither side, or a type moved to where it is used, open a circle.
    const large = importCircles(new Map(all)).filter((circle) => circle.length > 3);
    // Devices, arrays, streams and operations all name each other still.
    expect(large.filter((circle) => circle.some((file) => folderOf(file) !== "device"))).toEqual(
      [],
    );
  });

  test("circles are found, of types as well", () => {
    const lines = {
      "a.ts": 'import { b } from "./b.ts";',
      "b.ts": 'import type { C } from "./c.ts";',
      "c.ts": 'import { a } from "./a.ts";\nimport { d } from "./d.ts";',
      "d.ts": 'const later = () => import("./e.ts");',
      "e.ts": 'export { d } from "./d.ts";',
      "f.ts": 'import { a } from "./a.ts";',
    };
    const graph = Object.entries(lines).map(
      ([file, text]) => [file, importsOf(file, text)] as const,
    );
    expect(importCircles(new Map(graph))).toEqual([
      ["a.ts", "b.ts", "c.ts"],
      ["d.ts", "e.ts"],
    ]);
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

describe("instructions of products", () => {
  /** By its kind, an op is named wherever one is meant; instructions by their record, but in the table, the targets and the emitter. */
  const ofOp =
    /\b(?:Op|Draft)<[^>]*"wgmma"|\bkind [!=]== "wgmma"|\.one\("wgmma"|\bemitOrigin\("wgmma"|\brequire\w+\("wgmma"|"wgmma".*\bkind"\]|^  wgmma: "wgmma",$/;
  const ofInstruction = /^src\/(?:targets|ptx\/emit|ptx\/forms)\//;
  const namesInstruction = (line: string): boolean =>
    /(?<!['\\`].*)"wgmma"/.test(line.replace(/^\s*(?:\*|\/\*|\/\/).*/, "")) && !ofOp.test(line);

  test("are asked what they are like, not which they are", () => {
    const offenders = sources
      .filter((file) => !ofInstruction.test(file))
      .flatMap((file) =>
        readText(file)
          .split("\n")
          .flatMap((line, index) =>
            namesInstruction(line) ? [`${file}:${index + 1}: ${line}`] : [],
          ),
      );
    expect(offenders).toEqual([]);
  });

  test.each([
    ['if (op.attributes.instruction === "wgmma") {', true],
    ['if (op.kind === "wgmma") {', false],
    ['features.includes("wgmma")', true],
    [' * made by "wgmma"', false],
  ])("%s is one that is asked which it is: %s", (line, expected) => {
    expect(namesInstruction(line)).toBe(expected);
  });
});

describe("unit tests", () => {
  test("share what lies in test itself and in test/support, and no cases or other tests", () => {
    const allowed = /^(src|examples)\/|^test\/(support\/.*|[^/]+)\.ts$/;
    const wrong = files
      .filter((file) => file.endsWith(".test.ts"))
      .flatMap((file) => importsOf(file, readText(file)))
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
