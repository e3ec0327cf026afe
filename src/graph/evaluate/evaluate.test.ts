/** What programs mean: one small program a rule, with the results that StableHLO's specification and XLA give. */
import { describe, expect, test } from "vitest";
import { TilewrightError } from "../../support/diagnostics.ts";
import { parseGraph } from "../text/index.ts";
import { evaluate } from "./index.ts";
import type { Datum, EvaluationOptions } from "./index.ts";

function run(text: string, options?: EvaluationOptions): readonly Datum[] {
  const [module] = parseGraph(text, "test.mlir");
  if (module === undefined) throw new Error("no program");
  return evaluate(module, "main", [], options);
}

/** Runs the ops of a function without parameters. */
function check(body: string): void {
  run(`func.func @main() {\n${body}\n  return\n}`);
}

function codeOf(body: () => unknown): string {
  try {
    body();
    return "fine";
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
}

const passing: { readonly [name: string]: string } = {
  "sums of many f32 are rounded once, short ones at every step": `
    %x = stablehlo.constant dense<0.1> : tensor<100xf32>
    %y = stablehlo.constant dense<0.1> : tensor<10xf32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<100xf32>, tensor<f32>) -> tensor<f32>
    check.expect_eq_const %0, dense<10.0> : tensor<f32>
    %1 = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [0] : (tensor<10xf32>, tensor<f32>) -> tensor<f32>
    check.expect_eq_const %1, dense<1.00000012> : tensor<f32>`,
  "the sign of a zero imaginary part says the side of a cut": `
    %a = stablehlo.constant dense<[(2.0, 0.0), (2.0, -0.0), (-3.0, 0.0), (-3.0, -0.0)]> : tensor<4xcomplex<f64>>
    %0 = chlo.acos %a : tensor<4xcomplex<f64>> -> tensor<4xcomplex<f64>>
    check.expect_almost_eq_const %0, dense<[(0.0, -1.3169578969248166), (0.0, 1.3169578969248166),
      (3.141592653589793, -1.762747174039086), (3.141592653589793, 1.762747174039086)]> : tensor<4xcomplex<f64>>, tolerance = 1.0e-14
    %1 = chlo.asin %a : tensor<4xcomplex<f64>> -> tensor<4xcomplex<f64>>
    check.expect_almost_eq_const %1, dense<[(1.5707963267948966, 1.3169578969248166), (1.5707963267948966, -1.3169578969248166),
      (-1.5707963267948966, 1.762747174039086), (-1.5707963267948966, -1.762747174039086)]> : tensor<4xcomplex<f64>>, tolerance = 1.0e-14
    %2 = chlo.acosh %a : tensor<4xcomplex<f64>> -> tensor<4xcomplex<f64>>
    check.expect_almost_eq_const %2, dense<[(1.3169578969248166, 0.0), (1.3169578969248166, -0.0),
      (1.762747174039086, 3.141592653589793), (1.762747174039086, -3.141592653589793)]> : tensor<4xcomplex<f64>>, tolerance = 1.0e-14`,
  "maps take any number of operands, of numbers and of 64-bit integers": `
    %a = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %b = stablehlo.constant dense<[10.0, 20.0]> : tensor<2xf32>
    %0 = "stablehlo.map"(%a, %a, %a, %b) <{dimensions = array<i64: 0>}> ({
      ^bb0(%c: tensor<f32>, %d: tensor<f32>, %e: tensor<f32>, %f: tensor<f32>):
        %1 = stablehlo.add %c, %f : tensor<f32>
        stablehlo.return %1 : tensor<f32>
    }) : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    check.expect_eq_const %0, dense<[11.0, 22.0]> : tensor<2xf32>
    %i = stablehlo.constant dense<[1, 2]> : tensor<2xi64>
    %j = stablehlo.constant dense<[5000000000, 6000000000]> : tensor<2xi64>
    %2 = "stablehlo.map"(%i, %i, %i, %i, %j) <{dimensions = array<i64: 0>}> ({
      ^bb0(%c: tensor<i64>, %d: tensor<i64>, %e: tensor<i64>, %f: tensor<i64>, %g: tensor<i64>):
        %3 = stablehlo.add %f, %g : tensor<i64>
        stablehlo.return %3 : tensor<i64>
    }) : (tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
    check.expect_eq_const %2, dense<[5000000001, 6000000002]> : tensor<2xi64>`,
  "in the weak order zeros are equal, and NaNs equal and greatest": `
    %a = stablehlo.constant dense<[0xFFC00000, 0x80000000, 0xFFC00001, 3.0, 0x7F800000]> : tensor<5xf32>
    %b = stablehlo.constant dense<[0x7FC00000, 0.0, 0x7F800000, 4.0, 0xFFC00000]> : tensor<5xf32>
    %0 = stablehlo.compare EQ, %a, %b, WEAKORDER : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xi1>
    check.expect_eq_const %0, dense<[true, true, false, false, false]> : tensor<5xi1>
    %1 = stablehlo.compare GT, %a, %b, WEAKORDER : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xi1>
    check.expect_eq_const %1, dense<[false, false, true, false, false]> : tensor<5xi1>
    %2 = stablehlo.compare LE, %a, %b, WEAKORDER : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xi1>
    check.expect_eq_const %2, dense<[true, true, false, true, true]> : tensor<5xi1>`,
  "complex squares of large numbers are finite where they can be": `
    %a = stablehlo.constant dense<[(3.0, 1.0), (1.0e200, -1.0e200), (0x7FF0000000000000, 1.0)]> : tensor<3xcomplex<f64>>
    %0 = chlo.square %a : tensor<3xcomplex<f64>> -> tensor<3xcomplex<f64>>
    check.expect_almost_eq_const %0, dense<[(8.0, 6.0), (0.0, 0xFFF0000000000000), (0x7FF0000000000000, 0x7FF0000000000000)]> : tensor<3xcomplex<f64>>`,
  "integers wrap": `
    %a = stablehlo.constant dense<[127, -128, 100]> : tensor<3xi8>
    %0 = stablehlo.add %a, %a : tensor<3xi8>
    check.expect_eq_const %0, dense<[-2, 0, -56]> : tensor<3xi8>
    %1 = stablehlo.multiply %a, %a : tensor<3xi8>
    check.expect_eq_const %1, dense<[1, 0, 16]> : tensor<3xi8>
    %2 = stablehlo.abs %a : tensor<3xi8>
    check.expect_eq_const %2, dense<[127, -128, 100]> : tensor<3xi8>`,
  "32 and 64 bits wrap too": `
    %a = stablehlo.constant dense<[123456789, 4294967295]> : tensor<2xui32>
    %0 = stablehlo.multiply %a, %a : tensor<2xui32>
    check.expect_eq_const %0, dense<[2537071545, 1]> : tensor<2xui32>
    %b = stablehlo.constant dense<[9223372036854775807]> : tensor<1xi64>
    %1 = stablehlo.add %b, %b : tensor<1xi64>
    check.expect_eq_const %1, dense<[-2]> : tensor<1xi64>`,
  "division by zero and of the least number": `
    %a = stablehlo.constant dense<[7, -2147483648, -7]> : tensor<3xi32>
    %b = stablehlo.constant dense<[0, -1, 2]> : tensor<3xi32>
    %0 = stablehlo.divide %a, %b : tensor<3xi32>
    check.expect_eq_const %0, dense<[-1, -2147483648, -3]> : tensor<3xi32>
    %1 = stablehlo.remainder %a, %b : tensor<3xi32>
    check.expect_eq_const %1, dense<[7, 0, -1]> : tensor<3xi32>`,
  "shifts beyond the width": `
    %a = stablehlo.constant dense<[-128, -128, 64]> : tensor<3xi8>
    %s = stablehlo.constant dense<[1, 9, -1]> : tensor<3xi8>
    %0 = stablehlo.shift_left %a, %s : tensor<3xi8>
    check.expect_eq_const %0, dense<[0, 0, 0]> : tensor<3xi8>
    %1 = stablehlo.shift_right_arithmetic %a, %s : tensor<3xi8>
    check.expect_eq_const %1, dense<[-64, -1, 0]> : tensor<3xi8>
    %2 = stablehlo.shift_right_logical %a, %s : tensor<3xi8>
    check.expect_eq_const %2, dense<[64, 0, 0]> : tensor<3xi8>`,
  "i1 adds by or, multiplies by and": `
    %a = stablehlo.constant dense<[true, true, false]> : tensor<3xi1>
    %b = stablehlo.constant dense<[true, false, false]> : tensor<3xi1>
    %0 = stablehlo.add %a, %b : tensor<3xi1>
    check.expect_eq_const %0, dense<[true, true, false]> : tensor<3xi1>
    %1 = stablehlo.multiply %a, %b : tensor<3xi1>
    check.expect_eq_const %1, dense<[true, false, false]> : tensor<3xi1>`,
  "conversions truncate, saturate, and overflow as the format does": `
    %a = stablehlo.constant dense<[-1.9, 300.0, 0x7FC00000]> : tensor<3xf32>
    %0 = stablehlo.convert %a : (tensor<3xf32>) -> tensor<3xui8>
    check.expect_eq_const %0, dense<[0, 255, 0]> : tensor<3xui8>
    %1 = stablehlo.convert %a : (tensor<3xf32>) -> tensor<3xi1>
    check.expect_eq_const %1, dense<[true, true, true]> : tensor<3xi1>
    %b = stablehlo.constant dense<[464.0, 480.0, 1.0e6]> : tensor<3xf32>
    %2 = stablehlo.convert %b : (tensor<3xf32>) -> tensor<3xf8E4M3FN>
    %3 = stablehlo.bitcast_convert %2 : (tensor<3xf8E4M3FN>) -> tensor<3xui8>
    check.expect_eq_const %3, dense<[126, 127, 127]> : tensor<3xui8>
    %4 = stablehlo.convert %b : (tensor<3xf32>) -> tensor<3xf8E5M2>
    %5 = stablehlo.convert %4 : (tensor<3xf8E5M2>) -> tensor<3xf32>
    check.expect_eq_const %5, dense<[448.0, 512.0, 0x7F800000]> : tensor<3xf32>`,
  "a wide integer is rounded once": `
    %a = stablehlo.constant dense<[9007199791611905]> : tensor<1xi64>
    %0 = stablehlo.convert %a : (tensor<1xi64>) -> tensor<1xf32>
    check.expect_eq_const %0, dense<[9.00720032848281E+15]> : tensor<1xf32>`,
  "bitcasts change the last axis": `
    %a = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf32>
    %0 = stablehlo.bitcast_convert %a : (tensor<2xf32>) -> tensor<2x4xui8>
    check.expect_eq_const %0, dense<[[0, 0, 128, 63], [0, 0, 0, 192]]> : tensor<2x4xui8>
    %1 = stablehlo.bitcast_convert %0 : (tensor<2x4xui8>) -> tensor<2xf32>
    check.expect_eq_const %1, dense<[1.0, -2.0]> : tensor<2xf32>
    %2 = stablehlo.constant dense<[-7]> : tensor<1xi8>
    %3 = stablehlo.bitcast_convert %2 : (tensor<1xi8>) -> tensor<1x2xi4>
    check.expect_eq_const %3, dense<[[-7, -1]]> : tensor<1x2xi4>`,
  "NaN wins, zeros have signs": `
    %a = stablehlo.constant dense<[0x7FC00000, -0.0, 3.0]> : tensor<3xf32>
    %b = stablehlo.constant dense<[1.0, 0.0, 2.0]> : tensor<3xf32>
    %0 = stablehlo.maximum %a, %b : tensor<3xf32>
    check.expect_close %0, %0, max_ulp_difference = 0 : tensor<3xf32>, tensor<3xf32>
    %1 = stablehlo.bitcast_convert %0 : (tensor<3xf32>) -> tensor<3xui32>
    check.expect_eq_const %1, dense<[2143289344, 0, 1077936128]> : tensor<3xui32>`,
  "the total order knows zeros and NaN": `
    %a = stablehlo.constant dense<[-0.0, 1.0, 0x7FC00000]> : tensor<3xf32>
    %b = stablehlo.constant dense<[0.0, 0x7FC00000, 0x7F800000]> : tensor<3xf32>
    %0 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    check.expect_eq_const %0, dense<[true, true, false]> : tensor<3xi1>
    %1 = stablehlo.compare LT, %a, %b, FLOAT : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
    check.expect_eq_const %1, dense<[false, false, false]> : tensor<3xi1>`,
  "pads cut, fill and spread": `
    %a = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.pad %a, %z, low = [-1], high = [2], interior = [1] : (tensor<3xi32>, tensor<i32>) -> tensor<6xi32>
    check.expect_eq_const %0, dense<[0, 2, 0, 3, 0, 0]> : tensor<6xi32>
    %1 = stablehlo.pad %a, %z, low = [1], high = [-2], interior = [0] : (tensor<3xi32>, tensor<i32>) -> tensor<2xi32>
    check.expect_eq_const %1, dense<[0, 1]> : tensor<2xi32>`,
  "slices, reversals, concatenations": `
    %a = stablehlo.iota dim = 0 : tensor<10xi32>
    %0 = stablehlo.slice %a [1:9:3] : (tensor<10xi32>) -> tensor<3xi32>
    check.expect_eq_const %0, dense<[1, 4, 7]> : tensor<3xi32>
    %1 = stablehlo.reverse %0, dims = [0] : tensor<3xi32>
    %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<3xi32>, tensor<3xi32>) -> tensor<6xi32>
    check.expect_eq_const %2, dense<[1, 4, 7, 7, 4, 1]> : tensor<6xi32>`,
  "dynamic slices move so that they fit": `
    %a = stablehlo.iota dim = 0 : tensor<5xi32>
    %i = stablehlo.constant dense<9> : tensor<i64>
    %n = stablehlo.constant dense<-3> : tensor<i64>
    %0 = stablehlo.dynamic_slice %a, %i, sizes = [2] : (tensor<5xi32>, tensor<i64>) -> tensor<2xi32>
    check.expect_eq_const %0, dense<[3, 4]> : tensor<2xi32>
    %1 = stablehlo.dynamic_update_slice %a, %0, %n : (tensor<5xi32>, tensor<2xi32>, tensor<i64>) -> tensor<5xi32>
    check.expect_eq_const %1, dense<[3, 4, 2, 3, 4]> : tensor<5xi32>`,
  "gathers clamp, scatters drop whole windows": `
    %a = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>
    %i = stablehlo.constant dense<[[0], [9]]> : tensor<2x1xi64>
    %0 = "stablehlo.gather"(%a, %i) {
      dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 2>} : (tensor<3x2xi32>, tensor<2x1xi64>) -> tensor<2x2xi32>
    check.expect_eq_const %0, dense<[[1, 2], [5, 6]]> : tensor<2x2xi32>
    %j = stablehlo.constant dense<[[1], [1], [2]]> : tensor<3x1xi64>
    %u = stablehlo.constant dense<[[[10, 10], [20, 20]], [[1, 1], [2, 2]], [[7, 7], [7, 7]]]> : tensor<3x2x2xi32>
    %1 = "stablehlo.scatter"(%a, %j, %u) ({
      ^bb0(%old: tensor<i32>, %new: tensor<i32>):
        %s = stablehlo.add %old, %new : tensor<i32>
        stablehlo.return %s : tensor<i32>
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
      : (tensor<3x2xi32>, tensor<3x1xi64>, tensor<3x2x2xi32>) -> tensor<3x2xi32>
    check.expect_eq_const %1, dense<[[1, 2], [14, 15], [27, 28]]> : tensor<3x2xi32>`,
  "a reduction with two operands": `
    %a = stablehlo.constant dense<[3.0, 9.0, 9.0, 1.0]> : tensor<4xf32>
    %k = stablehlo.iota dim = 0 : tensor<4xi32>
    %z = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.reduce(%a init: %z), (%k init: %c) across dimensions = [0] : (tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
      reducer(%x: tensor<f32>, %y: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
        %g = stablehlo.compare GE, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %v = stablehlo.select %g, %x, %y : tensor<i1>, tensor<f32>
        %w = stablehlo.select %g, %i, %j : tensor<i1>, tensor<i32>
        stablehlo.return %v, %w : tensor<f32>, tensor<i32>
      }
    check.expect_eq_const %0#0, dense<9.0> : tensor<f32>
    check.expect_eq_const %0#1, dense<1> : tensor<i32>`,
  "windows: padding takes part, dilation of the base too": `
    %a = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
    %z = stablehlo.constant dense<100> : tensor<i32>
    %0 = "stablehlo.reduce_window"(%a, %z) ({
      ^bb0(%x: tensor<i32>, %y: tensor<i32>):
        %s = stablehlo.add %x, %y : tensor<i32>
        stablehlo.return %s : tensor<i32>
    }) {window_dimensions = array<i64: 2>, window_strides = array<i64: 3>, base_dilations = array<i64: 2>,
        padding = dense<[[1, 1]]> : tensor<1x2xi64>} : (tensor<4xi32>, tensor<i32>) -> tensor<3xi32>
    check.expect_eq_const %0, dense<[201, 202, 204]> : tensor<3xi32>`,
  "cumulative sums of bf16 are rounded once": `
    %a = stablehlo.constant dense<[256.0, 1.0, 1.0, 3.0]> : tensor<4xbf16>
    %z = stablehlo.constant dense<0.0> : tensor<bf16>
    %0 = "stablehlo.reduce_window"(%a, %z) ({
      ^bb0(%x: tensor<bf16>, %y: tensor<bf16>):
        %s = stablehlo.add %x, %y : tensor<bf16>
        stablehlo.return %s : tensor<bf16>
    }) {window_dimensions = array<i64: 4>, padding = dense<[[3, 0]]> : tensor<1x2xi64>} : (tensor<4xbf16>, tensor<bf16>) -> tensor<4xbf16>
    check.expect_eq_const %0, dense<[256.0, 256.0, 258.0, 260.0]> : tensor<4xbf16>`,
  "select_and_scatter keeps the first maximum": `
    %a = stablehlo.constant dense<[1, 5, 5, 2]> : tensor<4xi32>
    %s = stablehlo.constant dense<[10, 20]> : tensor<2xi32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %0 = "stablehlo.select_and_scatter"(%a, %s, %z) ({
      ^bb0(%x: tensor<i32>, %y: tensor<i32>):
        %g = stablehlo.compare GE, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %g : tensor<i1>
    }, {
      ^bb0(%x: tensor<i32>, %y: tensor<i32>):
        %t = stablehlo.add %x, %y : tensor<i32>
        stablehlo.return %t : tensor<i32>
    }) {window_dimensions = array<i64: 3>, window_strides = array<i64: 1>} : (tensor<4xi32>, tensor<2xi32>, tensor<i32>) -> tensor<4xi32>
    check.expect_eq_const %0, dense<[0, 30, 0, 0]> : tensor<4xi32>`,
  "sorts move all operands and are stable": `
    %a = stablehlo.constant dense<[3, 1, 3, 1]> : tensor<4xi32>
    %b = stablehlo.iota dim = 0 : tensor<4xi64>
    %0:2 = "stablehlo.sort"(%a, %b) ({
      ^bb0(%x: tensor<i32>, %y: tensor<i32>, %i: tensor<i64>, %j: tensor<i64>):
        %l = stablehlo.compare LT, %x, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %l : tensor<i1>
    }) {dimension = -1 : i64, is_stable = true} : (tensor<4xi32>, tensor<4xi64>) -> (tensor<4xi32>, tensor<4xi64>)
    check.expect_eq_const %0#1, dense<[1, 3, 0, 2]> : tensor<4xi64>`,
  "products in batches": `
    %a = stablehlo.constant dense<[[[1, 2]], [[3, 4]]]> : tensor<2x1x2xi8>
    %b = stablehlo.constant dense<[[[5], [6]], [[100], [100]]]> : tensor<2x2x1xi8>
    %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x1x2xi8>, tensor<2x2x1xi8>) -> tensor<2x1x1xi32>
    check.expect_eq_const %0, dense<[[[17]], [[700]]]> : tensor<2x1x1xi32>`,
  "convolutions in groups, padded, dilated, reversed": `
    %a = stablehlo.constant dense<[[[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]]> : tensor<1x2x3xf32>
    %w = stablehlo.constant dense<[[[1.0, 2.0]], [[1.0, -1.0]]]> : tensor<2x1x2xf32>
    %0 = stablehlo.convolution(%a, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
      window = {pad = [[1, 0]], lhs_dilate = [2], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
      : (tensor<1x2x3xf32>, tensor<2x1x2xf32>) -> tensor<1x2x5xf32>
    check.expect_eq_const %0, dense<[[[1.0, 2.0, 2.0, 4.0, 3.0], [10.0, -10.0, 20.0, -20.0, 30.0]]]> : tensor<1x2x5xf32>`,
  "transforms and their inverses": `
    %a = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %0 = stablehlo.fft %a, type = RFFT, length = [4] : (tensor<4xf32>) -> tensor<3xcomplex<f32>>
    check.expect_almost_eq_const %0, dense<[(10.0, 0.0), (-2.0, 2.0), (-2.0, 0.0)]> : tensor<3xcomplex<f32>>
    %1 = stablehlo.fft %0, type = IRFFT, length = [4] : (tensor<3xcomplex<f32>>) -> tensor<4xf32>
    check.expect_almost_eq %1, %a : tensor<4xf32>`,
  "factors and triangular systems": `
    %a = stablehlo.constant dense<[[4.0, 2.0], [2.0, 5.0]]> : tensor<2x2xf64>
    %0 = stablehlo.cholesky %a, lower = true : tensor<2x2xf64>
    check.expect_eq_const %0, dense<[[2.0, 0.0], [1.0, 2.0]]> : tensor<2x2xf64>
    %b = stablehlo.constant dense<[[2.0], [5.0]]> : tensor<2x1xf64>
    %1 = "stablehlo.triangular_solve"(%0, %b) {left_side = true, lower = true, unit_diagonal = false,
      transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<2x2xf64>, tensor<2x1xf64>) -> tensor<2x1xf64>
    check.expect_eq_const %1, dense<[[-0.25], [2.5]]> : tensor<2x1xf64>
    %z = stablehlo.constant dense<[[0.0, 0.0], [2.0, 0.5]]> : tensor<2x2xf64>
    %2 = "stablehlo.triangular_solve"(%z, %b) {left_side = true, lower = true, unit_diagonal = false,
      transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<2x2xf64>, tensor<2x1xf64>) -> tensor<2x1xf64>
    check.expect_eq_const %2, dense<[[0x7FF0000000000000], [0xFFF0000000000000]]> : tensor<2x1xf64>`,
  "threefry's bits": `
    %s = stablehlo.constant dense<[1, 2]> : tensor<2xui64>
    %n, %b = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x2xui64>)
    check.expect_eq_const %n, dense<[1, 6]> : tensor<2xui64>
    check.expect_eq_const %b, dense<[[9236835810183407956, 16087790271692313299], [18212823393184779219, 2658481902456610144]]> : tensor<2x2xui64>`,
  "philox's bits": `
    %s = stablehlo.constant dense<0> : tensor<3xui64>
    %n, %b = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<3xui64>) -> (tensor<3xui64>, tensor<5xui32>)
    check.expect_eq_const %n, dense<[0, 2, 0]> : tensor<3xui64>
    %f = stablehlo.slice %b [0:4] : (tensor<5xui32>) -> tensor<4xui32>
    check.expect_eq_const %f, dense<[0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]> : tensor<4xui32>`,
  "threefry's bits of half the width": `
    %s = stablehlo.constant dense<[1, 2]> : tensor<2xui64>
    %n, %b = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
    check.expect_eq_const %n, dense<[1, 4]> : tensor<2xui64>
    %w = stablehlo.reshape %b : (tensor<4xui32>) -> tensor<2x2xui32>
    %r = stablehlo.bitcast_convert %w : (tensor<2x2xui32>) -> tensor<2xui64>
    check.expect_eq_const %r, dense<[9236835810183407956, 16087790271692313299]> : tensor<2xui64>`,
  "complex arithmetic": `
    %a = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f32>>
    %b = stablehlo.constant dense<(3.0, -1.0)> : tensor<complex<f32>>
    %0 = stablehlo.multiply %a, %b : tensor<complex<f32>>
    check.expect_eq_const %0, dense<(5.0, 5.0)> : tensor<complex<f32>>
    %1 = stablehlo.divide %0, %b : tensor<complex<f32>>
    check.expect_close %1, %a, max_ulp_difference = 1 : tensor<complex<f32>>, tensor<complex<f32>>
    %2 = stablehlo.abs %0 : (tensor<complex<f32>>) -> tensor<f32>
    check.expect_almost_eq_const %2, dense<7.0710678> : tensor<f32>`,
  "complex functions where formulas cancel or overflow": `
    %a = stablehlo.constant dense<[(-1.0, 1.0e-7), (1.0, -1.0e-7)]> : tensor<2xcomplex<f64>>
    %0 = chlo.atanh %a : tensor<2xcomplex<f64>> -> tensor<2xcomplex<f64>>
    check.expect_almost_eq_const %0, dense<[(-8.405621416, 0.785398188397), (8.405621416, -0.785398188397)]> : tensor<2xcomplex<f64>>
    %b = stablehlo.constant dense<[(0.0, 1000.0), (-0.0, -1000.0)]> : tensor<2xcomplex<f64>>
    %1 = stablehlo.sine %b : tensor<2xcomplex<f64>>
    check.expect_eq_const %1, dense<[(0.0, 0x7FF0000000000000), (-0.0, 0xFFF0000000000000)]> : tensor<2xcomplex<f64>>
    %2 = stablehlo.cosine %b : tensor<2xcomplex<f64>>
    check.expect_eq_const %2, dense<[(0x7FF0000000000000, -0.0), (0x7FF0000000000000, -0.0)]> : tensor<2xcomplex<f64>>
    %z = stablehlo.constant dense<(0.0, 0.0)> : tensor<2xcomplex<f64>>
    %e = stablehlo.constant dense<[(1.0, 1.0), (-1.0, 1.0)]> : tensor<2xcomplex<f64>>
    %3 = stablehlo.power %z, %e : tensor<2xcomplex<f64>>
    check.expect_almost_eq_const %3, dense<[(0.0, 0.0), (0x7FF8000000000000, 0x7FF8000000000000)]> : tensor<2xcomplex<f64>>`,
  "loops, branches out of range": `
    %i = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<5> : tensor<i32>
    %0:2 = stablehlo.while(%a = %i, %b = %n) : tensor<i32>, tensor<i32>
      cond { %p = stablehlo.compare LT, %a, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
             stablehlo.return %p : tensor<i1> }
      do { %s = stablehlo.add %b, %a : tensor<i32>
           %o = stablehlo.constant dense<1> : tensor<i32>
           %k = stablehlo.add %a, %o : tensor<i32>
           stablehlo.return %k, %s : tensor<i32>, tensor<i32> }
    check.expect_eq_const %0#1, dense<15> : tensor<i32>
    %m = stablehlo.constant dense<-7> : tensor<i32>
    %1 = "stablehlo.case"(%m) ({ stablehlo.return %i : tensor<i32> }, { stablehlo.return %n : tensor<i32> }) : (tensor<i32>) -> tensor<i32>
    check.expect_eq_const %1, dense<5> : tensor<i32>`,
  "functions of exported programs": `
    %a = stablehlo.constant dense<[0.5, 2.0]> : tensor<2xf32>
    %0 = stablehlo.custom_call @mhlo.erf(%a) {mhlo.attributes = {}, mhlo.version = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
    %1 = chlo.erf %a : tensor<2xf32> -> tensor<2xf32>
    check.expect_eq %0, %1 : tensor<2xf32>
    %2:2 = stablehlo.custom_call @mhlo.topk(%a) {mhlo.attributes = {k = 1 : i64, largest = true}} : (tensor<2xf32>) -> (tensor<1xf32>, tensor<1xi32>)
    check.expect_eq_const %2#1, dense<[1]> : tensor<1xi32>`,
  "complex powers": `
    %a = stablehlo.constant dense<[(0.0, 1.0), (2.0, 0.0), (0.0, 0.0)]> : tensor<3xcomplex<f64>>
    %b = stablehlo.constant dense<[(2.0, 0.0), (0.5, 0.0), (3.0, 0.0)]> : tensor<3xcomplex<f64>>
    %0 = stablehlo.power %a, %b : tensor<3xcomplex<f64>>
    check.expect_almost_eq_const %0, dense<[(-1.0, 0.0), (1.4142135623730951, 0.0), (0.0, 0.0)]> : tensor<3xcomplex<f64>>, tolerance = 1.0e-15`,
  "chlo: the largest, in order": `
    %a = stablehlo.constant dense<[[1.0, 7.0, 7.0, -2.0]]> : tensor<1x4xf32>
    %0:2 = chlo.top_k(%a, k = 2) : tensor<1x4xf32> -> (tensor<1x2xf32>, tensor<1x2xi32>)
    check.expect_eq_const %0#1, dense<[[1, 2]]> : tensor<1x2xi32>`,
};

describe("rules", () => {
  test.each(Object.keys(passing))("%s", (name) => {
    check(passing[name] ?? "");
  });
});

describe("processes", () => {
  const grid = (program: string, types: string) => `
    ${program}
    func.func @main() {
      %a = stablehlo.constant dense<[1, 2]> : tensor<2xi64>
      %b = stablehlo.constant dense<[3, 4]> : tensor<2xi64>
      %0:2 = "interpreter.run_parallel"(%a, %b) {programs = [[@f], [@f]]} : (tensor<2xi64>, tensor<2xi64>) -> (${types}, ${types})
      CHECKS
      return
    }`;

  test("all_reduce adds over the group", () => {
    const text = grid(
      `func.func @f(%x: tensor<2xi64>) -> tensor<2xi64> {
        %0 = "stablehlo.all_reduce"(%x) ({
          ^bb0(%a: tensor<i64>, %b: tensor<i64>):
            %s = stablehlo.add %a, %b : tensor<i64>
            stablehlo.return %s : tensor<i64>
        }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xi64>) -> tensor<2xi64>
        return %0 : tensor<2xi64>
      }`,
      "tensor<2xi64>",
    );
    run(text.replace("CHECKS", "check.expect_eq_const %0#1, dense<[4, 6]> : tensor<2xi64>"));
  });

  test("all_gather over replicas and partitions: partitions are outermost", () => {
    run(`
      func.func @f(%x: tensor<1xi64>) -> tensor<4xi64> {
        %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
          channel_handle = #stablehlo.channel_handle<handle = 7, type = 0>} : (tensor<1xi64>) -> tensor<4xi64>
        return %0 : tensor<4xi64>
      }
      func.func @main() {
        %a = stablehlo.constant dense<1> : tensor<1xi64>
        %b = stablehlo.constant dense<2> : tensor<1xi64>
        %c = stablehlo.constant dense<3> : tensor<1xi64>
        %d = stablehlo.constant dense<4> : tensor<1xi64>
        %0:4 = "interpreter.run_parallel"(%a, %b, %c, %d) {programs = [[@f, @f], [@f, @f]]}
          : (tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> (tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<4xi64>)
        check.expect_eq_const %0#3, dense<[1, 3, 2, 4]> : tensor<4xi64>
        return
      }`);
  });

  test("collective_broadcast takes each operand from the place that the last one names", () => {
    const body = (roots: string) =>
      grid(
        `func.func @f(%x: tensor<2xi64>) -> tensor<2xi64> {
          %r = stablehlo.constant dense<${roots}> : tensor<2xi32>
          %y = stablehlo.negate %x : tensor<2xi64>
          %0:2 = "stablehlo.collective_broadcast"(%x, %y, %r) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, has_dynamic_root}
            : (tensor<2xi64>, tensor<2xi64>, tensor<2xi32>) -> (tensor<2xi64>, tensor<2xi64>)
          %1 = stablehlo.add %0#0, %0#1 : tensor<2xi64>
          return %1 : tensor<2xi64>
        }`,
        "tensor<2xi64>",
      ).replace("CHECKS", "check.expect_eq_const %0#0, dense<[2, 2]> : tensor<2xi64>");
    run(body("[1, 0]"));
    expect(() => {
      run(body("[2, 0]"));
    }).toThrow(expect.objectContaining({ code: "TW9501" }));
  });

  test("collective_permute gives zeros to those who get nothing", () => {
    const text = grid(
      `func.func @f(%x: tensor<2xi64>) -> tensor<2xi64> {
        %0 = "stablehlo.collective_permute"(%x) {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xi64>) -> tensor<2xi64>
        return %0 : tensor<2xi64>
      }`,
      "tensor<2xi64>",
    );
    const checks = `check.expect_eq_const %0#0, dense<[0, 0]> : tensor<2xi64>
      check.expect_eq_const %0#1, dense<[1, 2]> : tensor<2xi64>`;
    run(text.replace("CHECKS", checks));
  });

  test("collective_reduce leaves the result with the first process", () => {
    const text = grid(
      `func.func @f(%x: tensor<2xi64>) -> tensor<2xi64> {
        %0 = "stablehlo.collective_reduce"(%x) ({
          ^bb0(%a: tensor<i64>, %b: tensor<i64>):
            %s = stablehlo.add %a, %b : tensor<i64>
            stablehlo.return %s : tensor<i64>
        }) {replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>} : (tensor<2xi64>) -> tensor<2xi64>
        return %0 : tensor<2xi64>
      }`,
      "tensor<2xi64>",
    );
    const checks = `check.expect_eq_const %0#0, dense<[0, 0]> : tensor<2xi64>
      check.expect_eq_const %0#1, dense<[4, 6]> : tensor<2xi64>`;
    run(text.replace("CHECKS", checks));
  });

  test("probes are kept by iteration", () => {
    check(`%a = stablehlo.constant dense<1.0> : tensor<f32>
      %b = stablehlo.constant dense<2.0> : tensor<f32>
      %0 = interpreter.probe %a, probe_id = "p" : tensor<f32>
      %1 = interpreter.probe %b, probe_id = "p" : tensor<f32>
      check.expect_serialized_eq %a, probe_id = "p" : tensor<f32>
      check.expect_serialized_eq %b, probe_id = "p", iter = 1 : tensor<f32>
      check.expect_almost_eq_const %a, dense<1.05> : tensor<f32>, tolerance = 0.1`);
  });

  test("a process that nobody answers is reported", () => {
    const text = `
      func.func @f(%t: !stablehlo.token) -> tensor<i64> {
        %0:2 = "stablehlo.recv"(%t) {channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>} : (!stablehlo.token) -> (tensor<i64>, !stablehlo.token)
        return %0#0 : tensor<i64>
      }
      func.func @main() {
        %t = stablehlo.create_token : !stablehlo.token
        %0 = "interpreter.run_parallel"(%t) {programs = [[@f]]} : (!stablehlo.token) -> tensor<i64>
        return
      }`;
    expect(codeOf(() => run(text))).toBe("TW9503");
  });
});

describe("mistakes", () => {
  test.each([
    [
      "TW9501",
      `%x = stablehlo.constant dense<1.0> : tensor<f32>
       %0 = stablehlo.custom_call @mystery(%x) : (tensor<f32>) -> tensor<f32>`,
    ],
    [
      "TW9502",
      `%x = stablehlo.constant dense<[1.0, 0x7FC00000]> : tensor<2xf32>
       check.expect_eq %x, %x : tensor<2xf32>`,
    ],
    [
      "TW9502",
      `%x = stablehlo.constant dense<1.0> : tensor<f32>
       %y = stablehlo.constant dense<1.0000005> : tensor<f32>
       check.expect_close %x, %y, max_ulp_difference = 3 : tensor<f32>, tensor<f32>`,
    ],
  ])("%s", (code, body) => {
    expect(
      codeOf(() => {
        check(body);
      }),
    ).toBe(code);
  });

  test("a function that is not there, and inputs that do not fit", () => {
    const [module] = parseGraph("func.func @main(%x: tensor<2xf32>) { return }");
    if (module === undefined) throw new Error("no program");
    expect(codeOf(() => evaluate(module, "other", []))).toBe("TW9504");
    expect(codeOf(() => evaluate(module, "main", []))).toBe("TW9505");
  });
});

test("the widened evaluator rounds nothing", () => {
  const text = `func.func @main() -> tensor<f32> {
    %a = stablehlo.constant dense<1.0> : tensor<f32>
    %b = stablehlo.constant dense<3.0> : tensor<f32>
    %0 = stablehlo.divide %a, %b : tensor<f32>
    return %0 : tensor<f32>
  }`;
  const value = (options?: EvaluationOptions) => {
    const [result] = run(text, options);
    return result?.kind === "tensor" ? result.data[0] : undefined;
  };
  expect(value()).toBe(Math.fround(1 / 3));
  expect(value({ widened: true })).toBe(1 / 3);
});
