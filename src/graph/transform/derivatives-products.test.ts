/** Derivatives of complex numbers, transforms, factors, normalisation and unusual reductions. */
import { describe, test } from "vitest";
import { checkText } from "../../../test/support/central-differences.ts";

const complex3 = "tensor<3xcomplex<f64>>";

describe("complex numbers", () => {
  for (const name of [
    "exponential",
    "log",
    "sine",
    "cosine",
    "tanh",
    "sqrt",
    "rsqrt",
    "logistic",
    "log_plus_one",
    "exponential_minus_one",
    "negate",
    "sign",
  ])
    test(name, () => {
      checkText(`func.func @main(%x: ${complex3}) -> ${complex3} {
        %0 = stablehlo.${name} %x : ${complex3}
        return %0 : ${complex3} }`);
    });
  for (const name of ["add", "subtract", "multiply", "divide", "power"])
    test(name, () => {
      checkText(`func.func @main(%x: ${complex3}, %y: ${complex3}) -> ${complex3} {
        %0 = stablehlo.${name} %x, %y : ${complex3}
        return %0 : ${complex3} }`);
    });
  for (const name of ["real", "imag", "abs"])
    test(name, () => {
      checkText(`func.func @main(%x: ${complex3}) -> tensor<3xf64> {
        %y = stablehlo.multiply %x, %x : ${complex3}
        %0 = stablehlo.${name} %y : (${complex3}) -> tensor<3xf64>
        return %0 : tensor<3xf64> }`);
    });
  test("complex and conj", () => {
    checkText(`func.func @main(%a: tensor<3xf64>, %b: tensor<3xf64>) -> ${complex3} {
      %0 = stablehlo.complex %a, %b : ${complex3}
      %1 = chlo.conj %0 : ${complex3} -> ${complex3}
      %2 = stablehlo.multiply %0, %1 : ${complex3}
      %3 = stablehlo.multiply %2, %0 : ${complex3}
      return %3 : ${complex3} }`);
  });
  test("dot_general", () => {
    checkText(`func.func @main(%x: tensor<2x3xcomplex<f64>>, %y: tensor<3x2xcomplex<f64>>) -> tensor<2x2xcomplex<f64>> {
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xcomplex<f64>>, tensor<3x2xcomplex<f64>>) -> tensor<2x2xcomplex<f64>>
      return %0 : tensor<2x2xcomplex<f64>> }`);
  });
});

describe("Fourier transforms", () => {
  const square = (
    from: string,
    to: string,
    line: string,
  ): string => `func.func @main(%x: ${from}) -> ${to} {
    %y = stablehlo.multiply %x, %x : ${from}
    %0 = stablehlo.fft %y, ${line} : (${from}) -> ${to}
    return %0 : ${to} }`;
  const whole = "tensor<2x4xcomplex<f64>>";
  for (const type of ["FFT", "IFFT"])
    test(type, () => {
      checkText(square(whole, whole, `type = ${type}, length = [2, 4]`));
    });
  for (const length of [4, 5]) {
    const real = `tensor<3x${length}xf64>`;
    const half = `tensor<3x${Math.floor(length / 2) + 1}xcomplex<f64>>`;
    test(`RFFT of ${length}`, () => {
      checkText(square(real, half, `type = RFFT, length = [3, ${length}]`));
    });
    test(`IRFFT of ${length}`, () => {
      checkText(square(half, real, `type = IRFFT, length = [3, ${length}]`));
    });
  }
});

describe("factors and systems", () => {
  for (const [element, lower] of [
    ["f64", true],
    ["f64", false],
    ["complex<f64>", true],
    ["complex<f64>", false],
  ] as const)
    test(`cholesky of ${element}, ${lower ? "lower" : "upper"}`, () => {
      const type = `tensor<2x3x3x${element}>`;
      const five = element === "f64" ? "5.0" : "(5.0, 0.0)";
      checkText(`func.func @main(%x: ${type}) -> ${type} {
        %i = stablehlo.iota dim = 1 : tensor<2x3x3xi32>
        %j = stablehlo.iota dim = 2 : tensor<2x3x3xi32>
        %e = stablehlo.compare EQ, %i, %j : (tensor<2x3x3xi32>, tensor<2x3x3xi32>) -> tensor<2x3x3xi1>
        %c = stablehlo.convert %e : (tensor<2x3x3xi1>) -> ${type}
        %f = stablehlo.constant dense<${five}> : ${type}
        %d = stablehlo.multiply %c, %f : ${type}
        %a = stablehlo.add %x, %d : ${type}
        %0 = stablehlo.cholesky %a, lower = ${lower} : ${type}
        return %0 : ${type} }`);
    });
  for (const element of ["f64", "complex<f64>"])
    for (const [left, lower, unit, mode] of [
      [true, true, false, "NO_TRANSPOSE"],
      [true, false, true, "TRANSPOSE"],
      [false, true, false, "ADJOINT"],
      [false, false, false, "NO_TRANSPOSE"],
    ] as const)
      test(`triangular_solve of ${element}, ${mode}, ${left ? "left" : "right"}`, () => {
        const a = `tensor<3x3x${element}>`;
        const b = left ? `tensor<3x2x${element}>` : `tensor<2x3x${element}>`;
        checkText(`func.func @main(%a: ${a}, %b: ${b}) -> ${b} {
          %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = ${left}, lower = ${lower}, transpose_a = #stablehlo<transpose ${mode}>, unit_diagonal = ${unit}}> : (${a}, ${b}) -> ${b}
          return %0 : ${b} }`);
      });
});

