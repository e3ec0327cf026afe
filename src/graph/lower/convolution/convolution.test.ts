/** Which convolutions the library makes, and that operands and results mean the same to it. */
import { expect, test } from "vitest";
import { bf16 } from "../../../formats/dtype.ts";
import { fromNumbers, toElements, toNumbers } from "../../../formats/hostarray.ts";
import { open } from "../../../runtime/open.ts";
import { Random } from "../../../support/random.ts";
import { tensor } from "../../evaluate/index.ts";
import { compilePlan } from "../../plan/compile.ts";
import type { Plan } from "../../plan/plan.ts";
import { Program } from "../../plan/program.ts";
import { planText } from "../../plan/text.ts";
import { parseGraph } from "../../text/index.ts";

function planOf(
  types: readonly [string, string, string],
  numbers: string,
  window: string,
  groups = 1,
): Plan {
  const [x, w, out] = types.map((type) => `tensor<${type}>`) as [string, string, string];
  const [module] = parseGraph(`func.func @main(%x: ${x}, %w: ${w}) -> ${out} {
    %0 = stablehlo.convolution(%x, %w) dim_numbers = ${numbers}, window = {${window}}
      {batch_group_count = 1 : i64, feature_group_count = ${groups} : i64} : (${x}, ${w}) -> ${out}
    return %0 : ${out} }`);
  if (module === undefined) throw new Error("the text has a program");
  return compilePlan(module, "main");
}

const last = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]";

test("weights are transposed to the library's order", () => {
  const types = ["8x32x32x64xbf16", "3x3x64x64xbf16", "8x32x32x64xbf16"] as const;
  const text = planText(planOf(types, last, "pad = [[1, 1], [1, 1]]"));
  expect(text).toContain("operation permute");
  expect(text).toContain("operation convolution");
});

test("weights in that order are taken as they are", () => {
  const types = ["8x64x32x32xf16", "64x64x3x3xf16", "8x64x30x30xf32"] as const;
  const text = planText(planOf(types, "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", ""));
  expect(text).not.toMatch(/transpose|permute/);
  expect(text).toContain("operation convolution");
});

test("f32 is the library's, by products of its parts", () => {
  const text = planText(planOf(["8x32x32x64xf32", "3x3x64x64xf32", "8x30x30x64xf32"], last, ""));
  expect(text).toContain("operation convolution");
});

test.each([
  ["few products", ["1x8x8x4xbf16", "3x3x4x4xbf16", "1x6x6x4xbf16"], last, ""],
  [
    "a gradient of weights in f32",
    ["8x32x32x64xbf16", "8x30x30x64xbf16", "3x3x64x64xf32"],
    "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]",
    "",
  ],
] as const)("a convolution with %s is not the library's", (_, types, numbers, window) => {
  expect(planText(planOf(types, numbers, window))).not.toContain("operation");
});

test("a convolution with holes in an input that no forward convolution has is several of the library without", () => {
  const types = ["8x16x16x64xbf16", "3x3x64x64xbf16", "8x34x34x64xbf16"] as const;
  const text = planText(planOf(types, last, "lhs_dilate = [2, 2], pad = [[3, 2], [3, 2]]"));
  expect(text.match(/operation convolution/g)).toHaveLength(4);
});

test("groups, strides, dilation and uneven edges", async () => {
  const random = new Random(12);
  const [batch, height, width, channels, outputs, groups] = [8, 19, 17, 64, 64, 2];
  const [rows, columns] = [9, 19];
  const each = channels / groups;
  const values = (count: number): readonly number[] =>
    Array.from({ length: count }, () => Math.floor(9 * random.uniform()) - 4);
  const [x, w] = [values(batch * height * width * channels), values(3 * 3 * each * outputs)];
  const plan = planOf(
    [
      `${batch}x${height}x${width}x${channels}xbf16`,
      `3x3x${each}x${outputs}xbf16`,
      `${batch}x${rows}x${columns}x${outputs}xf32`,
    ],
    last,
    "stride = [2, 1], pad = [[1, 0], [2, 4]], rhs_dilate = [1, 2]",
    groups,
  );
  expect(planText(plan)).toContain("operation convolution");
  const device = await open("simulator");
  const program = await Program.load(device, plan);
  const lanes = (list: readonly number[]) =>
    toElements(fromNumbers(bf16, [list.length], [...list]));
  const [found] = await program.run([
    tensor("bf16", [batch, height, width, channels], lanes(x)),
    tensor("bf16", [3, 3, each, outputs], lanes(w)),
  ]);
  const result = found?.data as Float32Array;
  for (let sample = 0; sample < 200; sample++) {
    const [n, i, j, o] = [batch, rows, columns, outputs].map((extent) => random.below(extent)) as [
      number,
      number,
      number,
      number,
    ];
    let sum = 0;
    for (let di = 0; di < 3; di++)
      for (let dj = 0; dj < 3; dj++)
        for (let c = 0; c < each; c++) {
          const [row, column] = [2 * i + di - 1, j + 2 * dj - 2];
          if (row < 0 || row >= height || column < 0 || column >= width) continue;
          const channel = Math.floor(o / (outputs / groups)) * each + c;
          const at = ((n * height + row) * width + column) * channels + channel;
          sum += (x[at] ?? 0) * (w[((di * 3 + dj) * each + c) * outputs + o] ?? 0);
        }
    expect(result[((n * rows + i) * columns + j) * outputs + o]).toBe(sum);
  }
  program.dispose();
  device.dispose();
});

