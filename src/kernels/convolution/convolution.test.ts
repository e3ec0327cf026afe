/** Convolutions and their gradients of random sizes, against float64; whole numbers make every sum exact. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkConvolution, randomConvolution } from "../../../test/support/convolution-check.ts";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { hasPtxas } from "../../../test/ptxas.ts";
import { codeOf, wholeNumbers } from "../../../test/support/library-checks.ts";
import { takesAll } from "../../../test/support/sample.ts";
import type { Device } from "../../device/device.ts";
import type { DType } from "../../formats/dtype.ts";
import { bf16, f16, f32, f64, i8 } from "../../formats/dtype.ts";
import { toNumbers } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import { compileAhead } from "../../lower/compile-ahead.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { convolution, convolutionBackwardW, convolutionBackwardX } from "./convolution.ts";

/** `CONVOLUTION_ROUNDS=200 CONVOLUTION_DEVICE=gpu CONVOLUTION_SEED=7` tries others. */
const seed = Number(process.env["CONVOLUTION_SEED"] ?? 1);
const rounds = Number(process.env["CONVOLUTION_ROUNDS"] ?? 0);
const kinds = [process.env["CONVOLUTION_DEVICE"] ?? ["simulator", "emulator"]].flat();

describe.each(kinds as readonly ("simulator" | "emulator" | "gpu")[])("on the %s", (kind) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(kind);
  });
  afterAll(() => {
    device.dispose();
  });

  test(
    `random sizes, steps, groups, formats and orders of axes, from seed ${seed}`,
    { timeout: 600_000 },
    async () => {
      const random = new Random(kind === "emulator" ? seed + 1 : seed);
      const count = rounds === 0 ? (kind === "simulator" ? 4 : 1) : rounds;
      for (let round = 0; round < count; round += 1)
        await checkConvolution(device, randomConvolution(random, round));
    },
  );

  const copied = [
    { name: "3 × 1", input: [3, 2], taps: [3, 1], padding: 1, channels: 64, outputs: 8 },
    { name: "3 × 3", input: [5, 3], taps: [3, 3], padding: 1, channels: 64, outputs: 8 },
    { name: "1 × 1", input: [5, 9], taps: [1, 1], padding: 0, channels: 64, outputs: 72 },
    { name: "two by two", input: [4, 6], taps: [3, 2], channels: 64, outputs: 72, strides: [2, 2] },
    {
      name: "gaps",
      input: [4, 3],
      taps: [1, 1],
      padding: 0,
      channels: 64,
      outputs: 8,
      strides: [2, 1],
    },
    { name: "groups", input: [3, 4], taps: [1, 3], channels: 64, outputs: 64, groups: 2 },
    { name: "three axes", input: [3, 4, 2], taps: [2, 2, 1], channels: 72, outputs: 8 },
    { name: "one axis", input: [130], taps: [3], channels: 8, outputs: 136, dilation: 2 },
  ];
  // The emulator takes one of these and of the next ones, unless it is asked for more.
  const depthwise = [
    { name: "3 × 3", input: [3, 4], taps: [3, 3], groups: 20, dtype: bf16 },
    { name: "rows of several blocks", input: [2, 17], taps: [2, 3], groups: 72, dtype: bf16 },
    { name: "two by two", input: [7, 4], taps: [3, 3], groups: 9, strides: [2, 2], dtype: f16 },
    {
      name: "two by two, odd",
      input: [4, 7],
      taps: [3, 3],
      groups: 9,
      strides: [2, 2],
      dtype: f32,
    },
    { name: "three apart", input: [8, 6], taps: [2, 3], groups: 3, strides: [3, 3], dtype: bf16 },
    {
      name: "rows three apart",
      input: [7, 40],
      taps: [2, 3],
      groups: 5,
      strides: [3, 1],
      dtype: f32,
    },
    {
      name: "planes and rows three apart",
      input: [4, 7, 9],
      taps: [2, 2, 2],
      groups: 72,
      strides: [3, 3, 1],
      dtype: bf16,
    },
    { name: "three axes", input: [2, 3, 4], taps: [1, 2, 3], groups: 5, dtype: f64 },
    {
      name: "many taps, two by two",
      input: [7, 6],
      taps: [5, 5],
      groups: 9,
      strides: [2, 2],
      padding: 2,
      dtype: bf16,
    },
    { name: "many taps", input: [6, 7], taps: [7, 7], groups: 10, padding: 3, dtype: f32 },
    {
      name: "many taps, two apart",
      input: [9],
      taps: [13],
      groups: 4,
      strides: [2],
      padding: 6,
      dtype: f32,
    },
  ];
  test.each(kind === "emulator" && rounds === 0 ? depthwise.slice(0, 1) : depthwise)(
    "every channel a group: $name",
    { timeout: 120_000 },
    async ({ input, taps, padding = 1, groups, dtype, ...others }) => {
      const all = (value: number) => input.map(() => value);
      await checkConvolution(device, {
        ...{ batch: 3, groups, channels: 1, outputs: 1, input, taps },
        ...{ strides: [others.strides ?? all(1)].flat(), dilation: all(1) },
        ...{ before: all(padding), after: all(padding), isLast: true, seed: 1 },
        dtype: dtype as unknown as DType<"f32">,
      });
    },
  );

  test.each(kind === "emulator" && rounds === 0 ? copied.slice(0, 1) : copied)(
    "by TMA: $name",
    { timeout: 600_000 },
    async ({ input, taps, padding = 1, channels, outputs, ...others }) => {
      const all = (value: number) => input.map(() => value);
      await checkConvolution(device, {
        ...{ batch: 2, groups: others.groups ?? 1, channels, outputs, input, taps },
        ...{ strides: [others.strides ?? all(1)].flat(), dilation: all(others.dilation ?? 1) },
        ...{ before: all(padding), after: all(padding), isLast: true, seed: 1 },
        dtype: bf16 as unknown as DType<"f32">,
      });
    },
  );
});

