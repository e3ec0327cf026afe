/**
 * bf16 matrix product, persistent: as many blocks as the GPU has processors work through the tiles of the result. In each
 * block one thread copies and two multiply, 64 rows each. The copies of a tile begin while the tile before is multiplied,
 * and a result leaves through shared memory while the next tile is already on its way.
 */
import {
  accumulator,
  tensor,
  bf16,
  block,
  cdiv,
  dim,
  f32,
  kernel,
  processors,
  slice,
  smem,
  storeThrough,
  tiles,
  toNumbers,
  warpSpecialized,
  wgmma,
} from "tilewright";
import type { Device } from "tilewright";
import { compareWithReference } from "tilewright/testing";
import type { Comparison } from "tilewright/testing";
import { roundoff } from "./support/roundoff.ts";
import { normal } from "./support/data.ts";
import { productElement } from "./support/product.ts";

const m = dim("m");
const n = dim("n", { multipleOf: 8 });
const k = dim("k", { multipleOf: 8 });
const half = 64;

interface Tiling {
  readonly columns?: number;
  readonly depth?: number;
  readonly stages?: number;
}

export const gemmOf = ({ columns = 256, depth = 64, stages = 4 }: Tiling = {}) =>
  kernel(
    {
      name: "gemm",
      grid: { worker: processors },
      threads: ["copy", "first", "second"],
      inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
      outputs: { c: tensor(bf16, [m, n]) },
      scratch: { result: smem(bf16, [2, 2, half, 64]) },
    },
    ({ a, b, c, result }) => {
      warpSpecialized(
        {
          tiles: tiles({ i: cdiv(m, 2 * half), j: cdiv(n, columns) }, { order: "grouped" }),
          grid: { step: cdiv(k, depth) },
          inputs: {
            left: ({ i, step }) => a.at(block(i, 2 * half), block(step, depth)),
            right: ({ j, step }) => b.at(block(step, depth), block(j, columns)),
          },
          depth: stages,
        },
        ({ i, j, part, steps }) => {
          const product = steps(accumulator(f32, [half, columns]), ({ left, right }, sum) =>
            wgmma(sum, left.at(slice(part.mul(half), half)), right),
          );
          const top = i.mul(2).add(part).mul(half);
          storeThrough(result.at(part), product.cast(bf16), c, [top, j.mul(columns)]);
        },
      );
    },
  );

export const gemm = gemmOf();

export async function main(device: Device): Promise<Comparison> {
  const [height, width, depth] = [200, 264, 328];
  const a = normal(bf16, [height, depth], 16);
  const b = normal(bf16, [depth, width], 17);
  const { c } = await device.run(gemm, { a, b });
  const [left, right] = [toNumbers(a), toNumbers(b)];
  // Products are exact; the sum is rounded once in each step of 16, and to bf16 at the end.
  const roundings = Math.ceil(depth / 16);
  return compareWithReference(c, (index) => {
    const { value, magnitude } = productElement(left, right, { width, depth }, index);
    const error = magnitude * roundings * roundoff.f32 * 1.01;
    return { value, bound: error + (Math.abs(value) + error) * roundoff.bf16 };
  });
}
