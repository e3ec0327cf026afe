/**
 * Derivatives against central differences in f64: for a random direction t and random weights c, c · (f(x + ht)
 * - f(x - ht)) / 2h, forward mode and reverse mode agree; so do the derivatives of the derivatives. Every op by itself is in
 * `test/graph/every-op.test.ts`.
 */
import { describe, expect, test } from "vitest";
import { bodyOf, checkText } from "../../../test/support/central-differences.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { GraphRegion } from "../ops/index.ts";
import { jvp, vjp } from "./jvp.ts";

function codeOf(body: () => unknown): string | undefined {
  try {
    body();
    return undefined;
  } catch (error) {
    return error instanceof TilewrightError ? error.code : String(error);
  }
}

describe("elementwise derivatives", () => {
  test("select, clamp, convert through f64", () => {
    checkText(`func.func @main(%x: tensor<4xf64>, %y: tensor<4xf64>) -> tensor<4xf64> {
      %h = stablehlo.constant dense<0.5> : tensor<4xf64>
      %l = stablehlo.constant dense<0.3> : tensor<f64>
      %u = stablehlo.constant dense<0.7> : tensor<f64>
      %p = stablehlo.compare LT, %x, %h : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xi1>
      %0 = stablehlo.select %p, %x, %y : tensor<4xi1>, tensor<4xf64>
      %1 = stablehlo.clamp %l, %0, %u : (tensor<f64>, tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
      %2 = stablehlo.multiply %1, %0 : tensor<4xf64>
      return %2 : tensor<4xf64> }`);
  });
});

describe("derivatives of ops that move elements", () => {
  const lines: readonly (readonly [string, string, string])[] = [
    ["broadcast_in_dim", "%x, dims = [2, 0] : (tensor<2x3xf64>)", "tensor<3x5x2xf64>"],
    ["broadcast_in_dim", "%x, dims = [0, 1] : (tensor<2x3xf64>)", "tensor<2x3xf64>"],
    ["reshape", "%x : (tensor<2x3xf64>)", "tensor<3x2xf64>"],
    ["transpose", "%x, dims = [1, 0] : (tensor<2x3xf64>)", "tensor<3x2xf64>"],
    ["reverse", "%x, dims = [1] : (tensor<2x3xf64>)", "tensor<2x3xf64>"],
    ["concatenate", "%x, %x, dim = 1 : (tensor<2x3xf64>, tensor<2x3xf64>)", "tensor<2x6xf64>"],
    ["slice", "%x [0:2, 0:3:2] : (tensor<2x3xf64>)", "tensor<2x2xf64>"],
    [
      "pad",
      "%x, %s, low = [1, -1], high = [0, 2], interior = [1, 2] : (tensor<2x3xf64>, tensor<f64>)",
      "tensor<4x8xf64>",
    ],
    [
      "dynamic_slice",
      "%x, %i, %i, sizes = [1, 2] : (tensor<2x3xf64>, tensor<i32>, tensor<i32>)",
      "tensor<1x2xf64>",
    ],
    [
      "dynamic_update_slice",
      "%x, %u, %i, %i : (tensor<2x3xf64>, tensor<1x2xf64>, tensor<i32>, tensor<i32>)",
      "tensor<2x3xf64>",
    ],
  ];
  for (const [name, rest, result] of lines)
    test(`${name} ${rest.slice(0, 30)}`, () => {
      checkText(`func.func @main(%x0: tensor<2x3xf64>, %s: tensor<f64>, %u: tensor<1x2xf64>, %i: tensor<i32>) -> ${result} {
        %x = stablehlo.multiply %x0, %x0 : tensor<2x3xf64>
        %0 = stablehlo.${name} ${rest} -> ${result}
        return %0 : ${result} }`);
    });

  test("gather and scatter", () => {
    checkText(`func.func @main(%x: tensor<3x4xf64>, %i: tensor<2x1xi32>, %u: tensor<2x4xf64>) -> (tensor<2x4xf64>, tensor<3x4xf64>) {
      %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<3x4xf64>, tensor<2x1xi32>) -> tensor<2x4xf64>
      %1 = stablehlo.multiply %0, %u : tensor<2x4xf64>
      %2 = "stablehlo.scatter"(%x, %i, %1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%a: tensor<f64>, %b: tensor<f64>):
        %s = stablehlo.add %a, %b : tensor<f64>
        stablehlo.return %s : tensor<f64>
      }) : (tensor<3x4xf64>, tensor<2x1xi32>, tensor<2x4xf64>) -> tensor<3x4xf64>
      return %1, %2 : tensor<2x4xf64>, tensor<3x4xf64> }`);
  });

  test("gather and scatter by narrow indices of more rows than they can name", () => {
    checkText(
      `func.func @main(%x: tensor<200xf64>, %u: tensor<2xf64>) -> (tensor<2xf64>, tensor<200xf64>) {
      %i = stablehlo.constant dense<[[3], [120]]> : tensor<2x1xi8>
      %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<200xf64>, tensor<2x1xi8>) -> tensor<2xf64>
      %1 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%a: tensor<f64>, %b: tensor<f64>):
        %s = stablehlo.add %a, %b : tensor<f64>
        stablehlo.return %s : tensor<f64>
      }) : (tensor<200xf64>, tensor<2x1xi8>, tensor<2xf64>) -> tensor<200xf64>
      return %0, %1 : tensor<2xf64>, tensor<200xf64> }`,
      0.2,
      0.9,
      1,
    );
  });

  test("sort moves tangents with values", () => {
    checkText(`func.func @main(%x: tensor<2x4xf64>, %y: tensor<2x4xf64>) -> (tensor<2x4xf64>, tensor<2x4xf64>) {
      %0:2 = "stablehlo.sort"(%x, %y) <{dimension = 1 : i64}> ({
      ^bb0(%a: tensor<f64>, %b: tensor<f64>, %c: tensor<f64>, %d: tensor<f64>):
        %p = stablehlo.compare LT, %a, %b : (tensor<f64>, tensor<f64>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }) : (tensor<2x4xf64>, tensor<2x4xf64>) -> (tensor<2x4xf64>, tensor<2x4xf64>)
      %1 = stablehlo.multiply %0#0, %0#1 : tensor<2x4xf64>
      return %0#0, %1 : tensor<2x4xf64>, tensor<2x4xf64> }`);
  });

  test("top_k", () => {
    checkText(`func.func @main(%x: tensor<2x4xf64>) -> tensor<2x2xf64> {
      %0:2 = chlo.top_k(%x, k = 2) : tensor<2x4xf64> -> (tensor<2x2xf64>, tensor<2x2xi32>)
      %1 = stablehlo.multiply %0#0, %0#0 : tensor<2x2xf64>
      return %1 : tensor<2x2xf64> }`);
  });
});

