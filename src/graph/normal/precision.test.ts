/**
 * What products of f32 are made by, and that they are as good as it says: whatever f32 holds, the error of a result is within that of f32
 * sums in some order, c·e·(|A||B|), measured against f64; `tf32` rounds operands to 11 bits and nothing else.
 */
import { describe, expect, test } from "vitest";
import { roundFloat } from "../../formats/floats.ts";
import { open } from "../../runtime/open.ts";
import { cpuTarget } from "../../targets/target.ts";
import type { Target } from "../../targets/target.ts";
import { Random } from "../../support/random.ts";
import { evaluate, tensor } from "../evaluate/index.ts";
import type { Tensor } from "../evaluate/index.ts";
import type { MatmulPrecision } from "../ops/matmul-precision.ts";
import { opsWithin } from "../ops/traverse.ts";
import { sizeOf } from "../ops/types.ts";
import { inlinePass } from "../passes/inline.ts";
import { runPasses } from "../passes/pass-order.ts";
import { compilePlan } from "../plan/compile.ts";
import { devicePasses } from "../plan/device-passes.ts";
import { Program } from "../plan/program.ts";
import { parseGraph } from "../text/index.ts";

function parsed(text: string) {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("the text has a program");
  return module;
}

/** How the products of a program are multiplied once it is ready for a device: `tf32 3`, three products of tf32. */
function algorithmsOf(
  text: string,
  precision: MatmulPrecision,
  target?: Target,
): readonly string[] {
  const module = runPasses(inlinePass.run(parsed(text)), devicePasses("main", precision, target));
  const main = module.functions.get("main");
  return [...opsWithin(main?.body ?? { parameters: [], ops: [], results: [] })].flatMap((op) => {
    if (op.kind !== "stablehlo.dot_general" && op.kind !== "stablehlo.convolution") return [];
    const { algorithm } = op.attributes;
    return [`${algorithm?.lhs_precision_type} ${algorithm?.num_primitive_operations}`];
  });
}

interface Convolution {
  readonly name: string;
  readonly shapes: readonly [readonly number[], readonly number[], readonly number[]];
  readonly numbers: string;
  readonly window: string;
}

/** A forward convolution and its gradients, as large as the library makes them. */
const convolutions: readonly Convolution[] = [
  {
    name: "a convolution",
    shapes: [
      [2, 9, 9, 32],
      [3, 3, 32, 64],
      [2, 7, 7, 64],
    ],
    numbers: "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
    window: "",
  },
  {
    name: "its gradient of the input",
    shapes: [
      [2, 4, 4, 64],
      [3, 3, 32, 64],
      [2, 9, 9, 32],
    ],
    numbers: "[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
    window: "pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2]",
  },
  {
    name: "its gradient of the kernel",
    shapes: [
      [2, 9, 9, 32],
      [2, 7, 7, 64],
      [3, 3, 32, 64],
    ],
    numbers: "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]",
    window: "",
  },
];

function convolutionText({ shapes, numbers, window }: Convolution, precision = ""): string {
  const [x, w, out] = shapes.map((shape) => `tensor<${shape.join("x")}xf32>`);
  return `func.func @main(%x: ${x}, %w: ${w}) -> ${out} {
    %0 = stablehlo.convolution(%x, %w) dim_numbers = ${numbers}, window = {${window}}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64${precision}} : (${x}, ${w}) -> ${out}
    return %0 : ${out} }`;
}

function productText(shapes: readonly [string, string, string], dims: string, more = ""): string {
  const [x, y, out] = shapes.map((type) => `tensor<${type}>`);
  return `func.func @main(%x: ${x}, %y: ${y}) -> ${out} {
    %0 = stablehlo.dot_general %x, %y, ${dims}${more} : (${x}, ${y}) -> ${out}
    return %0 : ${out} }`;
}

const explicit = (format: string, count: number): string =>
  `, algorithm = <lhs_precision_type = ${format}, rhs_precision_type = ${format}, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = ${count}, allow_imprecise_accumulation = false>`;

