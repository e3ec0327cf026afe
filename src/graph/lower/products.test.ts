/**
 * How sums and products are made on devices: integers of fewer bits than their format wrap to their own width, short sums of floats
 * are made step by step, and algorithms round operands where they say so.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Device } from "../../device/device.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { evaluate, tensor } from "../evaluate/index.ts";
import type { Tensor } from "../evaluate/index.ts";
import { compilePlan } from "../plan/compile.ts";
import { Program } from "../plan/program.ts";
import { parseGraph } from "../text/index.ts";

let device: Device;
beforeAll(async () => {
  device = await open("simulator");
});
afterAll(() => {
  device.dispose();
});

async function results(text: string, inputs: readonly Tensor[]): Promise<readonly number[]> {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("no program");
  const program = await Program.load(device, compilePlan(module, "main"));
  const [found] = await program.run(inputs);
  program.dispose();
  return Array.from(found?.data ?? [], Number);
}

const elements = [
  ["i4", 4, true],
  ["ui4", 4, false],
  ["i2", 2, true],
  ["ui2", 2, false],
] as const;

/** A whole number modulo 2^bits, in the range of its type. */
function within(value: number, bits: number, isSigned: boolean): number {
  const wide = BigInt(value);
  return Number(isSigned ? BigInt.asIntN(bits, wide) : BigInt.asUintN(bits, wide));
}

for (const [element, bits, isSigned] of elements)
  test(`sums and products of ${element}`, async () => {
    const random = new Random(bits);
    const numbers = (count: number): readonly number[] =>
      Array.from({ length: count }, () => within(random.below(16), bits, isSigned));
    const lanes = isSigned ? Int8Array : Uint8Array;
    const [left, right] = [numbers(3 * 40), numbers(40 * 2)];
    const reduced = await results(
      `func.func @main(%x: tensor<3x40x${element}>) -> tensor<3x${element}> {
        %zero = stablehlo.constant dense<0> : tensor<${element}>
        %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<3x40x${element}>, tensor<${element}>) -> tensor<3x${element}>
        return %0 : tensor<3x${element}> }`,
      [tensor(element, [3, 40], lanes.from(left))],
    );
    expect(reduced).toEqual(
      [0, 1, 2].map((row) => {
        const sum = left.slice(40 * row, 40 * row + 40).reduce((total, each) => total + each, 0);
        return within(sum, bits, isSigned);
      }),
    );
    const products = await results(
      `func.func @main(%x: tensor<3x40x${element}>, %y: tensor<40x2x${element}>) -> tensor<3x2x${element}> {
        %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<3x40x${element}>, tensor<40x2x${element}>) -> tensor<3x2x${element}>
        return %0 : tensor<3x2x${element}> }`,
      [tensor(element, [3, 40], lanes.from(left)), tensor(element, [40, 2], lanes.from(right))],
    );
    const product = (row: number, column: number): number => {
      let sum = 0;
      for (let k = 0; k < 40; k++)
        sum += (left[40 * row + k] as number) * (right[2 * k + column] as number);
      return within(sum, bits, isSigned);
    };
    expect(products).toEqual([0, 1, 2].flatMap((row) => [product(row, 0), product(row, 1)]));
  });

test("an algorithm of one product rounds its operands, one of several takes them as they are", async () => {
  const exact = 1 + 2 ** -9;
  const product = (format: string, products: number): string => `
    func.func @main(%x: tensor<1x16xf32>, %y: tensor<16x1xf32>) -> tensor<1x1xf32> {
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = ${format}, rhs_precision_type = ${format}, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = ${products}, allow_imprecise_accumulation = false> : (tensor<1x16xf32>, tensor<16x1xf32>) -> tensor<1x1xf32>
      return %0 : tensor<1x1xf32> }`;
  const inputs = [
    tensor("f32", [1, 16], new Float32Array(16).fill(exact)),
    tensor("f32", [16, 1], new Float32Array(16).fill(1)),
  ];
  const sums = [
    ["bf16", 1, 16],
    ["bf16", 3, 16 * exact],
    ["bf16", 9, 16 * exact],
    ["tf32", 1, 16 * exact],
    ["f32", 1, 16 * exact],
  ] as const;
  for (const [format, products, sum] of sums) {
    const text = product(format, products);
    expect(await results(text, inputs)).toEqual([sum]);
    const [module] = parseGraph(text);
    const [meant] = module === undefined ? [] : evaluate(module, "main", inputs);
    expect(Array.from((meant as Tensor).data, Number)).toEqual([sum]);
  }
});

