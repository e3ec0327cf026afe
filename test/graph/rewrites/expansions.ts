/** A program for each function that ops are expanded by, by its name. */
import { program, of, five, region, lessThan, convolution, rows } from "./texts.ts";

const norm = "epsilon = 1.0e-2 : f32, feature_index = 1 : i64";
const features = "tensor<3xf32>";
const batch = "tensor<4x3xf32>";
const wide =
  "({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %s = stablehlo.add %a, %b : tensor<f32> stablehlo.return %s : tensor<f32> })";
export const expansions: { readonly [rule: string]: string } = {
  "tilewright.name": of(
    five,
    five,
    `%r = "tilewright.name"(%x) <{name = "kept"}> : (${five}) -> ${five}`,
  ),
  "tilewright.stop_gradient": of(
    five,
    five,
    `%r = "tilewright.stop_gradient"(%x) : (${five}) -> ${five}`,
  ),
  bodyOf: of(
    five,
    five,
    `%r = "tilewright.checkpoint"(%x) <{policy = "nothing"}> ({ ^bb0(%a: ${five}): %s = stablehlo.sine %a : ${five} %p = stablehlo.multiply %s, %a : ${five} stablehlo.return %p : ${five} }) : (${five}) -> ${five}`,
  ),
  promoteReduction: program(
    "%x: tensor<3x9xbf16>, %z: tensor<bf16>",
    "tensor<3xf32>",
    `%r = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 1>}> ${wide} : (tensor<3x9xbf16>, tensor<bf16>) -> tensor<3xf32>`,
    "return %r : tensor<3xf32>",
  ),
  promoteScatter: program(
    "%x: tensor<4x5xbf16>, %i: tensor<6x1xi32>, %u: tensor<6x5xbf16>",
    "tensor<4x5xf32>",
    `%r = "stablehlo.scatter"(%x, %i, %u) <{${rows}}> ${wide} : (tensor<4x5xbf16>, tensor<6x1xi32>, tensor<6x5xbf16>) -> tensor<4x5xf32>`,
    "return %r : tensor<4x5xf32>",
  ),
  promoteSelection: program(
    "%x: tensor<6xbf16>, %s: tensor<3xbf16>, %z: tensor<bf16>",
    "tensor<6xf32>",
    `%r = "stablehlo.select_and_scatter"(%x, %s, %z) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({ ^bb0(%a: tensor<bf16>, %b: tensor<bf16>): %p = stablehlo.compare GE, %a, %b : (tensor<bf16>, tensor<bf16>) -> tensor<i1> stablehlo.return %p : tensor<i1> }, ${wide.slice(1, -1)}) : (tensor<6xbf16>, tensor<3xbf16>, tensor<bf16>) -> tensor<6xf32>`,
    "return %r : tensor<6xf32>",
  ),
  expandRuns: program(
    "%x: tensor<4x5x6xf32>, %z: tensor<f32>",
    "tensor<5xf32>",
    `%r = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0, 2>}> ${region("multiply")} : (tensor<4x5x6xf32>, tensor<f32>) -> tensor<5xf32>`,
    "return %r : tensor<5xf32>",
  ),
  expandCumulative: program(
    "%x: tensor<2x140xf32>, %z: tensor<f32>",
    "tensor<2x140xf32>",
    `%r = "stablehlo.reduce_window"(%x, %z) <{padding = dense<[[0, 0], [139, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 140>}> ${region("add")} : (tensor<2x140xf32>, tensor<f32>) -> tensor<2x140xf32>`,
    "return %r : tensor<2x140xf32>",
  ),
  expandSideBySide: program(
    "%x: tensor<6x40xf32>",
    "tensor<3x5xf32>",
    "%z = stablehlo.constant dense<0.0> : tensor<f32>",
    `%r = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 2, 8>, window_strides = array<i64: 2, 8>}> ${region("add")} : (tensor<6x40xf32>, tensor<f32>) -> tensor<3x5xf32>`,
    "return %r : tensor<3x5xf32>",
  ),
  expandLargeWindows: program(
    "%x: tensor<3x80xf32>, %z: tensor<f32>",
    "tensor<3x21xf32>",
    `%r = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 50>, window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [7, 4]]> : tensor<2x2xi64>}> ${region("multiply")} : (tensor<3x80xf32>, tensor<f32>) -> tensor<3x21xf32>`,
    "return %r : tensor<3x21xf32>",
  ),
  expandScatter: program(
    "%x: tensor<7x5xf32>, %i: tensor<300x1xi32>, %u: tensor<300x5xf32>",
    "tensor<7x5xf32>",
    `%r = "stablehlo.scatter"(%x, %i, %u) <{${rows}}> ${region("add")} : (tensor<7x5xf32>, tensor<300x1xi32>, tensor<300x5xf32>) -> tensor<7x5xf32>`,
    "return %r : tensor<7x5xf32>",
  ),
  expandEinsum: program(
    "%x: tensor<2x3x4xf32>, %y: tensor<4x5x2xf32>",
    "tensor<5x2x3xf32>",
    '%r = "stablehlo.einsum"(%x, %y) <{einsum_config = "bij,jkb->kbi"}> : (tensor<2x3x4xf32>, tensor<4x5x2xf32>) -> tensor<5x2x3xf32>',
    "return %r : tensor<5x2x3xf32>",
  ),
  expandCholesky: of(
    "tensor<3x3xf32>",
    "tensor<3x3xf32>",
    "%r = stablehlo.cholesky %x, lower = true : tensor<3x3xf32>",
  ),
  expandTriangularSolve: program(
    "%a: tensor<3x3xf32>, %b: tensor<3x2xf32>",
    "tensor<3x2xf32>",
    '%r = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>',
    "return %r : tensor<3x2xf32>",
  ),
  expandInference: program(
    `%x: ${batch}, %s: ${features}, %o: ${features}`,
    batch,
    `%r = "stablehlo.batch_norm_inference"(%x, %s, %o, %s, %s) <{${norm}}> : (${batch}, ${features}, ${features}, ${features}, ${features}) -> ${batch}`,
    `return %r : ${batch}`,
  ),
  expandTraining: program(
    `%x: ${batch}, %s: ${features}, %o: ${features}`,
    batch,
    `%0:3 = "stablehlo.batch_norm_training"(%x, %s, %o) <{${norm}}> : (${batch}, ${features}, ${features}) -> (${batch}, ${features}, ${features})`,
    `return %0#0 : ${batch}`,
  ),
  expandGradient: program(
    `%x: ${batch}, %s: ${features}, %m: ${features}, %v: ${features}, %g: ${batch}`,
    batch,
    `%0:3 = "stablehlo.batch_norm_grad"(%x, %s, %m, %v, %g) <{${norm}}> : (${batch}, ${features}, ${features}, ${features}, ${batch}) -> (${batch}, ${features}, ${features})`,
    `return %0#0 : ${batch}`,
  ),
  expandComposite: [
    "module {",
    `func.func private @scale(%a: ${five}) -> ${five} { %0 = stablehlo.multiply %a, %a : ${five} return %0 : ${five} }`,
    of(
      five,
      five,
      `%r = stablehlo.composite "my.scale" %x {decomposition = @scale} : (${five}) -> ${five}`,
    ),
    "}",
  ].join("\n"),
  expandScan: program(
    `%x: ${five}, %z: tensor<f32>`,
    `${five}, tensor<f32>`,
    "%0:2 = chlo.scan(%x) inits(%z) dimension=0 {",
    "^bb0(%a: tensor<f32>, %b: tensor<f32>):",
    "%s = stablehlo.multiply %a, %b : tensor<f32> %t = stablehlo.add %s, %a : tensor<f32>",
    "stablehlo.return %s, %t : tensor<f32>, tensor<f32>",
    `} : (${five}, tensor<f32>) -> (${five}, tensor<f32>)`,
    `return %0#0, %0#1 : ${five}, tensor<f32>`,
  ),
  expandSort: of(
    "tensor<140xf32>",
    "tensor<140xf32>",
    `%r = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ${lessThan("f32")} : (tensor<140xf32>) -> tensor<140xf32>`,
  ),
  byWords: of(
    "tensor<140xf32>",
    "tensor<3xf32>",
    "%0:2 = chlo.top_k(%x, k = 3) : tensor<140xf32> -> (tensor<3xf32>, tensor<3xi32>)",
    "%r = stablehlo.negate %0#0 : tensor<3xf32>",
  ),
  bySort: program(
    "%x: tensor<2x9xi32>",
    "tensor<2x3xi32>, tensor<2x3xi32>",
    "%0:2 = chlo.top_k(%x, k = 3) : tensor<2x9xi32> -> (tensor<2x3xi32>, tensor<2x3xi32>)",
    "return %0#0, %0#1 : tensor<2x3xi32>, tensor<2x3xi32>",
  ),
  expandZeros: program(
    `%x: ${five}`,
    `${five}, ${five}`,
    `%r = stablehlo.custom_call @AllocateBuffer() : () -> ${five}`,
    `return %x, %r : ${five}, ${five}`,
  ),
  expandCall: [
    "module {",
    "func.func @smaller(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> { %0 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %0 : tensor<i1> }",
    program(
      "%x: tensor<2x4xf32>, %z: tensor<f32>",
      "tensor<2x2xf32>, tensor<2x2xi32>",
      "%i = stablehlo.iota dim = 1 : tensor<2x4xi32>",
      "%c = stablehlo.constant dense<-1> : tensor<i32>",
      "%0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %z, %c) {called_computations = [@smaller], mhlo.backend_config = {aggregate_to_topk = true, is_fallback = true, reduction_dim = 1 : i64, top_k = 2 : i64}} : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)",
      "return %0#0, %0#1 : tensor<2x2xf32>, tensor<2x2xi32>",
    ),
    "}",
  ].join("\n"),
  withOtherWeights: convolution(
    "bf16",
    ["1x10x10x32", "3x3x32x64"],
    "1x8x8x64",
    "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
  ),
  withForwardWeights: convolution(
    "bf16",
    ["1x8x8x64", "3x3x64x8"],
    "1x16x16x8",
    "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
    "pad = [[1, 2], [1, 2]], lhs_dilate = [2, 2]",
  ),
  inWeightOrder: convolution(
    "bf16",
    ["2x10x10x32", "2x8x8x32"],
    "3x3x32x32",
    "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]",
  ),
};
