/**
 * Windows of the last tiles: which there are, and that what stays in slots of shared memory, numbers of tiles before with NaNs among them,
 * reaches no result. One or two workers have all tiles, so that the last ones come after whole ones.
 */
import { expect, test } from "vitest";
import { bf16, f32, f8e4m3fn } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import type { HostArray } from "../../../formats/hostarray.ts";
import { tensor, dim } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import { printPtx } from "../../../ptx/printer.ts";
import { lower } from "../../../lower/stages.ts";
import { open } from "../../../runtime/open.ts";
import { captureLocation } from "../../../support/location.ts";
import { targets } from "../../../targets/target.ts";
import type { PersistentConfiguration, ProductSizes } from "../configuration.ts";
import { edgesOf, fetchedSides, windowsOf } from "./edges.ts";
import type { Edges } from "../kernel-context.ts";
import { matmul, problemOf } from "../matmul.ts";
import { edgeOf } from "../cost/out-of-bounds.ts";
import { persistentKernel } from "../persistent.ts";
import type { PersistentForm } from "../kernel-context.ts";
import type { MatmulProblem } from "../problem.ts";
import { recipeOf } from "../f32-emulation.ts";
import type { Recipe } from "../f32-emulation.ts";
import { hasOneTile } from "../tile-shapes.ts";

const location = captureLocation();
const [m, n, k] = [dim("m"), dim("n"), dim("k")];
const narrow: PersistentConfiguration = {
  ...{ kernel: "persistent", consumers: 1, columns: 192, stages: 2 },
  ...{ schedule: "tiles", swapAB: false, cluster: 1 },
};

function problemFor(
  dtype: DType,
  byColumns: readonly ("a" | "b")[],
): { readonly problem: MatmulProblem; readonly recipe: Recipe } {
  const [a, b] = [
    tensor(dtype, [m, k], byColumns.includes("a") ? { strides: [1, m] } : {}),
    tensor(dtype, [k, n], byColumns.includes("b") ? { strides: [1, k] } : {}),
  ];
  const problem = problemOf(
    "matmul",
    dtype === f32
      ? { a, b, precision: "tf32" }
      : { a, b, out: bf16, ...(dtype.bits === 8 && { accumulation: "fast" as const }) },
    location,
  );
  const recipe = recipeOf(problem);
  if (recipe === undefined) throw new Error("no recipe");
  return { problem, recipe };
}

/** The edges that tiles have, whether or not they are worth it. */
function allEdges(
  problem: MatmulProblem,
  recipe: Recipe,
  configuration: PersistentConfiguration,
  sizes: ProductSizes,
): Edges {
  const { row, column } = fetchedSides(problem, recipe, configuration, sizes);
  const { cluster } = configuration;
  const isShared = cluster > 1 && column.box === 1;
  const [part, left] = [column.tile / cluster, column.extent % column.tile];
  const moved = isShared && left > 0 && left <= part;
  const own = isShared ? { ...column, tile: part, blocks: moved ? 1 : cluster } : column;
  return { row: edgeOf(row), column: edgeOf(own), ...(moved && { moved }) };
}

interface Case {
  readonly name: string;
  readonly place: "simulator" | "emulator";
  readonly sizes: readonly [number, number, number];
  readonly edges: Edges;
  readonly configuration?: Partial<PersistentConfiguration>;
  readonly byColumns?: readonly ("a" | "b")[];
  readonly dtype?: DType;
}

const cases: readonly Case[] = [
  {
    name: "b by rows",
    place: "simulator",
    sizes: [72, 200, 200],
    edges: { row: 16, column: 64 },
  },
  ...(["simulator", "emulator"] as const).map((place) => ({
    name: "the first tile is a last one",
    place,
    sizes: [8, 72, 200] as const,
    edges: { row: 16, column: 128 },
  })),
  {
    name: "b by rows",
    place: "emulator",
    sizes: [136, 200, 136],
    edges: { row: 32, column: 64 },
    configuration: { consumers: 2 },
  },
  {
    name: "both by columns, in pairs",
    place: "emulator",
    sizes: [136, 200, 136],
    edges: { row: undefined, column: 24, moved: true },
    configuration: { cluster: 2 },
    byColumns: ["a", "b"],
  },
  {
    name: "b by rows, in pairs",
    place: "simulator",
    sizes: [136, 200, 136],
    edges: { row: 16, column: 64 },
    configuration: { cluster: 2 },
  },
  {
    name: "b by columns, of pairs of which one block has nothing",
    place: "simulator",
    sizes: [64, 200, 136],
    edges: { row: 16, column: 24, moved: true },
    configuration: { cluster: 2 },
    byColumns: ["b"],
  },
  {
    name: "b by columns, of pairs of which one block has nothing and the other nearly all",
    place: "emulator",
    sizes: [136, 280, 136],
    edges: { row: 16, column: undefined, moved: true },
    configuration: { cluster: 2 },
    byColumns: ["b"],
  },
  {
    name: "A and B swapped",
    place: "emulator",
    sizes: [36, 72, 200],
    edges: { row: undefined, column: 8 },
    configuration: { columns: 32, swapAB: true },
  },
  {
    name: "split along k",
    place: "simulator",
    sizes: [72, 200, 520],
    edges: { row: 16, column: 64 },
    configuration: { schedule: "stream-k" },
  },
  {
    name: "FP8",
    place: "emulator",
    sizes: [72, 208, 272],
    edges: { row: 16, column: 48 },
    dtype: f8e4m3fn,
    byColumns: ["b"],
  },
  {
    name: "f32 as tf32",
    place: "emulator",
    sizes: [72, 72, 104],
    edges: { row: 16, column: 16 },
    configuration: { columns: 64 },
    dtype: f32,
    byColumns: ["b"],
  },
];

