/** Products in parts of k, against sums in float64 of whole numbers, which every order gives exactly. */
import { expect, test } from "vitest";
import { codeOf } from "../../../../test/support/library-checks.ts";
import { bf16, f32, f64, i32, i4, i8 } from "../../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import { tensor, dim } from "../../../lang/index.ts";
import { open } from "../../../runtime/open.ts";
import { Random } from "../../../support/random.ts";
import type { PersistentConfiguration } from "../configuration.ts";
import { matmul } from "../matmul.ts";
import { quantizeWeights } from "../weights/quantize-weights.ts";
import { quantized } from "../weights/quantized.ts";
import type { QuantizedSpec } from "../weights/quantized.ts";

const inParts: PersistentConfiguration = {
  ...{ kernel: "persistent", consumers: 1, columns: 8, stages: 3 },
  ...{ schedule: "split-k", swapAB: true, cluster: 1 },
};
const [m, n, k, batch] = [dim("m"), dim("n"), dim("k"), dim("batch")];

test.each([
  ["few rows", [5, 264, 712], { consumers: 4 }, "simulator"],
  ["few rows", [5, 136, 712], {}, "emulator"],
  ["the last of which is short", [20, 136, 1288], { consumers: 2, columns: 32 }, "simulator"],
  ["rows that are not aligned", [3, 35, 345], {}, "simulator"],
  ["along rows", [70, 72, 520], { swapAB: false, columns: 64 }, "simulator"],
  ["so few steps that there is one part", [3, 72, 260], {}, "simulator"],
] as const)("%s, %j", async (_, [rows, columns, depth], changed, place) => {
  const random = new Random(3);
  const draw = (count: number): Float64Array =>
    Float64Array.from({ length: count }, () => random.below(5) - 2);
  const [left, right, shift] = [draw(rows * depth), draw(depth * columns), draw(columns)];
  const sums = Array.from({ length: rows * columns }, (__, index) => {
    const [row, column] = [Math.floor(index / columns), index % columns];
    let sum = shift[column] ?? NaN;
    for (let i = 0; i < depth; i += 1)
      sum += (left[row * depth + i] ?? NaN) * (right[i * columns + column] ?? NaN);
    return sum;
  });
  const device = await open(place, { onNotes: () => undefined });
  for (const [dtype, out] of [[bf16, f32] as const, [i8, i32] as const]) {
    const op = matmul({
      ...{ a: dtype as typeof bf16, b: dtype as typeof bf16, out: out as typeof f32 },
      inputs: { shift: tensor(out as typeof f32, [n]) },
      epilogue: ({ sums: each, shift: by }) => each.add(by),
      configuration: { ...inParts, ...changed },
    });
    const { out: found } = await device.run(op, {
      a: fromNumbers(dtype as typeof bf16, [rows, depth], left),
      b: fromNumbers(dtype as typeof bf16, [depth, columns], right),
      shift: fromNumbers(out as typeof f32, [columns], shift),
    });
    expect([...toNumbers(found)]).toEqual(sums);
  }
  device.dispose();
});

test.each([
  ["groups", [20, 264, 1160], quantized(i4, [k, n], { groupSize: 128, scale: bf16 })],
  [
    "zero points",
    [5, 96, 1272],
    quantized(i4, [k, n], { groupSize: 128, scale: bf16, zeroPoint: i4 }),
  ],
  [
    "columns, in steps of which no two parts are equal",
    [3, 72, 1032],
    quantized(i8, [k, n], { scale: bf16 }),
  ],
] as const)("weights with scales of %s", async (_, [rows, columns, depth], b) => {
  const random = new Random(5);
  // Each group has the least and the greatest number, so that its scale is 1.
  const [least, most] = b.dtype === i8 ? [-127, 127] : [b.zero ? -8 : -7, 7];
  const right = Float64Array.from({ length: depth * columns }, (__, index) => {
    const row = Math.floor(index / columns) % 128;
    return row < 2 ? (row === 0 ? least : most) : random.below(15) - 7;
  });
  const left = Float64Array.from({ length: rows * depth }, () => random.below(5) - 2);
  const sums = Array.from({ length: rows * columns }, (__, index) => {
    const [row, column] = [Math.floor(index / columns), index % columns];
    let sum = 0;
    for (let i = 0; i < depth; i += 1)
      sum += (left[row * depth + i] ?? NaN) * (right[i * columns + column] ?? NaN);
    return sum;
  });
  const device = await open("simulator", { onNotes: () => undefined });
  const x = fromNumbers(f32, [depth, columns], right);
  const stored = await device.run(quantizeWeights({ x: f32, b: b as QuantizedSpec }), { x });
  const configuration = { ...inParts, consumers: 4, columns: 32 } as const;
  const op = matmul({ a: bf16, b: b as QuantizedSpec, out: f32, configuration });
  const a = fromNumbers(bf16, [rows, depth], left);
  const { out } = await device.run(op, { a, ...stored } as never);
  expect([...toNumbers(out)]).toEqual(sums);
  device.dispose();
});

test("products that have no parts are refused", () => {
  const fits = { m: 64, n: 64, k: 1024 };
  const configuration = inParts;
  expect(codeOf(() => matmul({ a: f64, b: f64, configuration }).plan(fits))).toBe("TW9904");
  const a = tensor(bf16, [batch, m, k]);
  expect(codeOf(() => matmul({ a, b: bf16, configuration }).plan({ ...fits, batch: 2 }))).toBe(
    "TW9904",
  );
  const b = quantized(i4, [k, n], { blockSize: [128, 64], scale: bf16 });
  expect(codeOf(() => matmul({ a: bf16, b, configuration }).plan(fits))).toBe("TW9904");
});