describe("how products are multiplied", () => {
  const plain = ["32x64xf32", "64x32xf32", "32x32xf32"] as const;
  const dims = "contracting_dims = [1] x [0]";
  const highest =
    ", precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]";
  test.each<readonly [name: string, text: string, single: string, rounded: string]>([
    ["matrices", productText(plain, dims), "tf32 3", "tf32 1"],
    [
      "many small ones",
      productText(
        ["100x12x9xf32", "100x9x7xf32", "100x12x7xf32"],
        "batching_dims = [0] x [0], contracting_dims = [2] x [1]",
      ),
      "tf32 3",
      "tf32 1",
    ],
    [
      "summed in f32, rounded to bf16",
      productText(["32x64xf32", "64x32xf32", "32x32xbf16"], dims),
      "tf32 3",
      "tf32 1",
    ],
    ["with an algorithm", productText(plain, dims, explicit("tf32", 3)), "tf32 3", "tf32 3"],
    ["with another", productText(plain, dims, explicit("bf16", 9)), "bf16 9", "bf16 9"],
    ...convolutions.map((each) => [each.name, convolutionText(each), "tf32 3", "tf32 1"] as const),
    ...convolutions.map(
      (each) =>
        [`${each.name}, highest`, convolutionText(each, highest), "bf16 6", "bf16 6"] as const,
    ),
  ])("%s", (_, text, single, rounded) => {
    expect(algorithmsOf(text, "f32")).toEqual([single]);
    expect(algorithmsOf(text, "tf32")).toEqual([rounded]);
  });

  test("on a CPU as f32, unless an algorithm is asked for", () => {
    for (const precision of ["f32", "tf32"] as const) {
      const algorithms = (more: string): readonly string[] =>
        algorithmsOf(productText(plain, dims, more), precision, cpuTarget);
      expect(algorithms("")).toEqual(["f32 1"]);
      expect(algorithms(", precision = [HIGHEST, HIGHEST]")).toEqual(["f32 1"]);
      expect(algorithms(explicit("bf16", 3))).toEqual(["bf16 3"]);
    }
  });

  test("of complex numbers, each part", () => {
    const text = productText(
      ["32x64xcomplex<f32>", "64x32xcomplex<f32>", "32x32xcomplex<f32>"],
      dims,
    );
    expect(algorithmsOf(text, "f32")).toEqual(["tf32 3", "tf32 3"]);
    expect(algorithmsOf(text, "tf32")).toEqual(["tf32 1", "tf32 1"]);
  });

  test("which one was asked for is on the plan", () => {
    const module = parsed(productText(plain, dims));
    expect(compilePlan(module, "main").matmulPrecision).toBe("f32");
    expect(compilePlan(module, "main", [], { matmulPrecision: "tf32" }).matmulPrecision).toBe(
      "tf32",
    );
  });
});

async function runOn(
  text: string,
  inputs: readonly Tensor[],
  matmulPrecision: MatmulPrecision,
): Promise<Float32Array> {
  const device = await open("simulator");
  const program = await Program.load(
    device,
    compilePlan(parsed(text), "main", [], { matmulPrecision }),
  );
  const [found] = await program.run(inputs);
  program.dispose();
  device.dispose();
  return found?.data as Float32Array;
}

/** The program's result in f64, of other operands. */
function widened(
  text: string,
  inputs: readonly Tensor[],
  map: (value: number) => number,
): Float64Array {
  const others = inputs.map((each) =>
    tensor("f64", each.shape, Float64Array.from(each.data as Float32Array, map)),
  );
  const [found] = evaluate(parsed(text.replaceAll("xf32", "xf64")), "main", others);
  return (found as Tensor).data as Float64Array;
}

test.each(convolutions)("$name rounds operands to tf32 and nothing else", async (each) => {
  const random = new Random(31);
  const text = convolutionText(each);
  const inputs = each.shapes.slice(0, 2).map((shape) =>
    tensor(
      "f32",
      shape,
      Float32Array.from({ length: sizeOf(shape) }, () => random.normal()),
    ),
  );
  const wanted = widened(text, inputs, (value) => roundFloat("tf32", value));
  const sizes = widened(text, inputs, Math.abs);
  const found = await runOn(text, inputs, "tf32");
  const worst = found.reduce(
    (most, value, at) => Math.max(most, Math.abs(value - (wanted[at] ?? NaN)) / (sizes[at] ?? 1)),
    0,
  );
  // Tensor cores cut sums off, each step at 2^-23 of the greatest term.
  expect(worst).toBeLessThan(2 ** -17);
});

