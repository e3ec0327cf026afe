/** Kernels that are to be placed without conversions, written as a user would write them. */
import {
  accumulator,
  tensor,
  barrier,
  bf16,
  copyAsync,
  dot,
  f32,
  full,
  i8,
  kernel,
  loop,
  slice,
  smem,
  wgmma,
  zeros,
} from "tilewright";
import type { KernelDefinition } from "tilewright";

/** relu(a · b + bias) in bf16, with a column of bias for every row. */
export function matmulWithEpilogue(): KernelDefinition {
  const [m, n, k] = [128, 128, 64];
  return kernel(
    {
      name: "matmul_epilogue",
      grid: { i: 8, j: 8 },
      inputs: {
        a: tensor(bf16, [1024, 4096]),
        b: tensor(bf16, [4096, 1024]),
        bias: tensor(f32, [1024]),
      },
      outputs: { c: tensor(bf16, [1024, 1024]) },
      scratch: {
        tileA: smem(bf16, [2, m, k]),
        tileB: smem(bf16, [2, k, n]),
        landed: barrier({ arrivals: 2, count: 2 }),
      },
    },
    ({ i, j, a, b, bias, c, tileA, tileB, landed }) => {
      const rows = slice(i.mul(m), m);
      const columns = slice(j.mul(n), n);
      const product = loop({ to: 64, carry: accumulator(f32, [m, n]) }, (step, sum) => {
        const slot = step.rem(2);
        const depth = slice(step.mul(k), k);
        copyAsync(a.at(rows, depth), tileA.at(slot), { barrier: landed.at(slot) });
        copyAsync(b.at(depth, columns), tileB.at(slot), { barrier: landed.at(slot) });
        landed.at(slot).wait();
        return wgmma(sum, tileA.at(slot), tileB.at(slot)).waitPending(1);
      });
      const shifted = product.wait().add(bias.at(columns).load());
      c.at(rows, columns).store(shifted.maximum(0).cast(bf16));
    },
  );
}

export function rowSoftmax(): KernelDefinition {
  const [rows, columns] = [8, 1024];
  return kernel(
    {
      name: "row_softmax",
      grid: { i: 128 },
      inputs: { x: tensor(f32, [1024, columns]) },
      outputs: { out: tensor(f32, [1024, columns]) },
    },
    ({ i, x, out }) => {
      const here = slice(i.mul(rows), rows);
      const tile = x.at(here).load();
      const powers = tile.sub(tile.max({ axis: 1, keepDims: true })).exp();
      out.at(here).store(powers.div(powers.sum({ axis: 1, keepDims: true })));
    },
  );
}

/** One block of queries against all keys: P stays in registers as the left operand of the second product. */
export function flashAttention(): KernelDefinition {
  const [queries, keys, width] = [64, 128, 64];
  const length = 4096;
  return kernel(
    {
      name: "flash_attention",
      grid: { i: length / queries },
      inputs: {
        q: tensor(bf16, [length, width]),
        k: tensor(bf16, [length, width]),
        v: tensor(bf16, [length, width]),
      },
      outputs: { out: tensor(bf16, [length, width]) },
      scratch: {
        tileQ: smem(bf16, [queries, width]),
        tileK: smem(bf16, [keys, width]),
        tileV: smem(bf16, [keys, width]),
        landed: barrier({ arrivals: 2 }),
        ready: barrier(),
      },
    },
    ({ i, q, k, v, out, tileQ, tileK, tileV, landed, ready }) => {
      const rows = slice(i.mul(queries), queries);
      copyAsync(q.at(rows), tileQ, { barrier: ready });
      ready.wait();
      const start = {
        sum: zeros(f32, [queries, width]),
        greatest: full(f32, [queries], -1e30),
        total: zeros(f32, [queries]),
      };
      const { sum, total } = loop({ to: length / keys, carry: start }, (step, carried) => {
        const here = slice(step.mul(keys), keys);
        copyAsync(k.at(here), tileK, { barrier: landed });
        copyAsync(v.at(here), tileV, { barrier: landed });
        landed.wait();
        const scores = dot(tileQ.load(), tileK.transpose().load()).mul(0.125);
        const greatest = carried.greatest.maximum(scores.max({ axis: 1 }));
        const powers = scores.sub(greatest.expand({ axis: 1 })).exp();
        const scale = carried.greatest.sub(greatest).exp();
        const rescaled = carried.sum.mul(scale.expand({ axis: 1 }));
        return {
          sum: dot(powers.cast(bf16), tileV.load(), { accumulator: rescaled }),
          greatest,
          total: carried.total.mul(scale).add(powers.sum({ axis: 1 })),
        };
      });
      out.at(rows).store(sum.div(total.expand({ axis: 1 })).cast(bf16));
    },
  );
}

/** Weights in 8 bits, from shared memory, become the left operand in registers. */
export function weightOnlyMatmul(): KernelDefinition {
  const [m, n, k] = [64, 128, 64];
  return kernel(
    {
      name: "weight_only_matmul",
      grid: { i: 16 },
      inputs: {
        weights: tensor(i8, [1024, 1024]),
        x: tensor(bf16, [1024, n]),
        scale: tensor(f32, [1024]),
      },
      outputs: { out: tensor(f32, [1024, n]) },
      scratch: {
        tileW: smem(i8, [m, k]),
        tileX: smem(bf16, [k, n]),
        landed: barrier({ arrivals: 2 }),
      },
    },
    ({ i, weights, x, scale, out, tileW, tileX, landed }) => {
      const rows = slice(i.mul(m), m);
      const product = loop({ to: 16, carry: zeros(f32, [m, n]) }, (step, sum) => {
        const depth = slice(step.mul(k), k);
        copyAsync(weights.at(rows, depth), tileW, { barrier: landed });
        copyAsync(x.at(depth), tileX, { barrier: landed });
        landed.wait();
        const left = tileW.load().cast(bf16);
        return dot(left, tileX.load(), { accumulator: sum });
      });
      out.at(rows).store(product.mul(scale.at(rows).load().expand({ axis: 1 })));
    },
  );
}
