/**
 * Kernels of the language's own words, as anybody would write them, whose speed is measured beside what Triton makes of the
 * same: picking by index tiles, tiles of the whole block, the greatest of rows, counting, and a scan by a function of one's own.
 */
import {
  tensor,
  bf16,
  constant,
  f32,
  histogram,
  i32,
  kernel,
  loop,
  scanWith,
  slice,
  topK,
} from "tilewright";

/** Rows of a table, so many a block. */
export const gatherRows = (table: number, rows: number, columns: number, together: number) =>
  kernel(
    {
      name: "gather_rows",
      grid: { i: rows / together },
      inputs: { table: tensor(f32, [table, columns]), ids: tensor(i32, [rows]) },
      outputs: { out: tensor(f32, [rows, columns]) },
    },
    ({ i, table: from, ids, out }) => {
      const here = slice(i.mul(together), together);
      out.at(here).store(from.at(ids.at(here).load()).load());
    },
  );

/** Single elements of a table. */
export const gatherElements = (table: number, count: number, together: number) =>
  kernel(
    {
      name: "gather_elements",
      grid: { i: count / together },
      inputs: { table: tensor(f32, [table]), ids: tensor(i32, [count]) },
      outputs: { out: tensor(f32, [count]) },
    },
    ({ i, table: from, ids, out }) => {
      const here = slice(i.mul(together), together);
      out.at(here).store(from.at(ids.at(here).load()).load());
    },
  );

/** A row a block, spread over all of its warps. */
export const wideSoftmax = (rows: number, columns: number, warps: number) =>
  kernel(
    {
      name: `softmax_${warps}`,
      grid: { i: rows },
      warps,
      inputs: { x: tensor(bf16, [rows, columns]) },
      outputs: { out: tensor(bf16, [rows, columns]) },
    },
    ({ i, x, out }) => {
      const row = x.at(i).load().cast(f32);
      const powers = row.sub(row.max()).exp();
      const scale = constant(f32, 1).div(powers.sum());
      out.at(i).store(powers.mul(scale).cast(bf16));
    },
  );

/** A row a block, too long for its registers: worked on in parts, which are read once more where they are needed again. */
export const longSoftmax = (rows: number, columns: number, part: number, warps: number) =>
  kernel(
    {
      name: `long_softmax_${warps}`,
      grid: { i: rows },
      warps,
      inputs: { x: tensor(bf16, [rows, columns]) },
      outputs: { out: tensor(bf16, [rows, columns]) },
    },
    ({ i, x, out }) => {
      const first = { high: constant(f32, -Infinity), sum: constant(f32, 0) };
      const { high, sum } = loop({ to: columns / part, carry: first }, (k, carry) => {
        const values = x
          .at(i, slice(k.mul(part), part))
          .load()
          .cast(f32);
        const higher = carry.high.maximum(values.max());
        const scaled = carry.sum.mul(carry.high.sub(higher).exp());
        return { high: higher, sum: scaled.add(values.sub(higher).exp().sum()) };
      });
      const scale = constant(f32, 1).div(sum);
      loop(columns / part, (k) => {
        const here = slice(k.mul(part), part);
        const values = x.at(i, here).load().cast(f32);
        out.at(i, here).store(values.sub(high).exp().mul(scale).cast(bf16));
      });
    },
  );

/** The greatest of each row. */
export const greatest = (
  rows: number,
  columns: number,
  k: number,
  together: number,
  warps: number,
) =>
  kernel(
    {
      name: "greatest",
      grid: { i: rows / together },
      warps,
      inputs: { x: tensor(f32, [rows, columns]) },
      outputs: { values: tensor(f32, [rows, k]) },
    },
    ({ i, x, values }) => {
      const here = slice(i.mul(together), together);
      const [best] = topK(x.at(here).load(), k, { axis: 1 });
      values.at(here).store(best);
    },
  );

/** How often each number occurs: counted a block at a time, then added up. */
export const counts = (count: number, bins: number, together: number, warps: number) =>
  kernel(
    {
      name: "counts",
      grid: { i: count / together },
      warps,
      inputs: { x: tensor(i32, [count]) },
      inouts: { totals: tensor(i32, [bins]) },
    },
    ({ i, x, totals }) => {
      totals.atomicAdd(histogram(x.at(slice(i.mul(together), together)).load(), bins));
    },
  );

/** y[t] = a[t] · y[t − 1] + b[t] along each row. */
export const recurrence = (rows: number, columns: number, together: number, warps: number) =>
  kernel(
    {
      name: "recurrence",
      grid: { i: rows / together },
      warps,
      inputs: { a: tensor(f32, [rows, columns]), b: tensor(f32, [rows, columns]) },
      outputs: { y: tensor(f32, [rows, columns]) },
    },
    ({ i, a, b, y }) => {
      const here = slice(i.mul(together), together);
      const [, sums] = scanWith(
        [a.at(here).load(), b.at(here).load()],
        ([a0, b0], [a1, b1]) => [a0.mul(a1), b0.mul(a1).add(b1)],
        { axis: 1, identity: [1, 0] },
      );
      y.at(here).store(sums);
    },
  );

/** Counters begin at 0. */
export const clear = (count: number) =>
  kernel({ name: "clear", outputs: { out: tensor(i32, [count]) } }, ({ out }) => {
    out.store(0);
  });
