/**
 * An op of rows that has an array of every kind, planned in any way, against float64: the shares of x, as a softmax gives them, times a
 * number of each column and of each row; and the logarithm of the sum.
 */
import type { Device } from "../../src/device/device.ts";
import { operation } from "../../src/device/operation.ts";
import type { Planned } from "../../src/device/operation.ts";
import { bf16, f32 } from "../../src/formats/dtype.ts";
import type { RowOp } from "../../src/kernels/rows/row-op.ts";
import { exponentialSums } from "../../src/kernels/rows/softmax.ts";
import type { StridedAxis } from "../../src/kernels/support/strided.ts";
import { computed, statistic } from "../../src/kernels/support/numbers.ts";
import { tensor } from "../../src/lang/index.ts";
import type { Tile } from "../../src/lang/index.ts";
import type { Target } from "../../src/targets/target.ts";
import { expectClose, randomNumbers } from "./library-checks.ts";

const op: RowOp = {
  name: "weighed_softmax",
  arrays: [
    { name: "x", dtype: bf16, role: "input", per: "element" },
    { name: "scale", dtype: f32, role: "input", per: "column", isLate: true },
    { name: "weight", dtype: f32, role: "input", per: "row" },
    { name: "out", dtype: f32, role: "output", per: "element" },
    { name: "total", dtype: f32, role: "output", per: "row" },
  ],
  compute: f32,
  registerBytes: 256,
  ...exponentialSums({ from: bf16, compute: f32, out: f32 }, "x"),
  results: ({ x, scale, weight }, statistics) => {
    const power = computed(x, f32).sub(statistic(statistics, "high")).exp();
    const share = power.div(statistic(statistics, "sum"));
    return { out: share.mul(scale as Tile<"f32">).mul(weight as Tile<"f32">) };
  },
  rowResults: (_, statistics) => ({
    total: statistic(statistics, "sum").log().add(statistic(statistics, "high")),
  }),
};

/** Runs the op as planned. x lies around -20, so that -∞ has to be the least of a row, and not 0. */
export async function checkWeighedSoftmax(
  device: Device,
  { rows, columns }: { readonly rows: number; readonly columns: number },
  plan: (op: RowOp, axes: readonly StridedAxis[], target: Target) => Planned,
): Promise<void> {
  const axes = [
    { extent: rows, strides: [columns, 0, 1, columns, 1] },
    { extent: columns, strides: [1, 1, 0, 1, 0] },
  ];
  const planned = operation({
    name: op.name,
    inputs: {
      x: tensor(bf16, [rows, columns]),
      scale: tensor(f32, [columns]),
      weight: tensor(f32, [rows]),
    },
    outputs: { out: tensor(f32, [rows, columns]), total: tensor(f32, [rows]) },
    plan: (_, target) => plan(op, axes, target),
  });
  const x = randomNumbers(bf16, [rows, columns], 1, 6, -20);
  const scale = randomNumbers(f32, [columns], 2, 1);
  const weight = randomNumbers(f32, [rows], 3, 1);
  const given = { x: x.array, scale: scale.array, weight: weight.array };
  const { out, total } = await device.run(planned, given);
  const logs = Array.from({ length: rows }, (_, row) => {
    const own = x.values.slice(row * columns, (row + 1) * columns);
    return Math.log(own.reduce((sum, value) => sum + Math.exp(value), 0));
  });
  expectClose(total, logs, { relative: 4 });
  const expected = x.values.map((value, index) => {
    const [row, column] = [Math.floor(index / columns), index % columns];
    const share = Math.exp(value - (logs[row] ?? NaN));
    return share * (scale.values[column] ?? NaN) * (weight.values[row] ?? NaN);
  });
  expectClose(out, expected, { relative: 64, absolute: 1e-9 });
}
