/** Gathers and scatters by constants: what becomes of them, and that their bits stay, for random tables beside the evaluator. */
import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { evaluate, isTensorDatum, tensor } from "../evaluate/index.ts";
import type { Tensor } from "../evaluate/index.ts";
import { dcePass } from "../passes/dce.ts";
import type { GraphModule } from "../ops/node.ts";
import { isTensor, sizeOf } from "../ops/types.ts";
import { parseGraph, printGraph } from "../text/index.ts";
import { verifyGraph } from "../verify/index.ts";
import { constantPicksPass } from "./pass.ts";

function moduleOf(text: string): GraphModule {
  const [module] = parseGraph(text, "picks.mlir");
  if (module === undefined) throw new Error("the text has a program");
  return module;
}

function rewritten(module: GraphModule): GraphModule {
  const after = dcePass.run(constantPicksPass.run(module));
  verifyGraph(after);
  return after;
}

function kindsOf(text: string): readonly string[] {
  const printed = printGraph(rewritten(moduleOf(text)));
  return [...printed.matchAll(/"?stablehlo\.(\w+)"?/g)].flatMap(([, kind]) =>
    kind === undefined || kind === "constant" || kind === "return" ? [] : [kind],
  );
}

/** Inputs with NaN and zeros of both signs among small whole numbers. */
function inputsOf(module: GraphModule, random: Random): readonly Tensor[] {
  const { parameters } = module.functions.get("main")?.body ?? { parameters: [] };
  return parameters.map(({ type }) => {
    if (!isTensor(type)) throw new Error("parameters are tensors");
    const values = Float32Array.from({ length: sizeOf(type.shape) }, () =>
      random.pick([1, -2, 3.5, 0, -0, Number.NaN]),
    );
    return tensor("f32", type.shape, values);
  });
}

function expectSame(text: string, random: Random, note: string): void {
  const module = moduleOf(text);
  const inputs = inputsOf(module, random);
  const [wanted] = evaluate(module, "main", inputs).filter(isTensorDatum);
  const [found] = evaluate(rewritten(module), "main", inputs).filter(isTensorDatum);
  expect(found?.data, note).toEqual(wanted?.data);
}

const triangle = [
  [1, 0],
  [2, 0],
  [2, 1],
];

function pairsText(pairs: readonly (readonly number[])[]): string {
  const column = (i: number): string => pairs.map((pair) => pair[i]).join(", ");
  return [0, 1]
    .map(
      (i) => `%c${i} = stablehlo.constant dense<[${column(i)}]> : tensor<${pairs.length}xi32>
    %z${i} = stablehlo.constant dense<0> : tensor<${pairs.length}xi32>
    %n${i} = stablehlo.constant dense<3> : tensor<${pairs.length}xi32>
    %l${i} = stablehlo.compare LT, %c${i}, %z${i} : (tensor<${pairs.length}xi32>, tensor<${pairs.length}xi32>) -> tensor<${pairs.length}xi1>
    %a${i} = stablehlo.add %c${i}, %n${i} : tensor<${pairs.length}xi32>
    %s${i} = stablehlo.select %l${i}, %a${i}, %c${i} : tensor<${pairs.length}xi1>, tensor<${pairs.length}xi32>
    %b${i} = stablehlo.reshape %s${i} : (tensor<${pairs.length}xi32>) -> tensor<${pairs.length}x1xi32>`,
    )
    .concat(
      `%i = stablehlo.concatenate %b0, %b1, dim = 1 : (tensor<${pairs.length}x1xi32>, tensor<${pairs.length}x1xi32>) -> tensor<${pairs.length}x2xi32>`,
    )
    .join("\n");
}

describe("pairs of a triangle", () => {
  const gathered = `func.func @main(%x: tensor<4x3x3xf32>) -> tensor<4x3xf32> {
    ${pairsText([...triangle.slice(0, 2), [-1, -2]])}
    %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1, 2], start_index_map = [1, 2], index_vector_dim = 1>, slice_sizes = array<i64: 4, 1, 1>}> : (tensor<4x3x3xf32>, tensor<3x2xi32>) -> tensor<4x3xf32>
    return %0 : tensor<4x3xf32> }`;
  const scattered = `func.func @main(%x: tensor<4x3x3xf32>, %u: tensor<4x3xf32>) -> tensor<4x3x3xf32> {
    ${pairsText(triangle)}
    %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1, 2], scatter_dims_to_operand_dims = [1, 2], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x3x3xf32>, tensor<3x2xi32>, tensor<4x3xf32>) -> tensor<4x3x3xf32>
    return %0 : tensor<4x3x3xf32> }`;
  test("are one gather by a table", () => {
    expect(kindsOf(gathered)).toEqual(["reshape", "gather", "gather", "reshape"]);
    expectSame(gathered, new Random(1), "gathered");
  });
  test("are scattered by the inverse of the table", () => {
    expect(kindsOf(scattered)).not.toContain("scatter");
    expectSame(scattered, new Random(2), "scattered");
  });
});

