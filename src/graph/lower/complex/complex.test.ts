/** Programs of complex numbers on the simulator, against the evaluator, which has them as numbers of their own. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../../../device/device.ts";
import { open } from "../../../runtime/open.ts";
import { Random } from "../../../support/random.ts";
import { evaluate } from "../../evaluate/index.ts";
import type { Tensor } from "../../evaluate/index.ts";
import { emptyTensor } from "../../evaluate/value.ts";
import type { GraphModule } from "../../ops/node.ts";
import { isTensor } from "../../ops/types.ts";
import { compilePlan } from "../../plan/compile.ts";
import { Program } from "../../plan/program.ts";
import { parseGraph } from "../../text/index.ts";
import { verifyGraph } from "../../verify/index.ts";

let device: Device;
beforeAll(async () => {
  device = await open("simulator");
});
afterAll(() => {
  device.dispose();
});

function moduleOf(text: string): GraphModule {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("no program");
  verifyGraph(module);
  return module;
}

/** Random values, or ones among which the edges of numbers are. */
function inputsOf(module: GraphModule, random: Random, edges: boolean): readonly Tensor[] {
  const special = [0, -0, 1, -1, Infinity, -Infinity, NaN, 0.5, -3, 1e30, 1e-30];
  const parameters = module.functions.get("main")?.body.parameters ?? [];
  return parameters.map(({ type }) => {
    if (!isTensor(type)) throw new Error("no tensor");
    const made = emptyTensor(type);
    for (let i = 0; i < made.data.length; i++)
      made.data[i] = (
        edges ? special[random.below(special.length)] : random.below(8001) / 1000 - 4
      ) as never;
    return made;
  });
}

/** How far results are from those of the evaluator, by the larger part of a number, in units of its last place. */
async function distance(text: string, seed: number, edges = false): Promise<number> {
  const module = moduleOf(text);
  const inputs = inputsOf(module, new Random(seed), edges);
  const expected = evaluate(module, "main", inputs) as readonly Tensor[];
  const program = await Program.load(device, compilePlan(module, "main"));
  const found = await program.run(inputs);
  program.dispose();
  expect(found.map(({ element, shape }) => [element, shape])).toEqual(
    expected.map(({ element, shape }) => [element, shape]),
  );
  return Math.max(0, ...expected.map((want, i) => furthest(want, found[i] as Tensor)));
}

function furthest(want: Tensor, found: Tensor): number {
  const unit = want.element.includes("32") ? 2 ** -23 : 2 ** -52;
  const isComplex = want.element.startsWith("complex");
  let worst = 0;
  for (const [i, value] of want.data.entries()) {
    const [a, b] = [Number(value), Number(found.data[i])];
    if (Object.is(a, b) || (a !== a && b !== b)) continue;
    const beside = isComplex ? Number(want.data[i ^ 1]) : 0;
    const size = Math.max(Math.abs(a), Number.isFinite(beside) ? Math.abs(beside) : 0);
    // Zeros of different signs are as far as can be: they say the side of a cut.
    const off = a === b ? Infinity : Math.abs(a - b) / (size * unit);
    worst = Math.max(worst, off === off ? off : Infinity);
  }
  return worst;
}

