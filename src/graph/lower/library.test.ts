/** Which products the library makes, and that operands and results mean the same to it. */
import { expect, test } from "vitest";
import { fromNumbers, toElements } from "../../formats/hostarray.ts";
import { bf16 } from "../../formats/dtype.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { tensor } from "../evaluate/index.ts";
import { compilePlan } from "../plan/compile.ts";
import type { Plan } from "../plan/plan.ts";
import { Program } from "../plan/program.ts";
import { planText } from "../plan/text.ts";
import { parseGraph } from "../text/index.ts";

function planOf(lhs: string, rhs: string, numbers: string, result: string): Plan {
  const [module] = parseGraph(
    `func.func @main(%x: tensor<${lhs}>, %y: tensor<${rhs}>) -> tensor<${result}> {
      %0 = stablehlo.dot_general %x, %y, ${numbers} : (tensor<${lhs}>, tensor<${rhs}>) -> tensor<${result}>
      return %0 : tensor<${result}> }`,
    "product.mlir",
  );
  if (module === undefined) throw new Error("the text has a program");
  return compilePlan(module, "main");
}

test.each([
  ["256x256xbf16", "256x256xbf16", "contracting_dims = [1] x [0]", "256x256xbf16"],
  ["256x256xbf16", "256x256xbf16", "contracting_dims = [0] x [1]", "256x256xf32"],
  [
    "4x2x256x64xf16",
    "4x2x256x64xf16",
    "batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]",
    "4x2x256x256xf16",
  ],
  ["512x512xf32", "512x512xf32", "contracting_dims = [1] x [0]", "512x512xf32"],
  [
    "256x8x64xbf16",
    "256x8x64xbf16",
    "batching_dims = [1] x [1], contracting_dims = [2] x [2]",
    "8x256x256xbf16",
  ],
])("%s by %s, %s, is the library's", (lhs, rhs, numbers, result) => {
  expect(planText(planOf(lhs, rhs, numbers, result))).toContain("operation matmul");
});

test.each([
  ["few products", "64x64xbf16", "64x64xbf16", "contracting_dims = [1] x [0]", "64x64xbf16"],
  ["whole numbers", "512x512xi32", "512x512xi32", "contracting_dims = [1] x [0]", "512x512xi32"],
])("a product with %s is not", (_, lhs, rhs, numbers, result) => {
  expect(planText(planOf(lhs, rhs, numbers, result))).not.toContain("operation");
});

test("operands by rows and by columns", async () => {
  const random = new Random(11);
  const [batch, m, n, k] = [2, 136, 256, 256];
  const values = (count: number): readonly number[] =>
    Array.from({ length: count }, () => Math.floor(9 * random.uniform()) - 4);
  // Small whole numbers: products and their sums are exact, the result one rounding away.
  const [x, y] = [values(batch * k * m), values(batch * n * k)];
  const plan = planOf(
    `${batch}x${k}x${m}xbf16`,
    `${batch}x${n}x${k}xbf16`,
    "batching_dims = [0] x [0], contracting_dims = [1] x [2]",
    `${batch}x${m}x${n}xf32`,
  );
  const device = await open("simulator");
  const program = await Program.load(device, plan);
  const lanes = (list: readonly number[]) =>
    toElements(fromNumbers(bf16, [list.length], [...list]));
  const [found] = await program.run([
    tensor("bf16", [batch, k, m], lanes(x)),
    tensor("bf16", [batch, n, k], lanes(y)),
  ]);
  const result = Array.from(found?.data as Float32Array);
  for (let sample = 0; sample < 200; sample++) {
    const [b, i, j] = [batch, m, n].map((extent) => Math.floor(extent * random.uniform())) as [
      number,
      number,
      number,
    ];
    let sum = 0;
    for (let at = 0; at < k; at++)
      sum += (x[(b * k + at) * m + i] ?? 0) * (y[(b * n + j) * k + at] ?? 0);
    expect(result[(b * m + i) * n + j]).toBe(sum);
  }
  program.dispose();
  device.dispose();
});

test("a product of f32 is no further off than sums of f32 may be", async () => {
  const random = new Random(12);
  const [m, n, k] = [96, 128, 200];
  const plan = planOf(
    `${m}x${k}xf32`,
    `${k}x${n}xf32`,
    "contracting_dims = [1] x [0]",
    `${m}x${n}xf32`,
  );
  const values = (count: number): Float32Array =>
    Float32Array.from({ length: count }, () => random.normal());
  const [x, y] = [values(m * k), values(k * n)];
  const device = await open("emulator");
  const program = await Program.load(device, plan);
  const [found] = await program.run([tensor("f32", [m, k], x), tensor("f32", [k, n], y)]);
  const result = found?.data as Float32Array;
  for (const [at, value] of result.entries()) {
    const [i, j] = [Math.floor(at / n), at % n];
    let [sum, size] = [0, 0];
    for (let depth = 0; depth < k; depth += 1) {
      const product = (x[i * k + depth] ?? 0) * (y[depth * n + j] ?? 0);
      sum += product;
      size += Math.abs(product);
    }
    expect(Math.abs(value - sum)).toBeLessThanOrEqual(8 * 2 ** -24 * size);
  }
  program.dispose();
  device.dispose();
});
