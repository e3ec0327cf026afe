/**
 * `npm run rename` rewrites programs by the rows of `docs/renames.json`: every use of what is renamed, nothing that is
 * merely called the same, and not a character besides.
 */
import { describe, expect, test } from "vitest";
import { renameText, Unreadable } from "../scripts/rename/rename-text.ts";
import { parseRenames, readRenames } from "../scripts/rename/table.ts";

const rows = parseRenames(
  JSON.stringify([
    { entry: "tilewright", kind: "export", old: "array", new: "tensor", since: "2" },
    { entry: "tilewright", kind: "type", old: "ArraySpec", new: "TensorSpec", since: "2" },
    { entry: "tilewright", kind: "method", of: ["Tile"], old: "largest", new: "max", since: "2" },
    { entry: "tilewright/arrays", kind: "type", old: "Array", new: "NDArray", since: "2" },
    {
      entry: "tilewright/arrays",
      kind: "signature",
      of: ["argmax", "nn.logSoftmax"],
      old: "(x, axis)",
      new: "(x, { axis })",
      since: "2",
    },
    {
      entry: "tilewright/kernels",
      kind: "option",
      of: ["convolution", "ConvolutionSpec"],
      old: "stride",
      new: "strides",
      argument: 0,
      since: "2",
    },
    {
      entry: "tilewright/kernels",
      kind: "value",
      of: ["matmul"],
      old: 'layout: "nk"',
      new: "transposed: true",
      argument: 0,
      since: "2",
    },
    {
      entry: "tilewright/kernels",
      kind: "option",
      of: ["matmul"],
      old: "b.given",
      new: "b.format",
      argument: 0,
      since: "2",
    },
  ]),
);

const renamed = (text: string, file = "program.ts"): string => renameText(file, text, rows).text;

