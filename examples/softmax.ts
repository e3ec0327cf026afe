/** Softmax of every row, a few rows a block, computed in registers in one pass. */
import { tensor, cdiv, dim, f32, kernel, slice, toNumbers } from "tilewright";
import type { Device } from "tilewright";
import { compareWithReference } from "tilewright/testing";
import type { Comparison, Reference } from "tilewright/testing";
import { roundoff } from "./support/roundoff.ts";
import { normal } from "./support/data.ts";

const rows = dim("rows");
const columns = 300;
const rowsPerBlock = 4;

export const softmax = kernel(
  {
    name: "softmax",
    grid: { i: cdiv(rows, rowsPerBlock) },
    inputs: { x: tensor(f32, [rows, columns]) },
    outputs: { out: tensor(f32, [rows, columns]) },
  },
  ({ i, x, out }) => {
    const here = slice(i.mul(rowsPerBlock), rowsPerBlock);
    const tile = x.at(here).load();
    const powers = tile.sub(tile.max({ axis: 1, keepDims: true })).exp();
    out.at(here).store(powers.div(powers.sum({ axis: 1, keepDims: true })));
  },
);

/** One row's softmax in float64, with the error that f32 arithmetic may add. */
function referenceRow(row: Float64Array): readonly Reference[] {
  const largest = row.reduce((a, b) => Math.max(a, b));
  const differences = row.map((x) => x - largest);
  const powers = differences.map(Math.exp);
  const sum = powers.reduce((a, b) => a + b);
  // A difference is rounded, which exp turns into a relative error; exp itself is rounded once.
  const relative = differences.map((d) => (Math.abs(d) + 1) * roundoff.f32);
  const sumRelative =
    relative.reduce((total, error, j) => total + error * (powers[j] ?? 0), 0) / sum +
    Math.ceil(Math.log2(columns)) * roundoff.f32;
  return Array.from(powers, (power, j) => {
    const value = power / sum;
    // The quotient inherits both errors and is rounded once; 1% covers products of errors.
    const bound = value * ((relative[j] ?? 0) + sumRelative + roundoff.f32) * 1.01;
    return { value, bound: bound + 2 ** -149 };
  });
}

export async function main(device: Device): Promise<Comparison> {
  const height = 131;
  const x = normal(f32, [height, columns], 3);
  const { out } = await device.run(softmax, { x });
  const numbers = toNumbers(x);
  const references = Array.from({ length: height }, (_, row) =>
    referenceRow(numbers.subarray(row * columns, (row + 1) * columns)),
  );
  return compareWithReference(
    out,
    (index) =>
      references[Math.floor(index / columns)]?.[index % columns] ?? { value: NaN, bound: 0 },
  );
}