const oneAxis = (table: readonly number[], extent: number): string =>
  `func.func @main(%x: tensor<2x${extent}x3xf32>) -> tensor<2x${table.length}x3xf32> {
    %i = stablehlo.constant dense<[${table.map((each) => `[${each}]`).join(", ")}]> : tensor<${table.length}x1xi32>
    %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 2, 1, 3>}> : (tensor<2x${extent}x3xf32>, tensor<${table.length}x1xi32>) -> tensor<2x${table.length}x3xf32>
    return %0 : tensor<2x${table.length}x3xf32> }`;

const added = (table: readonly number[], extent: number, combine: string): string =>
  `func.func @main(%x: tensor<2x${extent}x3xf32>, %u: tensor<2x${table.length}x3xf32>) -> tensor<2x${extent}x3xf32> {
    %i = stablehlo.constant dense<[${table.map((each) => `[${each}]`).join(", ")}]> : tensor<${table.length}x1xi32>
    %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 2], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      ${combine}
    }) : (tensor<2x${extent}x3xf32>, tensor<${table.length}x1xi32>, tensor<2x${table.length}x3xf32>) -> tensor<2x${extent}x3xf32>
    return %0 : tensor<2x${extent}x3xf32> }`;

const sums = "%s = stablehlo.add %a, %b : tensor<f32>\n stablehlo.return %s : tensor<f32>";
const differences =
  "%s = stablehlo.subtract %b, %a : tensor<f32>\n stablehlo.return %s : tensor<f32>";
const last = "stablehlo.return %b : tensor<f32>";

test.each([
  ["every second", [1, 3, 5], 6, ["slice"]],
  ["backwards", [5, 4, 3], 6, ["slice", "reverse"]],
  ["the same", [2, 2, 2], 6, ["slice", "broadcast_in_dim"]],
  ["all", [0, 1, 2, 3], 4, []],
  ["clamped to the last", [7, 9], 4, ["slice", "broadcast_in_dim"]],
  ["columns of a matrix", [0, 3, 1, 4, 2, 5], 6, ["reshape", "transpose", "reshape"]],
] as const)("a gather of rows is what it is: %s", (_, table, extent, kinds) => {
  expect(kindsOf(oneAxis(table, extent))).toEqual(kinds);
  expectSame(oneAxis(table, extent), new Random(3), table.join());
});

test("a scatter of one window writes where it lies, or nowhere", () => {
  expect(kindsOf(added([4], 6, sums))).toEqual(["slice", "add", "dynamic_update_slice"]);
  expectSame(added([4], 6, sums), new Random(4), "inside");
  expect(kindsOf(added([6], 6, sums))).toEqual([]);
});

test("a diagonal is padded with holes", () => {
  const text = `func.func @main(%x: tensor<4x4xf32>, %u: tensor<4xf32>) -> tensor<4x4xf32> {
    %n = stablehlo.iota dim = 0 : tensor<4x2xi32>
    %0 = "stablehlo.scatter"(%x, %n, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      ${sums}
    }) : (tensor<4x4xf32>, tensor<4x2xi32>, tensor<4xf32>) -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32> }`;
  expect(kindsOf(text)).toContain("pad");
  expect(kindsOf(text)).not.toContain("gather");
  expectSame(text, new Random(5), "diagonal");
});

test("many updates of one slot stay a scatter", () => {
  expect(kindsOf(added([1, 1, 1, 1, 1], 3, sums))).toContain("scatter");
});

test("random tables keep their bits", () => {
  const seed = 46;
  const random = new Random(seed);
  for (let round = 0; round < 60; round += 1) {
    const extent = 1 + random.below(7);
    const table = Array.from({ length: 1 + random.below(8) }, () => random.below(extent + 3) - 1);
    const note = `seed ${seed}, round ${round}: ${table.join()} of ${extent}`;
    expectSame(oneAxis(table, extent), random, note);
    expectSame(added(table, extent, random.pick([sums, last, differences])), random, note);
  }
});