test("short sums of products are made step by step in f32, longer ones no worse", async () => {
  // The second product is lost in a step of f32.
  const product = (length: number): string => `
    func.func @main(%x: tensor<1x${length}xf32>, %y: tensor<${length}x1xf32>) -> tensor<1x1xf32> {
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<1x${length}xf32>, tensor<${length}x1xf32>) -> tensor<1x1xf32>
      return %0 : tensor<1x1xf32> }`;
  const inputs = (length: number): readonly Tensor[] => {
    const left = new Float32Array(length);
    left.set([2 ** 30, 1, -(2 ** 30)]);
    return [
      tensor("f32", [1, length], left),
      tensor("f32", [length, 1], new Float32Array(length).fill(1)),
    ];
  };
  expect(await results(product(8), inputs(8))).toEqual([0]);
  const [longer = NaN] = (await results(product(9), inputs(9))) as readonly number[];
  expect(Math.abs(longer - 1)).toBeLessThanOrEqual(9 * 2 ** -24 * 2 ** 31);
});

test("products of bf16 into f64 are summed in f64", async () => {
  // 1 + 2^-30 takes more bits than f32 has.
  const text = `func.func @main(%x: tensor<16x16xbf16>, %y: tensor<16x16xbf16>) -> tensor<16x16xf64> {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<16x16xbf16>, tensor<16x16xbf16>) -> tensor<16x16xf64>
    return %0 : tensor<16x16xf64> }`;
  const [one, small] = [0x3f80, 0x3800];
  const left = Uint16Array.from({ length: 256 }, (_, i) =>
    i % 16 === 0 ? one : i % 16 === 1 ? small : 0,
  );
  const right = Uint16Array.from({ length: 256 }, (_, i) => (i < 16 ? one : i < 32 ? small : 0));
  const found = await results(text, [
    tensor("bf16", [16, 16], left),
    tensor("bf16", [16, 16], right),
  ]);
  expect(new Set(found)).toEqual(new Set([1 + 2 ** -30]));
});

test("whole numbers are taken as floats where the other operand has floats", async () => {
  const product = `func.func @main(%x: tensor<2x10xf32>, %y: tensor<10x1xi32>) -> tensor<2x1xf32> {
    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x10xf32>, tensor<10x1xi32>) -> tensor<2x1xf32>
    return %0 : tensor<2x1xf32> }`;
  const counted = Array.from({ length: 20 }, (_, i) => i / 4);
  const inputs = [
    tensor("f32", [2, 10], Float32Array.from(counted)),
    tensor(
      "i32",
      [10, 1],
      Int32Array.from({ length: 10 }, (_, i) => 3 - i),
    ),
  ];
  const expected = [0, 10].map((row) =>
    counted.slice(row, row + 10).reduce((sum, number, i) => sum + number * (3 - i), 0),
  );
  expect(await results(product, inputs)).toEqual(expected);
  const [module] = parseGraph(product);
  if (module === undefined) throw new Error("no program");
  const [found] = evaluate(module, "main", inputs) as readonly Tensor[];
  expect(Array.from(found?.data ?? [], Number)).toEqual(expected);
});

test.each(["f8E4M3FN", "f8E5M2"] as const)("sums of %s are those of f32", async (element) => {
  const product = `func.func @main(%x: tensor<2x20xf32>, %y: tensor<20x3xf32>) -> tensor<2x3xf32> {
    %a = stablehlo.convert %x : (tensor<2x20xf32>) -> tensor<2x20x${element}>
    %b = stablehlo.convert %y : (tensor<20x3xf32>) -> tensor<20x3x${element}>
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x20x${element}>, tensor<20x3x${element}>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32> }`;
  const column = [256, 2, ...Array.from({ length: 18 }, () => 0)];
  const inputs = [
    tensor("f32", [2, 20], Float32Array.from([...column, ...column])),
    tensor("f32", [20, 3], Float32Array.from(column.flatMap((number) => [number, number, number]))),
  ];
  expect(await results(product, inputs)).toEqual(new Array(6).fill(65540));
});