/** Small whole numbers, of which products and sums are exact. */
function wholeNumbers(random: Random, count: number): readonly number[] {
  return Array.from({ length: count }, () => random.below(5) - 2);
}

async function resultOf(
  plan: Plan,
  inputs: readonly (readonly [readonly number[], readonly number[]])[],
): Promise<Float32Array> {
  const device = await open("simulator");
  const program = await Program.load(device, plan);
  const [found] = await program.run(
    inputs.map(([shape, numbers]) =>
      tensor("bf16", shape, toElements(fromNumbers(bf16, [numbers.length], [...numbers]))),
    ),
  );
  program.dispose();
  device.dispose();
  const bits = Uint32Array.from(found?.data as Uint16Array, (code) => code << 16);
  return new Float32Array(bits.buffer);
}

const toBf16 = (value: number): number => toNumbers(fromNumbers(bf16, [1], [value]))[0] as number;

test("the gradient of an input under strides", async () => {
  const random = new Random(13);
  // Forward: x [4, 15, 16, 32], w [64, 3, 3, 32], strides 2 and 2, padding (1, 1) and (0, 1).
  const [batch, rows, columns, channels, outputs] = [4, 15, 16, 32, 64];
  const [g, w] = [
    wholeNumbers(random, batch * 8 * 8 * outputs),
    wholeNumbers(random, 9 * channels * outputs),
  ];
  const plan = planOf(
    [
      `${batch}x8x8x${outputs}xbf16`,
      `3x3x${channels}x${outputs}xbf16`,
      `${batch}x${rows}x${columns}x${channels}xbf16`,
    ],
    "[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
    "pad = [[1, 1], [2, 1]], lhs_dilate = [2, 2]",
  );
  expect(planText(plan)).toContain("operation convolution_backward_x");
  const found = await resultOf(plan, [
    [[batch, 8, 8, outputs], g],
    [[3, 3, channels, outputs], w],
  ]);
  for (let sample = 0; sample < 100; sample++) {
    const [n, i, j, c] = [batch, rows, columns, channels].map((extent) => random.below(extent)) as [
      number,
      number,
      number,
      number,
    ];
    let sum = 0;
    for (let di = 0; di < 3; di++)
      for (let dj = 0; dj < 3; dj++) {
        const [row, column] = [(i + di - 1) / 2, (j + dj - 2) / 2];
        if (!Number.isInteger(row) || !Number.isInteger(column)) continue;
        if (row < 0 || row >= 8 || column < 0 || column >= 8) continue;
        for (let o = 0; o < outputs; o++)
          sum +=
            (g[((n * 8 + row) * 8 + column) * outputs + o] ?? 0) *
            (w[((di * 3 + dj) * channels + c) * outputs + o] ?? 0);
      }
    expect(found[((n * rows + i) * columns + j) * channels + c]).toBe(toBf16(sum));
  }
});

test("the gradient of weights under strides", async () => {
  const random = new Random(14);
  const [batch, rows, columns, channels, outputs] = [8, 15, 16, 64, 64];
  const [x, g] = [
    wholeNumbers(random, batch * rows * columns * channels),
    wholeNumbers(random, batch * 8 * 8 * outputs),
  ];
  const plan = planOf(
    [
      `${batch}x${rows}x${columns}x${channels}xbf16`,
      `${batch}x8x8x${outputs}xbf16`,
      `3x3x${channels}x${outputs}xbf16`,
    ],
    "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]",
    "pad = [[1, 1], [0, 1]], rhs_dilate = [2, 2]",
  );
  expect(planText(plan)).toContain("operation convolution_backward_w");
  const found = await resultOf(plan, [
    [[batch, rows, columns, channels], x],
    [[batch, 8, 8, outputs], g],
  ]);
  for (let sample = 0; sample < 50; sample++) {
    const [di, dj, c, o] = [3, 3, channels, outputs].map((extent) => random.below(extent)) as [
      number,
      number,
      number,
      number,
    ];
    let sum = 0;
    for (let n = 0; n < batch; n++)
      for (let i = 0; i < 8; i++)
        for (let j = 0; j < 8; j++) {
          const [row, column] = [2 * i + di - 1, 2 * j + dj];
          if (row < 0 || row >= rows || column >= columns) continue;
          sum +=
            (x[((n * rows + row) * columns + column) * channels + c] ?? 0) *
            (g[((n * 8 + i) * 8 + j) * outputs + o] ?? 0);
        }
    expect(found[((di * 3 + dj) * channels + c) * outputs + o]).toBe(toBf16(sum));
  }
});
