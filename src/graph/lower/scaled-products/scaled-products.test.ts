/**
 * Programs whose operands are dequantised, by JAX's `scaled_dot`, XLA's call or as users write it, with codes as arguments: the library makes their products
 * of operands as they lie in memory. References are sums in f64 of the numbers that codes stand for; k and sizes are such that most products are of few rows.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../../../device/device.ts";
import { open } from "../../../runtime/open.ts";
import { Random } from "../../../support/random.ts";
import { dealtTo } from "../../../../test/support/sample.ts";
import { evaluate, numbersOf, tensor } from "../../evaluate/index.ts";
import type { Datum, Tensor } from "../../evaluate/index.ts";
import type { GraphModule } from "../../ops/index.ts";
import { decodeElement } from "../../ops/index.ts";
import { compilePlan } from "../../plan/compile.ts";
import { Program } from "../../plan/program.ts";
import { planText } from "../../plan/text.ts";
import { parseGraph } from "../../text/index.ts";

const devices = new Map<string, Device>();
beforeAll(async () => {
  for (const kind of ["simulator", "emulator"] as const)
    devices.set(kind, await open(kind, { onNotes: () => undefined }));
});
afterAll(() => {
  for (const device of devices.values()) device.dispose();
});

type Coded = "f4E2M1FN" | "f8E4M3FN" | "f8E5M2" | "f6E3M2FN" | "f8E8M0FNU";

const bits: { readonly [E in Coded]: number } = {
  ...{ f4E2M1FN: 4, f8E4M3FN: 8, f8E5M2: 8, f6E3M2FN: 6, f8E8M0FNU: 8 },
};

/** Codes of finite numbers; scales are near 1. */
function codes(element: Coded, shape: readonly number[], random: Random): Tensor {
  const count = shape.reduce((all, extent) => all * extent, 1);
  const draw = (): number => {
    if (element === "f8E8M0FNU") return 124 + random.below(7);
    for (;;) {
      const code = random.below(2 ** bits[element]);
      if (Number.isFinite(decodeElement(element, code))) return code;
    }
  };
  return tensor(element, shape, Uint8Array.from({ length: count }, draw));
}

function numbers(datum: Datum | undefined): Float64Array {
  const given = datum as Tensor;
  const isCoded = given.element in bits;
  return Float64Array.from(isCoded ? (given.data as Uint8Array) : numbersOf(given), (each) =>
    isCoded ? decodeElement(given.element as Coded, each) : Number(each),
  );
}

const typeOf = ({ element, shape }: Tensor): string => `tensor<${[...shape, element].join("x")}>`;

interface Case {
  readonly name: string;
  /** Batch, rows, columns and depth. */
  readonly sizes: readonly [batch: number, m: number, n: number, k: number];
  readonly inputs: (random: Random) => readonly Tensor[];
  readonly result: string;
  readonly body: string;
  /** The factors at [batch, row, k] and [batch, column, k]. */
  readonly a: (at: (input: number, index: number) => number) => Factor;
  readonly b: (at: (input: number, index: number) => number) => Factor;
  readonly globalScale?: number;
  /** What the plan says. */
  readonly plan: RegExp;
}

type Factor = (batch: number, row: number, k: number) => number;
type At = (input: number, index: number) => number;

const dot = "stablehlo.custom_call @__op$block_scaled_dot";

/** A plain factor by rows, and one with scales of blocks. */
const plainFactor =
  (input: number, rows: number, k: number) =>
  (at: At): Factor =>
  (batch, row, l) =>
    at(input, (batch * rows + row) * k + l);
const scaledFactor =
  (
    input: number,
    scale: number,
    rows: number,
    k: number,
    block: number,
    [down, along] = [rows, k / block],
  ) =>
  (at: At): Factor =>
  (batch, row, l) =>
    at(input, (batch * rows + row) * k + l) *
    at(scale, (batch * down + row) * along + Math.floor(l / block));

const half = (shape: readonly number[], random: Random): Tensor => {
  const count = shape.reduce((all, extent) => all * extent, 1);
  const words = Uint16Array.from({ length: count }, () => {
    const [word = 0] = new Uint32Array(Float32Array.of(random.below(9) - 4).buffer);
    return word >>> 16;
  });
  return tensor("bf16", shape, words);
};

const e8 = "f8E8M0FNU";