test("one operation serves all sizes of its dimensions", async () => {
  const device = await open("simulator");
  const [n, width] = [dim("n"), dim("width")];
  const op = convolution({ x: tensor(f64, [n, width, 2]), w: tensor(f64, [3, 2, 2]), strides: 2 });
  for (const [batch, length] of [
    [1, 4],
    [2, 9],
  ] as const) {
    const x = wholeNumbers(f64, [batch, length, 2], 1);
    const w = wholeNumbers(f64, [3, 2, 2], 2);
    const { out } = await device.run(op, { x: x.array, w: w.array });
    const expected = Array.from({ length: batch * Math.floor(length / 2) * 3 }, (_, index) => {
      const [image, at, o] = [
        Math.floor(index / 3 / Math.floor(length / 2)),
        Math.floor(index / 3) % Math.floor(length / 2),
        index % 3,
      ];
      return [0, 1, 2, 3].reduce(
        (sum, each) =>
          sum +
          (x.values[image * length * 2 + at * 4 + each] ?? NaN) * (w.values[o * 4 + each] ?? NaN),
        0,
      );
    });
    expect([...toNumbers(out)]).toEqual(expected);
  }
  device.dispose();
});

test("where every channel is a group there is no product of matrices", () => {
  const spec = { x: tensor(bf16, [8, 14, 14, 96]), w: tensor(bf16, [96, 3, 3, 1]), groups: 96 };
  for (const op of [convolution(spec), convolutionBackwardX(spec), convolutionBackwardW(spec)])
    expect(op.plan().configuration.kernel).toBe("depthwise");
});

test("single places side by side are products of matrices, but for the gradient of w", () => {
  const spec = { x: tensor(bf16, [64, 56, 56, 256]), w: tensor(bf16, [256, 1, 1, 256]) };
  for (const op of [convolution(spec), convolutionBackwardX(spec)])
    expect(op.plan().configuration.kernel).toBe("persistent");
  const weights = convolutionBackwardW(spec).plan().configuration;
  expect(weights).toMatchObject({ kernel: "tma", box: [64, 1, 1] });
  const padded = convolution({ ...spec, padding: 1 }).plan().configuration;
  expect(padded.kernel).toBe("tma");
});

test("the gradient of x of strided convolutions is one launch, also of places that no tap meets", () => {
  const x = tensor(bf16, [64, 28, 28, 256]);
  for (const w of [tensor(bf16, [256, 3, 3, 256]), tensor(bf16, [256, 1, 1, 256])]) {
    const op = convolutionBackwardX({ x, w, padding: w.shape[1] === 3 ? 1 : 0, strides: 2 });
    expect(op.plan().configuration.kernel).toBe("tma");
    expect(op.kernels()).toHaveLength(1);
  }
});

test("TMA is used where channels are last and rows are aligned", () => {
  const spec = (c: number) => ({ x: tensor(bf16, [8, 56, 56, c]), w: tensor(bf16, [c, 3, 3, c]) });
  const fast = convolution({ ...spec(64), padding: 1 }).plan();
  expect(fast.configuration).toMatchObject({ kernel: "tma", box: [2, 8, 8] });
  const slow = convolution(spec(12)).plan();
  expect(slow.configuration.kernel).toBe("gather");
  expect(slow.notes[0]).toContain("rows of 12 channels");
});

