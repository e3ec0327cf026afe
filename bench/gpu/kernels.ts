/** Kernels whose speed on a GPU is measured beside that of other compilers and libraries. */
import { tensor, bf16, cdiv, constant, dim, f32, kernel, slice } from "tilewright";
import type { DType } from "tilewright";

const n = dim("n", { multipleOf: 8 });

/** Elements of a block of the pointwise kernels: 16 bytes a lane, twice. */
const span = 1024;

export const copy = kernel(
  {
    name: "copy",
    grid: { i: cdiv(n, span) },
    inputs: { x: tensor(f32, [n]) },
    outputs: { out: tensor(f32, [n]) },
  },
  ({ i, x, out }) => {
    const here = slice(i.mul(span), span);
    out.at(here).store(x.at(here).load());
  },
);

export const axpy = kernel(
  {
    name: "axpy",
    grid: { i: cdiv(n, span) },
    inputs: { x: tensor(f32, [n]), y: tensor(f32, [n]) },
    outputs: { out: tensor(f32, [n]) },
  },
  ({ i, x, y, out }) => {
    const here = slice(i.mul(span), span);
    out.at(here).store(x.at(here).load().mul(2).add(y.at(here).load()));
  },
);

/** A row a block: it stays in registers between its three passes. */
export const rowSoftmax = (rows: number, columns: number, dtype: DType<"bf16"> = bf16) =>
  kernel(
    {
      name: "softmax",
      grid: { i: rows },
      inputs: { x: tensor(dtype, [rows, columns]) },
      outputs: { out: tensor(dtype, [rows, columns]) },
    },
    ({ i, x, out }) => {
      const row = x.at(i).load().cast(f32);
      const powers = row.sub(row.max()).exp();
      const scale = constant(f32, 1).div(powers.sum());
      out.at(i).store(powers.mul(scale).cast(dtype));
    },
  );

export const rmsNorm = (rows: number, columns: number, dtype: DType<"bf16"> = bf16) =>
  kernel(
    {
      name: "rms_norm",
      grid: { i: rows },
      inputs: { x: tensor(dtype, [rows, columns]), weight: tensor(dtype, [columns]) },
      outputs: { out: tensor(dtype, [rows, columns]) },
    },
    ({ i, x, weight, out }) => {
      const row = x.at(i).load().cast(f32);
      const mean = row.mul(row).sum().div(columns);
      const scale = mean.add(1e-6).rsqrt();
      const scaled = row.mul(scale).mul(weight.load().cast(f32));
      out.at(i).store(scaled.cast(dtype));
    },
  );
