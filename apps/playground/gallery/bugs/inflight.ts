/** Tiles are multiplied while the next ones arrive. TMA is fast, and the tensor cores read late. */
import {
  accumulator,
  tensor,
  barrier,
  bf16,
  copyAsync,
  f32,
  kernel,
  loop,
  slice,
  smem,
  wgmma,
} from "tilewright";

const [tile, steps] = [64, 4];

export const matmul = kernel(
  {
    name: "matmul",
    inputs: { a: tensor(bf16, [tile, tile * steps]), b: tensor(bf16, [tile * steps, tile]) },
    outputs: { c: tensor(f32, [tile, tile]) },
    scratch: {
      tileA: smem(bf16, [tile, tile]),
      tileB: smem(bf16, [tile, tile]),
      landed: barrier({ arrivals: 2 }),
    },
  },
  ({ a, b, c, tileA, tileB, landed }) => {
    const product = loop({ to: steps, carry: accumulator(f32, [tile, tile]) }, (step, sum) => {
      const along = slice(step.mul(tile), tile);
      copyAsync(a.at(slice(0, tile), along), tileA, { barrier: landed });
      copyAsync(b.at(along, slice(0, tile)), tileB, { barrier: landed });
      landed.wait();
      return wgmma(sum, tileA, tileB);
    });
    c.store(product.wait());
  },
);