test.skipIf(!hasPtxas)("no registers are spilled, no products serialised", () => {
  const spec = {
    x: tensor(bf16, [64, 28, 28, 256]),
    w: tensor(bf16, [256, 3, 3, 256]),
    padding: 1,
  };
  const each = {
    x: tensor(bf16, [64, 28, 28, 144]),
    w: tensor(bf16, [144, 3, 3, 1]),
    groups: 144,
    padding: 1,
  };
  const apart = { ...each, strides: 2 };
  const deep = { ...each, w: tensor(bf16, [144, 7, 7, 1]) };
  // Of taller arrays only the gradient of w is of another form.
  const tall = { ...each, x: tensor(bf16, [64, 56, 56, 144]) };
  const pairs = { ...spec, strides: 2 };
  type Spec = Parameters<typeof convolutionBackwardX<"bf16">>[0];
  const forward = (own: Spec) => assemblyProblems(convolution(own).kernels());
  const ofX = (own: Spec) => assemblyProblems(convolutionBackwardX(own).kernels());
  const ofW = (own: Spec) => assemblyProblems(convolutionBackwardW(own).kernels());
  const all = [forward, ofX, ofW];
  // Of steps of two, the gradient of x differs most from what has none; of many taps, sums over them.
  const tried = [
    ...[spec, each].map((own) => [own, all] as const),
    ...[pairs, apart].map((own) => [own, takesAll ? all : [ofX]] as const),
    [deep, takesAll ? all : [forward, ofW]] as const,
    [tall, [ofW]] as const,
  ];
  for (const [own, passes] of tried) for (const pass of passes) expect(pass(own)).toEqual([]);
});

test.each([
  ["channels that do not agree", "TW9902", { w: tensor(bf16, [8, 3, 3, 5]) }],
  ["a kernel of other axes", "TW9902", { w: tensor(bf16, [8, 3, 4]) }],
  ["a kernel of no numbers", "TW9902", { w: tensor(bf16, [8, dim("k"), 3, 4]) }],
  ["a kernel longer than x", "TW9902", { w: tensor(bf16, [8, 13, 3, 4]) }],
  ["outputs that groups do not share", "TW9902", { w: tensor(bf16, [9, 3, 3, 2]), groups: 2 }],
  ["no groups", "TW9904", { groups: 0 }],
  ["too many strides", "TW9904", { strides: [1, 2, 3] }],
  ["padding that takes away", "TW9904", { padding: -1 }],
  ["an order of axes that nobody knows", "TW9904", { channels: "middle" }],
  ["two formats", "TW9901", { w: tensor(f16, [8, 3, 3, 4]) }],
  ["bytes", "TW9901", { x: tensor(i8, [2, 9, 9, 4]), w: tensor(i8, [8, 3, 3, 4]) }],
  ["precision of bf16", "TW9904", { precision: "ieee" }],
  ["a stride that is no number", "TW1008", { strides: "2" }],
])("refuses %s", (_, code, change) => {
  const spec = { x: tensor(bf16, [2, 9, 9, 4]), w: tensor(bf16, [8, 3, 3, 4]), ...change };
  expect(codeOf(() => convolution(spec as never))).toBe(code);
});

test("groups share outputs whose number a launch tells", () => {
  const spec = { x: tensor(bf16, [2, 9, 9, 4]), w: tensor(bf16, [dim("o"), 3, 3, 2]), groups: 2 };
  const plans = [
    () => convolution(spec).plan({ o: 9 }),
    () => convolutionBackwardX(spec).plan({ o: 9 }),
    () => convolutionBackwardW(spec).plan({ o: 9 }),
  ];
  for (const plan of plans) expect(codeOf(plan)).toBe("TW9902");
});

test("precision of f32 is always said", () => {
  const spec = { x: tensor(f32, [2, 9, 4]), w: tensor(f32, [8, 3, 4]) };
  expect(codeOf(() => convolution(spec))).toBe("TW9904");
});

test.each([
  [f32, 64],
  [f64, 256],
  [i8, 64],
] as const)("results of other formats have kernels that fit: %o, %i channels", (out, channels) => {
  const x = tensor(bf16, [3, 16, 16, 64]);
  const w = tensor(bf16, [channels, 3, 3, 64]);
  const { configuration, launches } = convolution({ x, w, padding: 1, out }).plan();
  expect(configuration.kernel).toBe("tma");
  for (const { kernel } of launches) compileAhead(kernel);
});