test.each(cases)("$name, on the $place", async (each) => {
  const { place, edges, byColumns = [], dtype = bf16 } = each;
  const [rows, columns, depth] = each.sizes;
  const configuration = { ...narrow, ...each.configuration };
  const sizes = { m: rows, n: columns, k: depth, batch: 1 };
  const { problem, recipe } = problemFor(dtype, byColumns);
  expect(allEdges(problem, recipe, configuration, sizes)).toEqual(edges);
  const form: PersistentForm = {
    ...{ problem, recipe, configuration, sizes, edges, location, sums: "registers" },
    ...{
      prepared: { a: undefined, b: undefined },
      processors: configuration.cluster,
      cache: 50e6,
      parts: 1,
      copiesOut: !configuration.swapAB,
    },
  };
  // Of -1, 0 and 1, whose sums every format holds; the first row of a and the first column of b are NaNs.
  const of = (count: number, step: number): number[] =>
    Array.from({ length: count }, (_, index) => (Math.trunc(index * step) % 3) - 1);
  const [left, right] = [of(rows * depth, 1.37).fill(NaN, 0, depth), of(depth * columns, 2.71)];
  for (let at = 0; at < depth; at += 1) right[at * columns] = NaN;
  const device = await open(place, { onNotes: () => undefined });
  // In the order in which memory has them.
  const given = (
    name: "a" | "b",
    values: readonly number[],
    shape: [number, number],
  ): HostArray => {
    const across = shape[1];
    const stored = values.map((value, index) => {
      const [row, column] = [index % shape[0], Math.floor(index / shape[0])];
      return byColumns.includes(name) ? (values[row * across + column] ?? NaN) : value;
    });
    return fromNumbers(dtype, byColumns.includes(name) ? [across, shape[0]] : shape, stored);
  };
  const kernel = persistentKernel(form);
  const { out } = (await device.run(
    kernel as never,
    { a: given("a", left, [rows, depth]), b: given("b", right, [depth, columns]) } as never,
    {
      dimensions: hasOneTile(form)
        ? {}
        : { workers: configuration.schedule === "stream-k" ? 2 : 1 },
    },
  )) as unknown as { readonly out: Parameters<typeof toNumbers>[0] };
  device.dispose();
  const exact = Array.from({ length: rows * columns }, (_, index) => {
    const [row, column] = [Math.floor(index / columns), index % columns];
    let sum = 0;
    for (let at = 0; at < depth; at += 1)
      sum += (left[row * depth + at] ?? 0) * (right[at * columns + column] ?? 0);
    return sum;
  });
  expect([...toNumbers(out)]).toEqual(exact);
  expect(exact.filter((sum) => Number.isNaN(sum)).length).toBe(rows + columns - 1);
});

test("tiles have edges where many of them reach beyond the end at once", () => {
  const byRows = problemFor(bf16, []);
  const edges = (rows: number, columns: number, changed: Partial<PersistentConfiguration> = {}) =>
    edgesOf(
      ...([byRows.problem, byRows.recipe, { ...narrow, ...changed }] as const),
      { m: rows, n: columns, k: 4096, batch: 1 },
      targets.sm_90a,
    );
  expect(edges(2816, 448)).toEqual({ column: 64 });
  expect(edges(2816, 576)).toEqual({});
  // A part of a box is fetched with the rest of it.
  expect(edges(2816, 530)).toEqual({});
  expect(edges(128, 448)).toEqual({});
  expect(edges(72, 7120, { columns: 128 })).toEqual({ row: 16 });
  expect(edges(72, 1024, { columns: 128 })).toEqual({});
});

test("the blocks of a pair have windows of their own part of columns along k, or others' columns where they have none", () => {
  const { problem, recipe } = problemFor(bf16, ["b"]);
  const pairs = { ...narrow, cluster: 2 } as const;
  const [edges, asked] = [new Map<number, Edges>(), new Map<number, number | undefined>()];
  for (const columns of [448, 464, 480, 530, 576]) {
    const sizes = { m: 5632, n: columns, k: 4096, batch: 1 };
    const own = edgesOf(problem, recipe, pairs, sizes, targets.sm_90a);
    edges.set(columns, own);
    asked.set(columns, windowsOf(own, pairs, fetchedSides(problem, recipe, pairs, sizes)).column);
  }
  // Of 192 columns 64, 80, 96, 146 and all are inside; blocks have 96 each.
  expect([...edges.values()]).toEqual([
    { column: 72, moved: true },
    { column: undefined, moved: true },
    { column: undefined, moved: true },
    { column: 72 },
    {},
  ]);
  expect([...asked.values()]).toEqual([72, 96, 96, 144, undefined]);
});

test("functions of users are given tiles without anything of others", () => {
  const sizes = { m: 2816, n: 448, k: 4096 };
  const copies = (epilogue?: (tiles: { readonly sums: Tile<"f32"> }) => Tile<"bf16">): number => {
    const own = { a: bf16, b: bf16, configuration: narrow } as const;
    const op = matmul(epilogue === undefined ? own : { ...own, epilogue });
    const texts = op
      .kernels(sizes)
      .map(({ kernel }) => printPtx(lower(kernel, targets.sm_90a).module));
    return texts.join().match(/cp\.async\.bulk\.tensor\.2d\.shared::cluster/g)?.length ?? 0;
  };
  // One box of a, three of b, and one of b in the last tiles.
  expect(copies()).toBe(5);
  expect(copies(({ sums }) => sums.abs().cast(bf16))).toBe(4);
});