test.each([
  {
    name: "an import and its uses",
    old: `import { array, f32 } from "tilewright";\nuse(array(f32, [4]), { x: array });`,
    new: `import { tensor, f32 } from "tilewright";\nuse(tensor(f32, [4]), { x: tensor });`,
  },
  {
    name: "the key of a shorthand",
    old: `import { array } from "tilewright";\nexport const all = { array };`,
    new: `import { tensor } from "tilewright";\nexport const all = { array: tensor };`,
  },
  {
    name: "an alias",
    old: `import { array as a } from "tilewright";\na();`,
    new: `import { tensor as a } from "tilewright";\na();`,
  },
  {
    name: "an alias that is the new name",
    old: `import { array as tensor } from "tilewright";\ntensor();`,
    new: `import { tensor } from "tilewright";\ntensor();`,
  },
  {
    name: "a namespace",
    old: `import * as tw from "tilewright";\ntw.array(); tw["array"](); let spec: tw.ArraySpec;`,
    new: `import * as tw from "tilewright";\ntw.tensor(); tw["tensor"](); let spec: tw.TensorSpec;`,
  },
  {
    name: "types",
    old: `import type { Array } from "tilewright/arrays";\nlet x: Array<"f32">;`,
    new: `import type { NDArray } from "tilewright/arrays";\nlet x: NDArray<"f32">;`,
  },
  {
    name: "a type that is imported where it stands",
    old: `let x: import("tilewright/arrays").Array<"f32">;`,
    new: `let x: import("tilewright/arrays").NDArray<"f32">;`,
  },
  {
    name: "a re-export, which keeps its name",
    old: `export { array } from "tilewright";\nexport { array as of } from "tilewright";`,
    new: `export { tensor as array } from "tilewright";\nexport { tensor as of } from "tilewright";`,
  },
  {
    name: "an import that is exported",
    old: `import { array } from "tilewright";\nexport { array };`,
    new: `import { tensor } from "tilewright";\nexport { tensor as array };`,
  },
  {
    name: "a dynamic import",
    old: `const { array } = await import("tilewright");\narray();`,
    new: `const { tensor } = await import("tilewright");\ntensor();`,
  },
  {
    name: "a dynamic import that is waited for",
    old: `import("tilewright").then(({ array, f32: f }) => array(f));`,
    new: `import("tilewright").then(({ tensor, f32: f }) => tensor(f));`,
  },
  {
    name: "an option",
    old: `import { convolution } from "tilewright/kernels";\nconvolution({ stride: 2, "stride": 1 });`,
    new: `import { convolution } from "tilewright/kernels";\nconvolution({ strides: 2, "strides": 1 });`,
  },
  {
    name: "an option in short",
    old: `import { convolution } from "tilewright/kernels";\nconst stride = 2;\nconvolution({ stride });`,
    new: `import { convolution } from "tilewright/kernels";\nconst stride = 2;\nconvolution({ strides: stride });`,
  },
  {
    name: "an option of an object that is spread, and of one with a type",
    old: `import { convolution, type ConvolutionSpec } from "tilewright/kernels";
const shared = { stride: 2 };
const given: ConvolutionSpec = { stride: shared.stride };
convolution({ ...shared, ...(deep && { x: 1 }) });`,
    new: `import { convolution, type ConvolutionSpec } from "tilewright/kernels";
const shared = { strides: 2 };
const given: ConvolutionSpec = { strides: shared.strides };
convolution({ ...shared, ...(deep && { x: 1 }) });`,
  },
  {
    name: "an option of an option",
    old: `import { matmul } from "tilewright/kernels";\nmatmul({ b: { given: 1 }, given: 2 });`,
    new: `import { matmul } from "tilewright/kernels";\nmatmul({ b: { format: 1 }, given: 2 });`,
  },
  {
    name: "what an option is set to",
    old: `import { matmul } from "tilewright/kernels";\nmatmul({ a, layout: 'nk' }); matmul({ layout: "kn" });`,
    new: `import { matmul } from "tilewright/kernels";\nmatmul({ a, transposed: true }); matmul({ layout: "kn" });`,
  },
  {
    name: "an argument that became an option",
    old: `import { argmax, nn } from "tilewright/arrays";
argmax(x, -1); argmax(x); nn.logSoftmax(f(x), axis); argmax(x, 1, { keepDims }); argmax(x, n as number, {});`,
    new: `import { argmax, nn } from "tilewright/arrays";
argmax(x, { axis: -1 }); argmax(x); nn.logSoftmax(f(x), { axis }); argmax(x, { axis: 1, keepDims }); argmax(x, { axis: n as number });`,
  },
  {
    name: "a method",
    old: `import { zeros } from "tilewright";\nzeros().largest().add(1);`,
    new: `import { zeros } from "tilewright";\nzeros().max().add(1);`,
  },
  {
    name: "what has the new name and the old one side by side",
    old: `import { array } from "tilewright";\nconst tensor = array();\nuse({ array });`,
    new: `import { tensor as array } from "tilewright";\nconst tensor = array();\nuse({ array });`,
  },
])("$name is renamed, once", ({ old, new: now }) => {
  expect(renamed(old)).toBe(now);
  expect(renamed(now)).toBe(now);
});

test.each([
  [`import { array } from "tilewright/arrays";\narray([1]);`],
  [`import { array } from "elsewhere";\narray([1]);`],
  [`const list: Array<number> = Array.from([1]);`],
  [`import { convolution } from "./mine.ts"; import "tilewright";\nconvolution({ stride: 2 });`],
])("what another module exports stays: %s", (text) => {
  expect(renamed(text)).toBe(text);
});

test("a variable that hides the import is not renamed, where it hides it", () => {
  const text = (name: string): string => `import { ${name} } from "tilewright";
const outer = (array) => array(1);
function inner() { const array = 2; return { array }; }
for (const array of [1]) use(array);
${name}(f32);`;
  expect(renamed(text("array"))).toBe(text("tensor"));
});

test.each(["program.js", "program.cjs", "program.mjs"])("JavaScript is renamed: %s", (file) => {
  const text = (name: string): string =>
    `const { ${name}, f32 } = require("tilewright");\nconst tw = require("tilewright");\ntw.${name}(${name}(f32));`;
  expect(renamed(text("array"), file)).toBe(text("tensor"));
});

test("elements of JSX are renamed", () => {
  const text = (name: string): string =>
    `import { ${name} } from "tilewright";\nexport const Page = () => <Row x={${name}(1)}>array</Row>;`;
  expect(renamed(text("array"), "page.tsx")).toBe(text("tensor"));
});

test("spaces and comments stay", () => {
  const text = (name: string): string =>
    `import {f32,\n\t${name}, // array\r\n} from 'tilewright'\n/* array */ ${name} ( f32 )\n`;
  expect(renamed(text("array"))).toBe(text("tensor"));
});

