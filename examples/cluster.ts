/**
 * Rows too wide for one block: the two blocks of a cluster take half a row each, exchange their partial
 * sums through each other's shared memory, and divide by the total. The scale of a row is fetched once
 * and multicast to both.
 *
 *   block 0  sum left half  ┐ cluster   read peer's sum ┐ cluster
 *   block 1  sum right half ┘  sync     read peer's sum ┘  sync    no block exits while it is read
 */
import {
  tensor,
  barrier,
  clusterRank,
  clusterSync,
  copyAsync,
  dim,
  f32,
  kernel,
  slice,
  smem,
  toNumbers,
  when,
} from "tilewright";
import type { Device } from "tilewright";
import { compareWithReference } from "tilewright/testing";
import type { Comparison } from "tilewright/testing";
import { roundoff } from "./support/roundoff.ts";
import { normal } from "./support/data.ts";

const rows = dim("rows");
const columns = 1000;
const half = columns / 2;

export const clusterNormalize = kernel(
  {
    name: "cluster_normalize",
    grid: { row: rows, part: 2 },
    cluster: { part: 2 },
    inputs: { x: tensor(f32, [rows, columns]), scale: tensor(f32, [rows, 4]) },
    outputs: { out: tensor(f32, [rows, columns]) },
    scratch: { partial: smem(f32, [1]), scales: smem(f32, [4]), landed: barrier() },
  },
  ({ row, part, x, scale, out, partial, scales, landed }) => {
    const rank = clusterRank("part");
    when(rank.eq(0), () => {
      copyAsync(scale.at(row), scales, { barrier: landed, multicast: ["part"] });
    });
    const here = slice(part.mul(half), half);
    const mine = x.at(row, here).load();
    const sum = mine.mul(mine).sum();
    partial.store(sum);
    clusterSync();
    const other = partial.peer(rank.xor(1)).at(0).loadScalar();
    landed.wait();
    const factor = scales.at(0).loadScalar().div(sum.add(other));
    out.at(row, here).store(mine.mul(factor));
    clusterSync();
  },
);

export async function main(device: Device): Promise<Comparison> {
  const height = 37;
  const x = normal(f32, [height, columns], 9);
  const scale = normal(f32, [height, 4], 10);
  const { out } = await device.run(clusterNormalize, { x, scale });
  const [numbers, scales] = [toNumbers(x), toNumbers(scale)];
  const squares = Array.from({ length: height }, (_, row) =>
    numbers
      .subarray(row * columns, (row + 1) * columns)
      .reduce((total, number) => total + number * number, 0),
  );
  // Squares, the additions of a half and of both halves, the quotient and the product are rounded.
  const roundings = 1 + Math.ceil(Math.log2(half)) + 1 + 1 + 1;
  return compareWithReference(out, (index) => {
    const row = Math.floor(index / columns);
    const value = ((numbers[index] ?? NaN) * (scales[row * 4] ?? NaN)) / (squares[row] ?? NaN);
    return { value, bound: Math.abs(value) * roundings * roundoff.f32 * 1.01 };
  });
}
