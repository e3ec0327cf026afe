/** What the normal form of a product costs, and says. That it is the same product random programs hold (`test/graph/rewrites`). */
import { describe, expect, test } from "vitest";
import type { GraphModule } from "../ops/node.ts";
import { opsWithin } from "../ops/traverse.ts";
import { dcePass } from "../passes/dce.ts";
import { runPasses } from "../passes/pass-order.ts";
import { parseGraph } from "../text/index.ts";
import { matmulPrecisionPass, normalProductsPass, turnProductsPass } from "./pass.ts";

const passes = [turnProductsPass, matmulPrecisionPass("f32"), normalProductsPass, dcePass];

function parsed(text: string): GraphModule {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("the text has a program");
  return module;
}

/** The kinds of ops in a program's normal form. */
function kindsOf(text: string): readonly string[] {
  const main = runPasses(parsed(text), passes).functions.get("main");
  return main === undefined ? [] : [...opsWithin(main.body)].map(({ kind }) => kind);
}

describe("nothing is moved", () => {
  test.each([
    [
      "where contracted axes lie in another order on both sides",
      "tensor<64x8x16xf32>, tensor<8x16x32xf32>",
      "contracting_dims = [2, 1] x [1, 0]",
      "tensor<64x32xf32>",
    ],
    [
      "where a matrix lies by columns",
      "tensor<16x64xf32>, tensor<16x32xf32>",
      "contracting_dims = [0] x [0]",
      "tensor<64x32xf32>",
    ],
    [
      "where axes of extent 1 stand between",
      "tensor<16x1x64x1x32xf32>, tensor<16x8x1x32xf32>",
      "batching_dims = [0, 3] x [0, 2], contracting_dims = [4] x [3]",
      "tensor<16x1x1x64x8xf32>",
    ],
  ])("%s", (_, operands, numbers, result) => {
    const [left = "", right = ""] = operands.split(", ");
    const kinds = kindsOf(`func.func @main(%x: ${left}, %y: ${right}) -> ${result} {
      %0 = stablehlo.dot_general %x, %y, ${numbers} : (${left}, ${right}) -> ${result}
      return %0 : ${result} }`);
    expect(kinds).toContain("stablehlo.dot_general");
    expect(kinds).not.toContain("stablehlo.transpose");
  });

  test("where the result is transposed: the operands change sides", () => {
    const kinds =
      kindsOf(`func.func @main(%x: tensor<40x64xf32>, %y: tensor<40x32xf32>) -> tensor<32x64xf32> {
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<40x64xf32>, tensor<40x32xf32>) -> tensor<64x32xf32>
      %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32>
      return %1 : tensor<32x64xf32> }`);
    expect(kinds).toEqual(["stablehlo.dot_general"]);
  });
});

describe("products of f32 say how they are multiplied", () => {
  const product = (precision: string): string => `
    func.func @main(%x: tensor<32x64xf32>, %y: tensor<64x32xf32>) -> tensor<32x32xf32> {
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]${precision} : (tensor<32x64xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
      return %0 : tensor<32x32xf32> }`;
  test.each([
    ["", "f32", "tf32 3"],
    ["", "tf32", "tf32 1"],
    [", precision = [DEFAULT, DEFAULT]", "tf32", "tf32 1"],
    [", precision = [HIGH, HIGH]", "tf32", "bf16 3"],
    [", precision = [HIGHEST, HIGHEST]", "tf32", "bf16 6"],
  ] as const)("%s, by %s: %s", (precision, byDefault, wanted) => {
    const main = runPasses(parsed(product(precision)), [
      matmulPrecisionPass(byDefault),
    ]).functions.get("main");
    const [op] = main?.body.ops ?? [];
    if (op?.kind !== "stablehlo.dot_general") throw new Error("the product comes first");
    const { algorithm } = op.attributes;
    expect(`${algorithm?.lhs_precision_type} ${algorithm?.num_primitive_operations}`).toBe(wanted);
  });
});
