/** Batched graphs against loops over the batch, and batched derivatives against derivatives of examples. */
import { describe, expect, test } from "vitest";
import { bodyOf, check, everyWay } from "../../../test/support/batch-loops.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { vjp } from "./jvp.ts";
import { vmap } from "./vmap.ts";

function program(parameters: string, result: string, ...lines: readonly string[]): string {
  return [
    `func.func @main(${parameters}) -> ${result} {`,
    ...lines,
    `return %r : ${result}`,
    "}",
  ].join("\n");
}

const region = (name: string): string =>
  `({ ^bb0(%a: tensor<f64>, %b: tensor<f64>): %s = stablehlo.${name} %a, %b : tensor<f64> stablehlo.return %s : tensor<f64> })`;

const programs: readonly (readonly [string, string])[] = [
  [
    "elementwise",
    program(
      "%x: tensor<4xf64>, %y: tensor<4xf64>",
      "tensor<4xf64>",
      "%0 = stablehlo.sine %x : tensor<4xf64>",
      "%r = stablehlo.multiply %0, %y : tensor<4xf64>",
    ),
  ],
  [
    "slices of an array without axes",
    program(
      "%x: tensor<f64>, %y: tensor<f64>",
      "tensor<f64>",
      '%0 = "stablehlo.dynamic_slice"(%x) <{slice_sizes = array<i64>}> : (tensor<f64>) -> tensor<f64>',
      '%r = "stablehlo.dynamic_update_slice"(%0, %y) : (tensor<f64>, tensor<f64>) -> tensor<f64>',
    ),
  ],
  [
    "select and clamp by scalars",
    program(
      "%p: tensor<i1>, %x: tensor<4xf64>, %l: tensor<f64>",
      "tensor<4xf64>",
      "%h = stablehlo.constant dense<0.6> : tensor<f64>",
      "%0 = stablehlo.clamp %l, %x, %h : (tensor<f64>, tensor<4xf64>, tensor<f64>) -> tensor<4xf64>",
      "%r = stablehlo.select %p, %0, %x : (tensor<i1>, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>",
    ),
  ],
  [
    "broadcast",
    program(
      "%x: tensor<4xf64>",
      "tensor<2x4x3xf64>",
      "%r = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf64>) -> tensor<2x4x3xf64>",
    ),
  ],
  [
    "reshape, transpose, reverse, slice",
    program(
      "%x: tensor<2x6xf64>",
      "tensor<2x3xf64>",
      "%0 = stablehlo.reshape %x : (tensor<2x6xf64>) -> tensor<3x4xf64>",
      "%1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<3x4xf64>) -> tensor<4x3xf64>",
      "%2 = stablehlo.reverse %1, dims = [0] : tensor<4x3xf64>",
      "%r = stablehlo.slice %2 [0:4:2, 0:3] : (tensor<4x3xf64>) -> tensor<2x3xf64>",
    ),
  ],
  [
    "concatenate",
    program(
      "%x: tensor<2xf64>, %y: tensor<3xf64>",
      "tensor<5xf64>",
      "%r = stablehlo.concatenate %x, %y, dim = 0 : (tensor<2xf64>, tensor<3xf64>) -> tensor<5xf64>",
    ),
  ],
  [
    "pad",
    program(
      "%x: tensor<3xf64>, %v: tensor<f64>",
      "tensor<7xf64>",
      "%r = stablehlo.pad %x, %v, low = [1], high = [1], interior = [1] : (tensor<3xf64>, tensor<f64>) -> tensor<7xf64>",
    ),
  ],
  [
    "dynamic_update_slice by narrow starts",
    program(
      "%x: tensor<130xf64>, %u: tensor<2xf64>, %i: tensor<i8>",
      "tensor<130xf64>",
      "%r = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<130xf64>, tensor<2xf64>, tensor<i8>) -> tensor<130xf64>",
    ),
  ],
  [
    "dynamic_slice",
    program(
      "%x: tensor<4x5xf64>, %i: tensor<i32>, %j: tensor<i32>",
      "tensor<2x3xf64>",
      "%r = stablehlo.dynamic_slice %x, %i, %j, sizes = [2, 3] : (tensor<4x5xf64>, tensor<i32>, tensor<i32>) -> tensor<2x3xf64>",
    ),
  ],
  [
    "dynamic_update_slice",
    program(
      "%x: tensor<3x4xf64>, %u: tensor<2x2xf64>, %i: tensor<i32>",
      "tensor<3x4xf64>",
      "%r = stablehlo.dynamic_update_slice %x, %u, %i, %i : (tensor<3x4xf64>, tensor<2x2xf64>, tensor<i32>, tensor<i32>) -> tensor<3x4xf64>",
    ),
  ],
  [
    "gather",
    program(
      "%x: tensor<4x5xf64>, %i: tensor<2x1xi32>",
      "tensor<2x5xf64>",
      '%r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 5>}> : (tensor<4x5xf64>, tensor<2x1xi32>) -> tensor<2x5xf64>',
    ),
  ],
  [
    "scatter",
    program(
      "%x: tensor<4x5xf64>, %i: tensor<2x1xi32>, %u: tensor<2x5xf64>",
      "tensor<4x5xf64>",
      `%r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ${region("add")} : (tensor<4x5xf64>, tensor<2x1xi32>, tensor<2x5xf64>) -> tensor<4x5xf64>`,
    ),
  ],
  [
    "dot_general",
    program(
      "%x: tensor<2x3x4xf64>, %y: tensor<4x2x5xf64>",
      "tensor<2x3x5xf64>",
      "%r = stablehlo.dot_general %x, %y, batching_dims = [0] x [1], contracting_dims = [2] x [0] : (tensor<2x3x4xf64>, tensor<4x2x5xf64>) -> tensor<2x3x5xf64>",
    ),
  ],
  [
    "convolution",
    program(
      "%x: tensor<2x4x5xf64>, %w: tensor<6x2x3xf64>",
      "tensor<2x6x3xf64>",
      "%r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x4x5xf64>, tensor<6x2x3xf64>) -> tensor<2x6x3xf64>",
    ),
  ],
  [
    "reduce",
    program(
      "%x: tensor<3x4xf64>",
      "tensor<3xf64>",
      "%z = stablehlo.constant dense<0.0> : tensor<f64>",
      "%r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<3x4xf64>, tensor<f64>) -> tensor<3xf64>",
    ),
  ],
  [
    "reduce_window",
    program(
      "%x: tensor<6xf64>",
      "tensor<3xf64>",
      "%z = stablehlo.constant dense<0.0> : tensor<f64>",
      `%r = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ${region("add")} : (tensor<6xf64>, tensor<f64>) -> tensor<3xf64>`,
    ),
  ],
  [
    "sort",
    program(
      "%x: tensor<2x4xf64>",
      "tensor<2x4xf64>",
      '%r = "stablehlo.sort"(%x) <{dimension = 1 : i64}> ({ ^bb0(%a: tensor<f64>, %b: tensor<f64>): %s = stablehlo.compare LT, %a, %b : (tensor<f64>, tensor<f64>) -> tensor<i1> stablehlo.return %s : tensor<i1> }) : (tensor<2x4xf64>) -> tensor<2x4xf64>',
    ),
  ],
  [
    "a loop that ends at different times",
    program(
      "%x: tensor<f64>, %n: tensor<i32>",
      "tensor<f64>",
      "%c = stablehlo.constant dense<0> : tensor<i32>",
      "%0:2 = stablehlo.while(%i = %c, %a = %x) : tensor<i32>, tensor<f64>",
      "cond { %p = stablehlo.compare LE, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %p : tensor<i1> } do {",
      "%k = stablehlo.constant dense<1> : tensor<i32>",
      "%j = stablehlo.add %i, %k : tensor<i32>",
      "%b = stablehlo.sine %a : tensor<f64>",
      "stablehlo.return %j, %b : tensor<i32>, tensor<f64> }",
      "%r = stablehlo.add %0#1, %0#1 : tensor<f64>",
    ),
  ],
  [
    "branches",
    program(
      "%x: tensor<2xf64>, %i: tensor<i32>",
      "tensor<2xf64>",
      '%r = "stablehlo.case"(%i) ({ %0 = stablehlo.sine %x : tensor<2xf64> stablehlo.return %0 : tensor<2xf64> }, { %1 = stablehlo.negate %x : tensor<2xf64> stablehlo.return %1 : tensor<2xf64> }, { stablehlo.return %x : tensor<2xf64> }) : (tensor<i32>) -> tensor<2xf64>',
    ),
  ],
  [
    "top_k",
    program(
      "%x: tensor<2x4xf64>",
      "tensor<2x2xf64>",
      "%0:2 = chlo.top_k(%x, k = 2) : tensor<2x4xf64> -> (tensor<2x2xf64>, tensor<2x2xi32>)",
      "%r = stablehlo.negate %0#0 : tensor<2x2xf64>",
    ),
  ],
  [
    "a barrier",
    program(
      "%x: tensor<2xf64>, %y: tensor<2xf64>",
      "tensor<2xf64>",
      "%0:2 = stablehlo.optimization_barrier %x, %y : tensor<2xf64>, tensor<2xf64>",
      "%r = stablehlo.add %0#0, %0#1 : tensor<2xf64>",
    ),
  ],
  [
    "reduce with a start an example",
    program(
      "%x: tensor<2x3xf64>, %z: tensor<f64>",
      "tensor<2xf64>",
      "%r = stablehlo.reduce(%x init: %z) applies stablehlo.multiply across dimensions = [1] : (tensor<2x3xf64>, tensor<f64>) -> tensor<2xf64>",
    ),
  ],
  [
    "windows with a start an example",
    program(
      "%x: tensor<6xf64>, %z: tensor<f64>",
      "tensor<3xf64>",
      `%r = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ${region("add")} : (tensor<6xf64>, tensor<f64>) -> tensor<3xf64>`,
    ),
  ],
  [
    "batch_norm_inference",
    program(
      "%x: tensor<4x3xf64>, %s: tensor<3xf64>, %o: tensor<3xf64>",
      "tensor<4x3xf64>",
      '%r = "stablehlo.batch_norm_inference"(%x, %s, %o, %s, %s) <{epsilon = 1.0e-2 : f32, feature_index = 1 : i64}> : (tensor<4x3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<4x3xf64>',
    ),
  ],
  [
    "batch_norm_training",
    program(
      "%x: tensor<4x3xf64>, %s: tensor<3xf64>, %o: tensor<3xf64>",
      "tensor<4x3xf64>",
      '%0:3 = "stablehlo.batch_norm_training"(%x, %s, %o) <{epsilon = 1.0e-2 : f32, feature_index = 1 : i64}> : (tensor<4x3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<4x3xf64>, tensor<3xf64>, tensor<3xf64>)',
      "%1 = stablehlo.broadcast_in_dim %0#2, dims = [1] : (tensor<3xf64>) -> tensor<4x3xf64>",
      "%r = stablehlo.add %0#0, %1 : tensor<4x3xf64>",
    ),
  ],
  [
    "map",
    program(
      "%x: tensor<4xf64>, %y: tensor<4xf64>",
      "tensor<4xf64>",
      `%r = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0>}> ${region("multiply")} : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>`,
    ),
  ],
  [
    "dot",
    program(
      "%x: tensor<2x3xf64>, %y: tensor<3xf64>",
      "tensor<2xf64>",
      "%r = stablehlo.dot %x, %y : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2xf64>",
    ),
  ],
  [
    "checkpoint",
    program(
      "%x: tensor<4xf64>, %y: tensor<4xf64>",
      "tensor<4xf64>",
      '%r = "tilewright.checkpoint"(%x) <{policy = "nothing"}> ({ ^bb0(%a: tensor<4xf64>): %s = stablehlo.sine %a : tensor<4xf64> %p = stablehlo.multiply %s, %y : tensor<4xf64> stablehlo.return %p : tensor<4xf64> }) : (tensor<4xf64>) -> tensor<4xf64>',
    ),
  ],
];

describe("batches against loops", () => {
  for (const [name, text] of programs)
    test(name, () => {
      everyWay(text);
    });
});

describe("batches of derivatives", () => {
  const smooth = programs.filter(([name]) => !/loop|select/.test(name));
  for (const [name, text] of smooth)
    test(name, () => {
      const gradient = vjp(bodyOf(text));
      check(
        gradient,
        gradient.parameters.map(() => true),
      );
    });
});

test("what cannot be batched is named", () => {
  const graph = bodyOf(
    program(
      "%x: tensor<2xf64>",
      "tensor<2xf64>",
      "%r = stablehlo.custom_call @f(%x) : (tensor<2xf64>) -> tensor<2xf64>",
    ),
  );
  try {
    vmap(graph, 2, [true]);
  } catch (error) {
    expect(error).toBeInstanceOf(TilewrightError);
    expect(error).toMatchObject({ code: "TW9203", position: { line: 2 } });
    return;
  }
  throw new Error("the op was batched");
});
