/**
 * The sum of every column, across blocks: each block sums its own rows into a row of scratch memory and
 * signals a semaphore; the last block of the grid waits for all of them and adds the partial sums.
 */
import { tensor, cdiv, f32, gmem, kernel, semaphore, slice, toNumbers, when } from "tilewright";
import type { Device } from "tilewright";
import { compareWithReference } from "tilewright/testing";
import type { Comparison } from "tilewright/testing";
import { roundoff } from "./support/roundoff.ts";
import { normal } from "./support/data.ts";

const rows = 1000;
const columns = 96;
const rowsPerBlock = 64;
const blocks = cdiv(rows, rowsPerBlock);

export const columnSum = kernel(
  {
    name: "column_sum",
    grid: { i: blocks },
    inputs: { x: tensor(f32, [rows, columns]) },
    outputs: { out: tensor(f32, [columns]) },
    scratch: { partial: gmem(f32, [blocks, columns]), done: semaphore() },
  },
  ({ i, x, out, partial, done }) => {
    // Rows past the end are filled with zero, which adds nothing.
    const mine = x.at(slice(i.mul(rowsPerBlock), rowsPerBlock)).load();
    partial.at(i).store(mine.sum({ axis: 0 }));
    done.signal();
    when(i.eq(blocks - 1), () => {
      done.wait(blocks);
      out.store(partial.load().sum({ axis: 0 }));
    });
  },
);

export async function main(device: Device): Promise<Comparison> {
  const x = normal(f32, [rows, columns], 4);
  const { out } = await device.run(columnSum, { x });
  const numbers = toNumbers(x);
  const depth = Math.ceil(Math.log2(rowsPerBlock)) + Math.ceil(Math.log2(blocks));
  return compareWithReference(out, (column) => {
    let value = 0;
    let magnitude = 0;
    for (let row = 0; row < rows; row += 1) {
      const number = numbers[row * columns + column] ?? NaN;
      value += number;
      magnitude += Math.abs(number);
    }
    // Each number passes through at most `depth` rounded additions; 1% covers products of errors.
    return { value, bound: magnitude * depth * roundoff.f32 * 1.01 };
  });
}
