/**
 * Step 1: one tile at a time. Every block owns 64 × 64 elements of the result; it loads the whole rows and columns that they
 * need and multiplies them with `dot`. The compiler decides which lane holds what: look at Layouts.
 */
import { tensor, bf16, cdiv, dim, dot, f32, kernel, slice, toNumbers } from "tilewright";
import type { Device } from "tilewright";
import { compareWithReference } from "tilewright/testing";
import type { Comparison } from "tilewright/testing";
import { normal } from "./support/data.ts";
import { productElement } from "./support/product.ts";
import { roundoff } from "./support/roundoff.ts";

const [m, n] = [dim("m"), dim("n")];
const depth = 64;

export const matmul = kernel(
  {
    name: "matmul",
    grid: { i: cdiv(m, 64), j: cdiv(n, 64) },
    inputs: { a: tensor(bf16, [m, depth]), b: tensor(bf16, [depth, n]) },
    outputs: { c: tensor(f32, [m, n]) },
  },
  ({ i, j, a, b, c }) => {
    const rows = slice(i.mul(64), 64);
    const columns = slice(j.mul(64), 64);
    const left = a.at(rows, slice(0, depth)).load();
    const right = b.at(slice(0, depth), columns).load();
    c.at(rows, columns).store(dot(left, right));
  },
);

export async function main(device: Device): Promise<Comparison> {
  const [height, width] = [130, 100];
  const a = normal(bf16, [height, depth], 1);
  const b = normal(bf16, [depth, width], 2);
  const { c } = await device.run(matmul, { a, b });
  const [left, right] = [toNumbers(a), toNumbers(b)];
  return compareWithReference(c, (index) => {
    const { value, magnitude } = productElement(left, right, { width, depth }, index);
    return { value, bound: magnitude * (depth / 16) * roundoff.f32 * 1.01 };
  });
}