describe("normalisation", () => {
  const x = "tensor<4x3x2xf64>";
  const s = "tensor<3xf64>";
  const attributes = "<{epsilon = 1.0e-2 : f32, feature_index = 1 : i64}>";
  test("training", () => {
    checkText(`func.func @main(%x: ${x}, %s: ${s}, %o: ${s}) -> (${x}, ${s}, ${s}) {
      %0:3 = "stablehlo.batch_norm_training"(%x, %s, %o) ${attributes} : (${x}, ${s}, ${s}) -> (${x}, ${s}, ${s})
      return %0#0, %0#1, %0#2 : ${x}, ${s}, ${s} }`);
  });
  test("inference", () => {
    checkText(`func.func @main(%x: ${x}, %s: ${s}, %o: ${s}, %m: ${s}, %v: ${s}) -> ${x} {
      %0 = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) ${attributes} : (${x}, ${s}, ${s}, ${s}, ${s}) -> ${x}
      return %0 : ${x} }`);
  });
  test("grad", () => {
    checkText(`func.func @main(%x: ${x}, %s: ${s}, %m: ${s}, %v: ${s}, %g: ${x}) -> (${x}, ${s}, ${s}) {
      %0:3 = "stablehlo.batch_norm_grad"(%x, %s, %m, %v, %g) ${attributes} : (${x}, ${s}, ${s}, ${s}, ${x}) -> (${x}, ${s}, ${s})
      return %0#0, %0#1, %0#2 : ${x}, ${s}, ${s} }`);
  });
});