test("what cannot be seen is named with its line", () => {
  const text = `import { convolution, matmul } from "tilewright/kernels";
import { argmax } from "tilewright/arrays";
convolution(shared);
convolution({ ...theirs() });
matmul({ layout });
argmax(...both);`;
  const { notes, applied } = renameText("program.ts", text, rows);
  expect(notes.map((note) => note.replace(/ cannot.*/u, ""))).toEqual([
    "3: these options",
    "4: these options",
    "5: what this is",
    "6: these arguments",
  ]);
  expect(applied.size).toBe(0);
});

test("what does not parse is refused with the place", () => {
  const text = `import { array } from "tilewright";\narray(;`;
  expect(() => renamed(text)).toThrow(Unreadable);
  expect(() => renamed(text)).toThrow(/^2:7: /u);
});

describe("the rows of docs/renames.json", () => {
  const today = (text: string): string => renameText("program.ts", text, readRenames()).text;

  test.each([
    {
      name: "axes of tiles",
      old: `import { kernel } from "tilewright";
export const body = (x, y, f, list, set) => {
x.sum(1); x.max([0, 1], { keep: true }); x.cumsum(axis, { reverse }); x.sort(-1); x.expand(0).argmin(0);
x.sortWith(1, [y], { descending: true }); x.reduce("and", 0); x.reduce(f, 0); x.reduce(f, 0, 1); x.slice(0, 4, 1); };`,
      now: `import { kernel } from "tilewright";
export const body = (x, y, f, list, set) => {
x.sum({ axis: 1 }); x.max({ axis: [0, 1], keepDims: true }); x.cumsum({ axis, reverse }); x.sort({ axis: -1 }); x.expand({ axis: 0 }).argmin({ axis: 0 });
x.sortWith([y], { axis: 1, descending: true }); x.reduce("and", { axis: 0 }); x.reduce(f, 0); x.reduce(f, 0, { axis: 1 }); x.slice(0, 4, { axis: 1 }); };`,
    },
    {
      name: "methods of other classes",
      old: `import { kernel } from "tilewright";
export const body = (list, set) => { Math.max(1, 2); Promise.all(list); list.sort((a, b) => a - b); list.reduce((a, b) => a + b, 0); set.any(test); };`,
      now: `import { kernel } from "tilewright";
export const body = (list, set) => { Math.max(1, 2); Promise.all(list); list.sort((a, b) => a - b); list.reduce((a, b) => a + b, 0); set.any(test); };`,
    },
    {
      name: "an argument that goes behind others",
      old: `import { iota } from "tilewright/arrays";\niota([2, 3], 1, "i32");`,
      now: `import { iota } from "tilewright/arrays";\niota([2, 3], "i32", { axis: 1 });`,
    },
    {
      name: "options and values within a configuration",
      old: `import { attention, matmul } from "tilewright/kernels";
const configuration = { kernel: "narrow", turns: 2 } as const;
matmul({ a, b, configuration });
matmul({ a, b, configuration: { kernel: "persistent", schedule: "parts", turned: true } });
attention({ q, configuration: { kernel: "specialised", dealing: "in pairs" } });`,
      now: `import { attention, matmul } from "tilewright/kernels";
const configuration = { kernel: "skinny", sliceK: 2 } as const;
matmul({ a, b, configuration });
matmul({ a, b, configuration: { kernel: "persistent", schedule: "split-k", swapAB: true } });
attention({ q, configuration: { kernel: "warp-specialized", schedule: "paired" } });`,
    },
    {
      name: "options of the library",
      old: `import { argReduce, convolution, permute, quantized, reduce, topK } from "tilewright/kernels";
convolution({ x, w, stride: 2 }); reduce({ x, axes: [0], keep: true }); permute({ x, axes: [1, 0] });
argReduce({ x, find: "greatest" }); topK({ x, k: 2, least: true }); quantized(i4, [k, n], { group: 128, scale, zero: i4 });`,
      now: `import { argReduce, convolution, permute, quantized, reduce, topK } from "tilewright/kernels";
convolution({ x, w, strides: 2 }); reduce({ x, axis: [0], keepDims: true }); permute({ x, permutation: [1, 0] });
argReduce({ x, find: "max" }); topK({ x, k: 2, largest: false }); quantized(i4, [k, n], { groupSize: 128, scale, zeroPoint: i4 });`,
    },
  ])("rename $name, once", ({ old, now }) => {
    expect(today(old)).toBe(now);
    expect(today(now)).toBe(now);
  });
});