describe("derivatives of products and windows", () => {
  test("dot_general with batch and several contracted axes", () => {
    checkText(`func.func @main(%x: tensor<2x3x4x5xf64>, %y: tensor<5x2x3x6xf64>) -> tensor<2x4x6xf64> {
      %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [1], contracting_dims = [3, 1] x [0, 2] : (tensor<2x3x4x5xf64>, tensor<5x2x3x6xf64>) -> tensor<2x4x6xf64>
      return %0 : tensor<2x4x6xf64> }`);
  });

  const convolutions: readonly (readonly [string, string, string, string, number, number])[] = [
    [
      "tensor<2x3x5x5xf64>",
      "tensor<4x3x3x2xf64>",
      "stride = [2, 1], pad = [[1, 2], [0, 1]], lhs_dilate = [1, 2], rhs_dilate = [2, 1]",
      "tensor<2x4x2x9xf64>",
      1,
      1,
    ],
    [
      "tensor<2x4x5x5xf64>",
      "tensor<6x2x3x3xf64>",
      "stride = [1, 2], pad = [[1, 1], [1, 1]]",
      "tensor<2x6x5x3xf64>",
      2,
      1,
    ],
    [
      "tensor<4x3x5x5xf64>",
      "tensor<6x3x2x2xf64>",
      "stride = [1, 1], pad = [[0, 0], [0, 0]]",
      "tensor<2x6x4x4xf64>",
      1,
      2,
    ],
  ];
  for (const [lhs, rhs, window, result, features, batches] of convolutions)
    test(`convolution with ${features} and ${batches} groups`, () => {
      checkText(`func.func @main(%x: ${lhs}, %y: ${rhs}) -> ${result} {
        %0 = stablehlo.convolution(%x, %y) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {${window}} {batch_group_count = ${batches} : i64, feature_group_count = ${features} : i64} : (${lhs}, ${rhs}) -> ${result}
        return %0 : ${result} }`);
    });

  for (const [name, init] of [
    ["add", "0.0"],
    ["maximum", "0xFFF0000000000000"],
    ["minimum", "0x7FF0000000000000"],
  ] as const) {
    test(`reduce ${name}`, () => {
      checkText(`func.func @main(%x: tensor<3x4xf64>) -> tensor<3xf64> {
        %z = stablehlo.constant dense<${init}> : tensor<f64>
        %y = stablehlo.multiply %x, %x : tensor<3x4xf64>
        %0 = stablehlo.reduce(%y init: %z) applies stablehlo.${name} across dimensions = [1] : (tensor<3x4xf64>, tensor<f64>) -> tensor<3xf64>
        return %0 : tensor<3xf64> }`);
    });
    test(`reduce_window ${name}`, () => {
      checkText(`func.func @main(%x: tensor<6x5xf64>) -> tensor<3x5xf64> {
        %z = stablehlo.constant dense<${init}> : tensor<f64>
        %y = stablehlo.multiply %x, %x : tensor<6x5xf64>
        %0 = "stablehlo.reduce_window"(%y, %z) <{window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 2, 1>, padding = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> ({
        ^bb0(%a: tensor<f64>, %b: tensor<f64>):
          %s = stablehlo.${name} %a, %b : tensor<f64>
          stablehlo.return %s : tensor<f64>
        }) : (tensor<6x5xf64>, tensor<f64>) -> tensor<3x5xf64>
        return %0 : tensor<3x5xf64> }`);
    });
  }
});