const greatest = (2 - 2 ** -23) * 2 ** 127;

/** Rows of the left operand, each meeting a column of its own of the right one. */
const extremes: readonly (readonly [
  name: string,
  left: readonly number[],
  right: readonly number[],
])[] = [
  ["the greatest number", [greatest], [1]],
  ["the greatest number, negative", [-greatest, 1], [1, 1]],
  ["half of it, twice", [greatest / 2, greatest / 2], [1, 1]],
  ["what overflows", [greatest, greatest], [1, 1]],
  ["what overflows in one product", [greatest], [-2]],
  ["what cancels near the end", [greatest, -greatest, 3], [1, 1, 1]],
  ["infinity", [Infinity, 1], [0.1, 1]],
  ["negative infinity times a number with parts", [-Infinity, 1], [1 / 3, 1]],
  ["infinity times zero", [Infinity, 1], [0, 1]],
  ["both infinities", [Infinity, -Infinity], [1, 1]],
  ["a NaN", [NaN, 1], [1, 1]],
  ["subnormal numbers", [2 ** -149, 3 * 2 ** -140], [1, 1]],
  ["a subnormal number and a great one", [2 ** -149, 2 ** -130], [2 ** 126, 2 ** 100]],
  ["products below all numbers", [2 ** -100], [2 ** -100]],
  ["minus zeros", [-0, -0], [1, 1]],
  ["what cancels", [1 + 2 ** -23, -1], [1, 1]],
  ["what cancels but for the last bits", [1 / 3, -1 / 3, 1e-9], [3, 3.0000002, 1]],
  ["one below 2^128 in tf32", [greatest, 2 ** 100], [0.99999994, -1]],
];

/** Parts are multiples of this: bf16 has no smaller number. */
const lastPlace = 2 ** -133;

function sizeOfFactors(row: readonly number[], column: readonly number[]): number {
  return [...row, ...column].reduce((sum, value) => sum + Math.abs(value), 0);
}

describe.each([
  ["by tiles", 32, 32],
  ["by the library", 128, 64],
] as const)("whatever f32 holds, %s", (_, size, depth) => {
  test.each(["", ", precision = [HIGH, HIGH]", ", precision = [HIGHEST, HIGHEST]"])(
    "precision%s",
    async (precision) => {
      const left = new Float32Array(size * depth);
      const right = new Float32Array(depth * size);
      for (const [at, [, row, column]] of extremes.entries()) {
        left.set(row, at * depth);
        for (const [k, value] of column.entries()) right[k * size + at] = value;
      }
      const text = productText(
        [`${size}x${depth}xf32`, `${depth}x${size}xf32`, `${size}x${size}xf32`],
        "contracting_dims = [1] x [0]",
        precision,
      );
      const inputs = [tensor("f32", [size, depth], left), tensor("f32", [depth, size], right)];
      const exact = widened(text, inputs, (value) => value);
      const sizes = widened(text, inputs, Math.abs);
      const found = await runOn(text, inputs, "f32");
      const error = precision.includes("[HIGH,") ? 2 ** -15 : 2 ** -21;
      for (const [at, [name, row, column]] of extremes.entries()) {
        const place = at * size + at;
        const [value = NaN, wanted = NaN, magnitude = NaN] = [
          found[place],
          exact[place],
          sizes[place],
        ];
        // First parts of several products may be infinite together before the others bring them back.
        const isAtEnd = magnitude > greatest * (1 - 2 ** -8) && at !== 0;
        if (isAtEnd && Number.isFinite(wanted) && value === Math.sign(wanted) * Infinity) continue;
        if (Math.abs(wanted) > greatest || Number.isNaN(wanted))
          expect(value, name).toBe(Math.fround(wanted));
        else
          expect(Math.abs(value - wanted), name).toBeLessThanOrEqual(
            error * magnitude + lastPlace * sizeOfFactors(row, column) + 4 * 2 ** -149,
          );
      }
    },
  );
});
