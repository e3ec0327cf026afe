/** What the verifier accepts and refuses; every message names both sides. */
import { describe, expect, test } from "vitest";
import { listFiles, readText } from "../../../test/source-files.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { parseGraph } from "../text/index.ts";
import { verifyGraph } from "./index.ts";

function failure(...lines: readonly string[]): TilewrightError {
  const head =
    "func.func @main(%v: tensor<4xf32>, %m: tensor<2x3xf32>, %s: tensor<f32>, %i: tensor<2xi32>) {";
  return failureOf([head, ...lines, "return", "}"].join("\n"));
}

function failureOf(text: string): TilewrightError {
  try {
    for (const module of parseGraph(text, "test.mlir")) verifyGraph(module);
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("the program was accepted");
}

describe("programs that JAX printed", () => {
  for (const file of listFiles("test/fixtures/programs", /\.mlir$/))
    test(`${file} is accepted`, () => {
      for (const module of parseGraph(readText(file), file)) verifyGraph(module);
    });
});

describe("types that are carried as text", () => {
  test("are not inferred", () => {
    const text = [
      "func.func @main(%x: tensor<?x3xf32>) -> tensor<3x?xf32> {",
      "%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>",
      "return %0 : tensor<3x?xf32> }",
    ].join("\n");
    for (const module of parseGraph(text)) verifyGraph(module);
  });
});

const cases: readonly (readonly [string, string, string, string])[] = [
  [
    "TW9101",
    '%0 = "stablehlo.add"(%v, %m) : (tensor<4xf32>, tensor<2x3xf32>) -> tensor<4xf32>',
    "tensor<4xf32>",
    "tensor<2x3xf32>",
  ],
  [
    "TW9101",
    "%0 = stablehlo.concatenate %v, %i, dim = 0 : (tensor<4xf32>, tensor<2xi32>) -> tensor<6xf32>",
    "f32",
    "i32",
  ],
  [
    "TW9104",
    "%0 = stablehlo.dot_general %v, %v, contracting_dims = [0] x [0], algorithm = <lhs_precision_type = f8E4M3FN, rhs_precision_type = f8E4M3FN, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>",
    "bf16 bf16 f32 in 1, 3, 6, 9",
    "f8E4M3FN f8E4M3FN f32 in 1",
  ],
  ["TW9102", "%0 = stablehlo.popcnt %v : tensor<4xf32>", "signed, unsigned", "tensor<4xf32>"],
  [
    "TW9103",
    "%0 = stablehlo.transpose %m, dims = [0, 0] : (tensor<2x3xf32>) -> tensor<2x2xf32>",
    "from 0 to 1",
    "[0, 0]",
  ],
  ["TW9103", "%0 = stablehlo.reverse %v, dims = [1] : tensor<4xf32>", "from 0 to 0", "[1]"],
  [
    "TW9104",
    "%0 = stablehlo.dot_general %m, %m, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>",
    "[3]",
    "[2]",
  ],
  [
    "TW9104",
    "%state = stablehlo.constant dense<1> : tensor<3xui64> %0:2 = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<3xui64>) -> (tensor<3xui64>, tensor<4xui32>)",
    "tensor<2xui64>",
    "tensor<3xui64>",
  ],
  [
    "TW9104",
    "%state = stablehlo.constant dense<1> : tensor<1xui64> %0:2 = stablehlo.rng_bit_generator %state, algorithm = PHILOX : (tensor<1xui64>) -> (tensor<1xui64>, tensor<4xui32>)",
    "tensor<2xui64> or tensor<3xui64>",
    "tensor<1xui64>",
  ],
  [
    "TW9104",
    "%state = stablehlo.constant dense<1> : tensor<4xui32> %0:2 = stablehlo.rng_bit_generator %state, algorithm = PHILOX : (tensor<4xui32>) -> (tensor<4xui32>, tensor<4xui32>)",
    "tensor<2xui64> or",
    "tensor<4xui32>",
  ],
  [
    "TW9104",
    "%state = stablehlo.constant dense<1> : tensor<2xui64> %0:2 = stablehlo.rng_bit_generator %state, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xi4>)",
    "8 bits or more",
    "tensor<4xi4>",
  ],
  [
    "TW9104",
    "%0 = stablehlo.slice %v [2:5] : (tensor<4xf32>) -> tensor<3xf32>",
    "limit <= 4",
    "2:5:1 of [4]",
  ],
  [
    "TW9104",
    "%0 = stablehlo.reshape %m : (tensor<2x3xf32>) -> tensor<7xf32>",
    "6 elements",
    "7 of f32",
  ],
  [
    "TW9104",
    "%0 = stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<4xf32>) -> tensor<5xf32>",
    "[5]",
    "[4]",
  ],
  [
    "TW9104",
    "%k = stablehlo.constant dense<1> : tensor<i32> %0 = stablehlo.dynamic_update_slice %v, %m, %k : (tensor<4xf32>, tensor<2x3xf32>, tensor<i32>) -> tensor<4xf32>",
    "[4]",
    "[2, 3]",
  ],
  [
    "TW9105",
    '%0 = "stablehlo.sort"(%v) ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): stablehlo.return %a : tensor<f32> }) : (tensor<4xf32>) -> tensor<4xf32>',
    "tensor<i1>",
    "tensor<f32>",
  ],
  [
    "TW9105",
    "%0 = stablehlo.while(%a = %s) : tensor<f32> cond { stablehlo.return %a : tensor<f32> } do { stablehlo.return %a : tensor<f32> }",
    "tensor<i1>",
    "tensor<f32>",
  ],
  [
    "TW9106",
    "%0 = stablehlo.transpose %m, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
    "tensor<3x2xf32>",
    "tensor<2x3xf32>",
  ],
  ["TW9107", "%0 = call @missing(%v) : (tensor<4xf32>) -> tensor<4xf32>", "@main", "@missing"],
];

describe("mistakes", () => {
  for (const [code, line, expected, found] of cases)
    test(`${code}: ${line.slice(0, 60)}`, () => {
      const error = failure("", line);
      expect(error.code).toBe(code);
      expect(error.position?.line).toBe(3);
      expect(error.expected).toContain(expected);
      expect(error.found).toContain(found);
    });

  test("a function that calls itself", () => {
    const text = [
      "func.func @main() { call @f() : () -> () return }",
      "func.func @f() { call @g() : () -> () return }",
      "func.func @g() { call @f() : () -> () return }",
    ].join("\n");
    const error = failureOf(text);
    expect(error.code).toBe("TW9108");
    expect(error.found).toBe("@main -> @f -> @g -> @f");
  });

  test("windows and convolutions name both sides", () => {
    const error = failure(
      "%w = stablehlo.constant dense<0.0> : tensor<3x4x2x2xf32>",
      "%x = stablehlo.constant dense<0.0> : tensor<1x5x8x8xf32>",
      "%0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x8x8xf32>, tensor<3x4x2x2xf32>) -> tensor<1x3x7x7xf32>",
    );
    expect(error.code).toBe("TW9104");
    expect(error.summary).toContain("[1, 5, 8, 8]");
    expect(error.summary).toContain("[3, 4, 2, 2]");
  });
});