describe("derivatives of loops and branches", () => {
  const loop = (
    limit: string,
  ): string => `func.func @main(%x: tensor<3xf64>, %w: tensor<3xf64>) -> tensor<3xf64> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:3 = stablehlo.while(%i = %c, %a = %x, %b = %w) : tensor<i32>, tensor<3xf64>, tensor<3xf64>
     cond {
      ${limit}
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %1 : tensor<i32>
      %s = stablehlo.sine %a : tensor<3xf64>
      %m = stablehlo.multiply %s, %w : tensor<3xf64>
      %k = stablehlo.add %m, %b : tensor<3xf64>
      stablehlo.return %j, %k, %s : tensor<i32>, tensor<3xf64>, tensor<3xf64>
    }
    return %0#1 : tensor<3xf64> }`;

  test("a loop of known length, with a value from around it", () => {
    checkText(loop("%n = stablehlo.constant dense<4> : tensor<i32>"));
  });

  test("a loop of unknown length goes forward alone", () => {
    const graph = bodyOf(
      loop(
        "%q = stablehlo.constant dense<4> : tensor<i32>\n%n = stablehlo.minimum %q, %q : tensor<i32>",
      ),
    );
    expect(() => jvp(graph)).not.toThrow();
    expect(codeOf(() => vjp(graph))).toBe("TW9202");
  });

  test("branches", () => {
    for (const index of [0, 1])
      checkText(`func.func @main(%x: tensor<3xf64>, %w: tensor<3xf64>) -> tensor<3xf64> {
        %c = stablehlo.constant dense<${index}> : tensor<i32>
        %0 = "stablehlo.case"(%c) ({
          %1 = stablehlo.sine %x : tensor<3xf64>
          %2 = stablehlo.multiply %1, %w : tensor<3xf64>
          stablehlo.return %2 : tensor<3xf64>
        }, {
          %1 = stablehlo.exponential %w : tensor<3xf64>
          stablehlo.return %1 : tensor<3xf64>
        }) : (tensor<i32>) -> tensor<3xf64>
        %3 = stablehlo.multiply %0, %x : tensor<3xf64>
        return %3 : tensor<3xf64> }`);
  });
});

test("an op without a derivative is an error only where its tangent is needed", () => {
  const program = (result: string): GraphRegion =>
    bodyOf(`func.func @main(%x: tensor<2x2xf64>) -> tensor<2x2xf64> {
      %0 = chlo.bessel_i1e %x : tensor<2x2xf64> -> tensor<2x2xf64>
      return ${result} : tensor<2x2xf64> }`);
  expect(() => vjp(program("%x"))).not.toThrow();
  try {
    vjp(program("%0"));
  } catch (error) {
    expect(error).toBeInstanceOf(TilewrightError);
    expect(error).toMatchObject({ code: "TW9201", position: { file: "test.mlir", line: 2 } });
    return;
  }
  throw new Error("the derivative was accepted");
});