describe("reductions with any combination", () => {
  test("product, with a start that has a derivative", () => {
    checkText(`func.func @main(%x: tensor<3x5x2xf64>, %z: tensor<f64>) -> tensor<5xf64> {
      %0 = stablehlo.reduce(%x init: %z) applies stablehlo.multiply across dimensions = [0, 2] : (tensor<3x5x2xf64>, tensor<f64>) -> tensor<5xf64>
      return %0 : tensor<5xf64> }`);
  });
  test("a pair of values that depend on each other", () => {
    checkText(`func.func @main(%x: tensor<4x3xf64>, %y: tensor<4x3xf64>, %z: tensor<f64>, %w: tensor<f64>) -> (tensor<4xf64>, tensor<4xf64>) {
      %0:2 = stablehlo.reduce(%x init: %z), (%y init: %w) across dimensions = [1] : (tensor<4x3xf64>, tensor<4x3xf64>, tensor<f64>, tensor<f64>) -> (tensor<4xf64>, tensor<4xf64>)
       reducer(%a: tensor<f64>, %c: tensor<f64>) (%b: tensor<f64>, %d: tensor<f64>)  {
        %p = stablehlo.multiply %a, %c : tensor<f64>
        %q = stablehlo.multiply %a, %d : tensor<f64>
        %s = stablehlo.add %b, %q : tensor<f64>
        stablehlo.return %p, %s : tensor<f64>, tensor<f64>
      }
      return %0#0, %0#1 : tensor<4xf64>, tensor<4xf64> }`);
  });
  test("products of windows, dilated", () => {
    checkText(`func.func @main(%x: tensor<6x5xf64>, %z: tensor<f64>) -> tensor<3x4xf64> {
      %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 1>, window_dilations = array<i64: 2, 1>, padding = dense<[[0, 1], [0, 0]]> : tensor<2x2xi64>}> ({
      ^bb0(%a: tensor<f64>, %b: tensor<f64>):
        %s = stablehlo.multiply %a, %b : tensor<f64>
        stablehlo.return %s : tensor<f64>
      }) : (tensor<6x5xf64>, tensor<f64>) -> tensor<3x4xf64>
      return %0 : tensor<3x4xf64> }`);
  });
  for (const [name, body, unique] of [
    ["replaces", "stablehlo.return %b : tensor<f64>", false],
    [
      "multiplies",
      "%s = stablehlo.multiply %a, %b : tensor<f64>\n stablehlo.return %s : tensor<f64>",
      true,
    ],
  ] as const)
    test(`scatter that ${name}`, () => {
      const rows = unique ? "dense<[[2], [0]]>" : "dense<[[2], [2]]>";
      checkText(`func.func @main(%x: tensor<3x4xf64>, %u: tensor<2x4xf64>) -> tensor<3x4xf64> {
        %i = stablehlo.constant ${rows} : tensor<2x1xi32>
        %v = stablehlo.multiply %u, %u : tensor<2x4xf64>
        %2 = "stablehlo.scatter"(%x, %i, %v) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = ${unique}}> ({
        ^bb0(%a: tensor<f64>, %b: tensor<f64>):
          ${body}
        }) : (tensor<3x4xf64>, tensor<2x1xi32>, tensor<2x4xf64>) -> tensor<3x4xf64>
        return %2 : tensor<3x4xf64> }`);
    });
  test("map", () => {
    checkText(`func.func @main(%x: tensor<4xf64>, %y: tensor<4xf64>) -> tensor<4xf64> {
      %0 = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0>}> ({
      ^bb0(%a: tensor<f64>, %b: tensor<f64>):
        %s = stablehlo.sine %a : tensor<f64>
        %m = stablehlo.multiply %s, %b : tensor<f64>
        stablehlo.return %m : tensor<f64>
      }) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
      return %0 : tensor<4xf64> }`);
  });
  test("clamp between values that have derivatives", () => {
    checkText(`func.func @main(%x: tensor<6xf64>, %a: tensor<f64>, %b: tensor<6xf64>) -> tensor<6xf64> {
      %h = stablehlo.constant dense<0.4> : tensor<f64>
      %l = stablehlo.multiply %a, %h : tensor<f64>
      %m = stablehlo.broadcast_in_dim %l, dims = [] : (tensor<f64>) -> tensor<6xf64>
      %u = stablehlo.add %b, %m : tensor<6xf64>
      %0 = stablehlo.clamp %m, %x, %u : tensor<6xf64>
      return %0 : tensor<6xf64> }`);
  });
  test("clamp by bounds that cross is the upper one", () => {
    checkText(`func.func @main(%x: tensor<6xf64>, %a: tensor<6xf64>, %b: tensor<6xf64>) -> tensor<6xf64> {
      %0 = stablehlo.clamp %a, %x, %b : tensor<6xf64>
      return %0 : tensor<6xf64> }`);
  });
  test.each([
    `func.func @main(%x: tensor<1x2x1xf64>, %y: tensor<2x2x2xf64>) -> tensor<1x0x2xf64> {
      %0 = stablehlo.convolution(%x, %y) dim_numbers = [b, f, 0]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x1xf64>, tensor<2x2x2xf64>) -> tensor<1x0x2xf64>
      return %0 : tensor<1x0x2xf64> }`,
    `func.func @main(%x: tensor<3x0xf64>) -> tensor<3x0xf64> {
      %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({ ^bb0(%a: tensor<f64>, %b: tensor<f64>): %c = stablehlo.compare LT, %a, %b : (tensor<f64>, tensor<f64>) -> tensor<i1> stablehlo.return %c : tensor<i1> }) : (tensor<3x0xf64>) -> tensor<3x0xf64>
      return %0 : tensor<3x0xf64> }`,
    `func.func @main(%x: tensor<2xf64>, %i: tensor<0xi32>) -> tensor<2xf64> {
      %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], index_vector_dim = 0>, slice_sizes = array<i64: 2>}> : (tensor<2xf64>, tensor<0xi32>) -> tensor<2xf64>
      return %0 : tensor<2xf64> }`,
    `func.func @main(%x: tensor<2xf64>, %z: tensor<f64>) -> tensor<0xf64> {
      %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 3>, window_strides = array<i64: 2>}> ({ ^bb0(%a: tensor<f64>, %b: tensor<f64>): %c = stablehlo.add %a, %b : tensor<f64> stablehlo.return %c : tensor<f64> }) : (tensor<2xf64>, tensor<f64>) -> tensor<0xf64>
      return %0 : tensor<0xf64> }`,
  ])("arrays without elements %#", (text) => {
    checkText(text);
  });
  test("dot, and convolution with a turned window", () => {
    checkText(`func.func @main(%x: tensor<2x3xf64>, %y: tensor<3xf64>) -> tensor<2xf64> {
      %0 = stablehlo.dot %x, %y : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2xf64>
      return %0 : tensor<2xf64> }`);
    checkText(`func.func @main(%x: tensor<1x2x5xf64>, %y: tensor<2x2x3xf64>) -> tensor<1x2x3xf64> {
      %0 = stablehlo.convolution(%x, %y) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x5xf64>, tensor<2x2x3xf64>) -> tensor<1x2x3xf64>
      return %0 : tensor<1x2x3xf64> }`);
  });
});