const unary = [
  ...["cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic"],
  ...["negate", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh"],
].map((name) => [name, `stablehlo.${name} %x : T`] as const);
const chlo = [
  "acos",
  "acosh",
  "asin",
  "asinh",
  "atan",
  "atanh",
  "conj",
  "cosh",
  "sinh",
  "square",
].map((name) => [name, `chlo.${name} %x : T -> T`] as const);
const binary = [
  "add",
  "subtract",
  "multiply",
  "divide",
  "power",
  "maximum",
  "minimum",
  "atan2",
].map((name) => [name, `stablehlo.${name} %x, %y : T`] as const);

describe("functions of elements", () => {
  const functions = [...unary, ...chlo, ...binary];
  const program = (element: string, some: typeof functions): string =>
    `func.func @main(%x: T, %y: T) -> (${some.map(() => "T").join(", ")}) {
      ${some.map(([, call], i) => `%${i} = ${call}`).join("\n")}
      return ${some.map((_, i) => `%${i}`).join(", ")} : ${some.map(() => "T").join(", ")}
    }`.replaceAll(/\bT\b/g, `tensor<24x${element}>`);

  test("in f64", async () => {
    expect(await distance(program("complex<f64>", functions), 3)).toBeLessThan(16);
  });

  test("in f32, which are the same in f64 and rounded", async () => {
    const names = ["multiply", "divide", "sqrt", "exponential", "negate"];
    const some = functions.filter(([name]) => names.includes(name));
    expect(await distance(program("complex<f32>", some), 3)).toBeLessThan(1);
  });

  test("at the edges of numbers", async () => {
    // The angle of a point far away depends on which of two infinite numbers is larger.
    const some = functions.filter(([name]) => name !== "atan2");
    expect(await distance(program("complex<f64>", some), 4, true)).toBeLessThan(16);
  });

  test.each([11, 12, 13])("signs of zeros at the edges, seed %i", async (seed) => {
    const names = ["logistic", "rsqrt", "divide", "sqrt", "exponential", "multiply"];
    const some = functions.filter(([name]) => names.includes(name));
    expect(await distance(program("complex<f64>", some), seed, true)).toBeLessThan(16);
  });
});

const C = "tensor<3x4xcomplex<f32>>";
const programs: { readonly [name: string]: string } = {
  "parts, magnitudes, comparisons and choices": `func.func @main(%x: ${C}, %y: ${C}) -> (tensor<3x4xf32>, tensor<3x4xf32>, ${C}) {
    %0 = stablehlo.real %x : (${C}) -> tensor<3x4xf32>
    %1 = stablehlo.imag %x : (${C}) -> tensor<3x4xf32>
    %2 = stablehlo.complex %1, %0 : ${C}
    %3 = stablehlo.compare NE, %x, %y : (${C}, ${C}) -> tensor<3x4xi1>
    %4 = stablehlo.select %3, %2, %y : tensor<3x4xi1>, ${C}
    %5 = stablehlo.abs %x : (${C}) -> tensor<3x4xf32>
    %6 = stablehlo.convert %x : (${C}) -> tensor<3x4xf32>
    %7 = stablehlo.add %5, %6 : tensor<3x4xf32>
    return %5, %7, %4 : tensor<3x4xf32>, tensor<3x4xf32>, ${C}
  }`,
  "bits of pairs": `func.func @main(%x: tensor<3xcomplex<f64>>) -> (tensor<3x2xcomplex<f32>>, tensor<3x2xui64>, tensor<3xcomplex<f64>>) {
    %0 = stablehlo.bitcast_convert %x : (tensor<3xcomplex<f64>>) -> tensor<3x2xcomplex<f32>>
    %1 = stablehlo.bitcast_convert %x : (tensor<3xcomplex<f64>>) -> tensor<3x2xui64>
    %2 = stablehlo.bitcast_convert %0 : (tensor<3x2xcomplex<f32>>) -> tensor<3xcomplex<f64>>
    return %0, %1, %2 : tensor<3x2xcomplex<f32>>, tensor<3x2xui64>, tensor<3xcomplex<f64>>
  }`,
  "shapes and constants": `func.func @main(%x: ${C}) -> tensor<4x7xcomplex<f32>> {
    %c = stablehlo.constant dense<(1.5, -2.0)> : tensor<complex<f32>>
    %0 = stablehlo.transpose %x, dims = [1, 0] : (${C}) -> tensor<4x3xcomplex<f32>>
    %1 = stablehlo.pad %0, %c, low = [0, 1], high = [0, 0], interior = [0, 1] : (tensor<4x3xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4x6xcomplex<f32>>
    %2 = stablehlo.iota dim = 0 : tensor<4x1xcomplex<f32>>
    %3 = stablehlo.concatenate %1, %2, dim = 1 : (tensor<4x6xcomplex<f32>>, tensor<4x1xcomplex<f32>>) -> tensor<4x7xcomplex<f32>>
    %4 = stablehlo.reverse %3, dims = [1] : tensor<4x7xcomplex<f32>>
    return %4 : tensor<4x7xcomplex<f32>>
  }`,
  "sums, products and other folds": `func.func @main(%x: ${C}) -> (tensor<3xcomplex<f32>>, tensor<4xcomplex<f32>>, tensor<2x3xcomplex<f32>>) {
    %zero = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
    %one = stablehlo.constant dense<(1.0, 0.0)> : tensor<complex<f32>>
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (${C}, tensor<complex<f32>>) -> tensor<3xcomplex<f32>>
    %1 = stablehlo.reduce(%x init: %one) applies stablehlo.multiply across dimensions = [0] : (${C}, tensor<complex<f32>>) -> tensor<4xcomplex<f32>>
    %2 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 2, 2>}> ({
      ^bb0(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>):
        %3 = stablehlo.add %a, %b : tensor<complex<f32>>
        stablehlo.return %3 : tensor<complex<f32>>
    }) : (${C}, tensor<complex<f32>>) -> tensor<2x3xcomplex<f32>>
    return %0, %1, %2 : tensor<3xcomplex<f32>>, tensor<4xcomplex<f32>>, tensor<2x3xcomplex<f32>>
  }`,
  "maps of two operands": `func.func @main(%x: ${C}, %y: ${C}) -> ${C} {
    %0 = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0, 1>}> ({
      ^bb0(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>):
        %1 = stablehlo.multiply %a, %b : tensor<complex<f32>>
        %2 = stablehlo.subtract %1, %a : tensor<complex<f32>>
        stablehlo.return %2 : tensor<complex<f32>>
    }) : (${C}, ${C}) -> ${C}
    return %0 : ${C}
  }`,
  "products of matrices": `func.func @main(%x: ${C}, %y: tensor<4x5xcomplex<f32>>) -> (tensor<3x5xcomplex<f32>>, tensor<3x3x4x4xcomplex<f32>>) {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (${C}, tensor<4x5xcomplex<f32>>) -> tensor<3x5xcomplex<f32>>
    %z = stablehlo.transpose %x, dims = [1, 0] : (${C}) -> tensor<4x3xcomplex<f32>>
    %1 = "stablehlo.dot_general"(%x, %z) {dot_dimension_numbers = #stablehlo.dot<>} : (${C}, tensor<4x3xcomplex<f32>>) -> tensor<3x4x4x3xcomplex<f32>>
    %2 = stablehlo.transpose %1, dims = [0, 3, 1, 2] : (tensor<3x4x4x3xcomplex<f32>>) -> tensor<3x3x4x4xcomplex<f32>>
    return %0, %2 : tensor<3x5xcomplex<f32>>, tensor<3x3x4x4xcomplex<f32>>
  }`,
  convolution: `func.func @main(%x: tensor<2x6x2xcomplex<f32>>, %w: tensor<3x2x3xcomplex<f32>>, %v: tensor<3x1x4xcomplex<f32>>) -> (tensor<2x4x3xcomplex<f32>>, tensor<2x4x4xcomplex<f32>>) {
    %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x6x2xcomplex<f32>>, tensor<3x2x3xcomplex<f32>>) -> tensor<2x4x3xcomplex<f32>>
    %1 = stablehlo.convolution(%x, %v) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x6x2xcomplex<f32>>, tensor<3x1x4xcomplex<f32>>) -> tensor<2x4x4xcomplex<f32>>
    return %0, %1 : tensor<2x4x3xcomplex<f32>>, tensor<2x4x4xcomplex<f32>>
  }`,
  "sorting by parts": `func.func @main(%x: ${C}, %k: tensor<3x4xf32>) -> (${C}, tensor<3x4xf32>) {
    %0:2 = "stablehlo.sort"(%x, %k) <{dimension = 1 : i64, is_stable = true}> ({
      ^bb0(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>, %c: tensor<f32>, %d: tensor<f32>):
        %1 = stablehlo.imag %a : (tensor<complex<f32>>) -> tensor<f32>
        %2 = stablehlo.imag %b : (tensor<complex<f32>>) -> tensor<f32>
        %3 = stablehlo.compare LT, %1, %2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %3 : tensor<i1>
    }) : (${C}, tensor<3x4xf32>) -> (${C}, tensor<3x4xf32>)
    return %0#0, %0#1 : ${C}, tensor<3x4xf32>
  }`,
  "loops, branches and scatters": `func.func @main(%x: ${C}, %u: tensor<2x4xcomplex<f32>>) -> (${C}, ${C}) {
    %i = stablehlo.constant dense<0> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %0:2 = stablehlo.while(%n = %i, %z = %x) : tensor<i32>, ${C}
      cond {
        %1 = stablehlo.compare LT, %n, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      } do {
        %1 = stablehlo.add %n, %one : tensor<i32>
        %2 = stablehlo.negate %z : ${C}
        stablehlo.return %1, %2 : tensor<i32>, ${C}
      }
    %2 = "stablehlo.case"(%0#0) ({ stablehlo.return %x : ${C} }, { stablehlo.return %0#1 : ${C} }) : (tensor<i32>) -> ${C}
    %at = stablehlo.constant dense<[[2], [2]]> : tensor<2x1xi32>
    %3 = "stablehlo.scatter"(%x, %at, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>):
        %4 = stablehlo.multiply %a, %b : tensor<complex<f32>>
        stablehlo.return %4 : tensor<complex<f32>>
    }) : (${C}, tensor<2x1xi32>, tensor<2x4xcomplex<f32>>) -> ${C}
    return %2, %3 : ${C}, ${C}
  }`,
};

describe("programs", () => {
  test.each(Object.keys(programs))("%s", async (name) => {
    expect(await distance(programs[name] ?? "", 5)).toBeLessThan(8);
  });

  test("checks look at both parts", async () => {
    const module = moduleOf(`func.func @main() {
      %0 = stablehlo.constant dense<[(1.0, 2.0), (3.0, 4.0)]> : tensor<2xcomplex<f32>>
      check.expect_eq_const %0, dense<[(1.0, 2.0), (3.0, 5.0)]> : tensor<2xcomplex<f32>>
      return
    }`);
    const program = await Program.load(device, compilePlan(module, "main"));
    await expect(program.run([])).rejects.toThrow(expect.objectContaining({ code: "TW9502" }));
    program.dispose();
  });

  test("functions that are not defined for complex numbers are refused", () => {
    const text = `func.func @main(%x: ${C}) -> ${C} {
      %0 = "stablehlo.floor"(%x) : (${C}) -> ${C}
      return %0 : ${C}
    }`;
    const [module] = parseGraph(text);
    expect(() => compilePlan(module as GraphModule, "main")).toThrow(
      expect.objectContaining({ code: "TW9601" }),
    );
  });
});

/** `type` of so many points, of a batch of two. */
function transform(type: string, lengths: readonly number[]): string {
  const half = lengths.with(-1, Math.floor((lengths.at(-1) ?? 0) / 2) + 1);
  const real = `tensor<2x${lengths.join("x")}xf32>`;
  const whole = `tensor<2x${lengths.join("x")}xcomplex<f32>>`;
  const short = `tensor<2x${half.join("x")}xcomplex<f32>>`;
  const from = type === "RFFT" ? real : type === "IRFFT" ? short : whole;
  const to = type === "RFFT" ? short : type === "IRFFT" ? real : whole;
  return `func.func @main(%x: ${from}) -> ${to} {
    %0 = stablehlo.fft %x, type = ${type}, length = [${lengths.join(", ")}] : (${from}) -> ${to}
    return %0 : ${to}
  }`;
}

describe("Fourier transforms", () => {
  test.each([
    ["FFT", [1]],
    ["FFT", [8]],
    ["IFFT", [3, 5]],
    ["RFFT", [10]],
    ["RFFT", [2, 3, 9]],
    ["IRFFT", [10]],
    ["IRFFT", [4, 9]],
    // Two factors; a factor that is a prime of its own; one matrix; a convolution.
    ["FFT", [96]],
    ["IFFT", [134]],
    ["FFT", [67]],
    ["FFT", [131]],
  ] as const)("%s of %j points", async (type, lengths) => {
    expect(await distance(transform(type, lengths), 6)).toBeLessThan(64);
  });

  test("nothing is transformed where there is nothing", async () => {
    expect(await distance(transform("FFT", [0]), 7)).toBe(0);
  });
});
