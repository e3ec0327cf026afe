/** Transposition through shared memory, so that both reads and writes run along rows of global memory. */
import { tensor, bf16, cdiv, dim, kernel, slice, smem, toNumbers } from "tilewright";
import type { Device } from "tilewright";
import { compareWithReference } from "tilewright/testing";
import type { Comparison } from "tilewright/testing";
import { normal } from "./support/data.ts";

const m = dim("m");
const n = dim("n");
const edge = 64;

export const transpose = kernel(
  {
    name: "transpose",
    grid: { i: cdiv(m, edge), j: cdiv(n, edge) },
    inputs: { x: tensor(bf16, [m, n]) },
    outputs: { out: tensor(bf16, [n, m]) },
    scratch: { tile: smem(bf16, [edge, edge]) },
  },
  ({ i, j, x, out, tile }) => {
    const rows = slice(i.mul(edge), edge);
    const columns = slice(j.mul(edge), edge);
    tile.store(x.at(rows, columns).load());
    out.at(columns, rows).store(tile.transpose().load());
  },
);

export async function main(device: Device): Promise<Comparison> {
  const [height, width] = [200, 333];
  const x = normal(bf16, [height, width], 5);
  const { out } = await device.run(transpose, { x });
  const numbers = toNumbers(x);
  // Nothing is computed, so nothing may change.
  return compareWithReference(out, (index) => {
    const [row, column] = [index % height, Math.floor(index / height)];
    return { value: numbers[row * width + column] ?? NaN, bound: 0 };
  });
}