const cases: readonly Case[] = [
  {
    name: "a batch of NVFP4 with a global scale, in bf16",
    sizes: [3, 5, 70, 1024],
    inputs: (random) => [
      ...[codes("f4E2M1FN", [3, 5, 1024], random), codes("f4E2M1FN", [3, 70, 1024], random)],
      ...[codes("f8E4M3FN", [3, 5, 64], random), codes("f8E4M3FN", [3, 70, 64], random)],
      tensor("f32", [], Float32Array.of(0.375)),
    ],
    result: "tensor<3x5x70xbf16>",
    body: `%s = ${dot}(%0, %1, %2, %3, %4) : (tensor<3x5x1024xf4E2M1FN>, tensor<3x70x1024xf4E2M1FN>, tensor<3x5x64xf8E4M3FN>, tensor<3x70x64xf8E4M3FN>, tensor<f32>) -> tensor<3x5x70xf32>
      %r = stablehlo.convert %s : (tensor<3x5x70xf32>) -> tensor<3x5x70xbf16>`,
    a: scaledFactor(0, 2, 5, 1024, 16),
    b: scaledFactor(1, 3, 70, 1024, 16),
    globalScale: 0.375,
    plan: /^operation scaled_matmul\(arg0 .*arg4 \[1\]\) -> result0 \[3, 5, 70\].*error of 2\^-/m,
  },
  {
    name: "MXFP8 by MXFP4 in XLA's call",
    sizes: [1, 16, 70, 1056],
    inputs: (random) => [
      ...[codes("f8E4M3FN", [16, 1056], random), codes("f4E2M1FN", [70, 1056], random)],
      ...[codes(e8, [16, 33], random), codes(e8, [70, 33], random)],
    ],
    result: "tensor<16x70xf32>",
    body: `%r = ${dot}(%0, %1, %2, %3) : (tensor<16x1056xf8E4M3FN>, tensor<70x1056xf4E2M1FN>, tensor<16x33x${e8}>, tensor<70x33x${e8}>) -> tensor<16x70xf32>`,
    a: scaledFactor(0, 2, 16, 1056, 32),
    b: scaledFactor(1, 3, 70, 1056, 32),
    plan: /^operation scaled_matmul\(arg0 \[16, 1056\], arg1 \[70, 1056\], arg2 \[16, 33\], arg3 \[70, 33\]\) -> result0/m,
  },
  {
    name: "padded scales",
    sizes: [1, 9, 130, 960],
    inputs: (random) => [
      ...[codes("f8E5M2", [9, 960], random), codes("f8E4M3FN", [130, 960], random)],
      ...[codes(e8, [16, 32], random), codes(e8, [256, 32], random)],
    ],
    result: "tensor<9x130xf32>",
    body: String.raw`%r = ${dot}(%0, %1, %2, %3) {backend_config = "{\22block_scaled_dot_backend_config\22: {\22block_size\22: 32}}"} : (tensor<9x960xf8E5M2>, tensor<130x960xf8E4M3FN>, tensor<16x32x${e8}>, tensor<256x32x${e8}>) -> tensor<9x130xf32>`,
    a: scaledFactor(0, 2, 9, 960, 32, [16, 32]),
    b: scaledFactor(1, 3, 130, 960, 32, [256, 32]),
    plan: /^operation scaled_matmul/m,
  },
  {
    name: "bf16 by MXFP6 [k, n], as scaled_dot of JAX is decomposed, scales of one for bf16",
    sizes: [1, 33, 96, 352],
    inputs: (random) => [
      ...[half([33, 352], random), codes("f6E3M2FN", [352, 96], random)],
      codes(e8, [11, 96], random),
    ],
    result: "tensor<33x96xf32>",
    body: `%w = stablehlo.constant dense<1.0> : tensor<33x1x${e8}>
      %w1 = stablehlo.broadcast_in_dim %w, dims = [0, 1] : (tensor<33x1x${e8}>) -> tensor<33x352x${e8}>
      %w2 = stablehlo.convert %w1 : (tensor<33x352x${e8}>) -> tensor<33x352xbf16>
      %x = stablehlo.multiply %0, %w2 : tensor<33x352xbf16>
      %6 = stablehlo.broadcast_in_dim %2, dims = [0, 2] : (tensor<11x96x${e8}>) -> tensor<11x1x96x${e8}>
      %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1, 2] : (tensor<11x1x96x${e8}>) -> tensor<11x32x96x${e8}>
      %8 = stablehlo.reshape %7 : (tensor<11x32x96x${e8}>) -> tensor<352x96x${e8}>
      %9 = stablehlo.convert %1 : (tensor<352x96xf6E3M2FN>) -> tensor<352x96xbf16>
      %10 = stablehlo.convert %8 : (tensor<352x96x${e8}>) -> tensor<352x96xbf16>
      %11 = stablehlo.multiply %9, %10 : tensor<352x96xbf16>
      %r = stablehlo.dot_general %x, %11, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<33x352xbf16>, tensor<352x96xbf16>) -> tensor<33x96xf32>`,
    a: plainFactor(0, 33, 352),
    b: (at) => (_, column, l) => at(1, l * 96 + column) * at(2, Math.floor(l / 32) * 96 + column),
    plan: /^operation scaled_matmul\(arg0 \[33, 352\]/m,
  },
  {
    name: "MXFP4 weights that a program multiplies by their scales in f32",
    sizes: [1, 4, 512, 512],
    inputs: (random) => [
      ...[half([4, 512], random), codes("f4E2M1FN", [512, 512], random)],
      codes(e8, [512, 16], random),
    ],
    result: "tensor<4x512xbf16>",
    body: `%c = stablehlo.convert %1 : (tensor<512x512xf4E2M1FN>) -> tensor<512x512xf32>
      %c1 = stablehlo.reshape %c : (tensor<512x512xf32>) -> tensor<512x16x32xf32>
      %s = stablehlo.convert %2 : (tensor<512x16x${e8}>) -> tensor<512x16xf32>
      %s1 = stablehlo.broadcast_in_dim %s, dims = [0, 1] : (tensor<512x16xf32>) -> tensor<512x16x32xf32>
      %p = stablehlo.multiply %s1, %c1 : tensor<512x16x32xf32>
      %w = stablehlo.reshape %p : (tensor<512x16x32xf32>) -> tensor<512x512xf32>
      %h = stablehlo.convert %w : (tensor<512x512xf32>) -> tensor<512x512xbf16>
      %t = stablehlo.transpose %h, dims = [1, 0] : (tensor<512x512xbf16>) -> tensor<512x512xbf16>
      %r = stablehlo.dot_general %0, %t, contracting_dims = [1] x [0] : (tensor<4x512xbf16>, tensor<512x512xbf16>) -> tensor<4x512xbf16>`,
    a: plainFactor(0, 4, 512),
    b: scaledFactor(1, 2, 512, 512, 32),
    plan: /^launches 1, kernels 1/m,
  },
];

function moduleOf({ inputs, result, body }: Case): GraphModule {
  const parameters = inputs(new Random(1)).map((each, i) => `%${i}: ${typeOf(each)}`);
  const [module] = parseGraph(
    `func.func @main(${parameters.join(", ")}) -> ${result} {\n${body}\nreturn %r : ${result} }`,
  );
  if (module === undefined) throw new Error("the text has a program");
  return module;
}

function expectNear(found: Float64Array, one: Case, inputs: readonly Tensor[]): void {
  const [batch, m, n, k] = one.sizes;
  const arrays = inputs.map(numbers);
  const at: At = (input, index) => arrays[input]?.[index] ?? NaN;
  const [a, b] = [one.a(at), one.b(at)];
  const rounding = one.result.endsWith("xbf16>") ? 2 ** -8 : 2 ** -23;
  const wrong: string[] = [];
  for (let each = 0; each < batch; each++)
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        let [sum, size] = [0, 0];
        for (let l = 0; l < k; l++) {
          const term = a(each, i, l) * b(each, j, l);
          [sum, size] = [sum + term, size + Math.abs(term)];
        }
        const wanted = sum * (one.globalScale ?? 1);
        const bound =
          Math.ceil(k / 16) * (17 * 2 ** -25 + 2 ** -23) * size + rounding * Math.abs(sum);
        const own = found[(each * m + i) * n + j] ?? NaN;
        if (!(Math.abs(own - wanted) <= bound * Math.max(1, one.globalScale ?? 1)))
          wrong.push(`[${each}, ${i}, ${j}]: ${own}, not ${wanted}`);
      }
  expect(wrong.slice(0, 4)).toEqual([]);
}

describe.each(["simulator", "emulator"] as const)("products with scales on the %s", (kind) => {
  test.each(dealtTo(kind, cases))("$name", async (one) => {
    const inputs = one.inputs(new Random(41));
    const plan = compilePlan(moduleOf(one), "main");
    expect(planText(plan)).toMatch(one.plan);
    const program = await Program.load(devices.get(kind) as Device, plan);
    try {
      expectNear(numbers((await program.run(inputs))[0]), one, inputs);
    } finally {
      program.dispose();
    }
  });
});

test("the evaluator gives the same", () => {
  const one = cases[0] as Case;
  const inputs = one.inputs(new Random(41));
  expectNear(numbers(evaluate(moduleOf(one), "main", inputs)[0]), one, inputs);
});
