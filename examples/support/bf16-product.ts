/** Runs a matrix product of bf16 and holds it against float64: what the steps of `docs/blackwell.md` share. */
import { bf16, toNumbers } from "tilewright";
import type { HostArray } from "tilewright";
import { compareWithReference } from "tilewright/testing";
import type { Comparison } from "tilewright/testing";
import { normal } from "./data.ts";
import { productElement } from "./product.ts";
import { roundoff } from "./roundoff.ts";

type Factor = HostArray<"bf16">;

/** `multiply` gives the product of the factors that it is given. */
export async function compareProduct(
  [height, width, inner]: readonly [m: number, n: number, k: number],
  multiply: (a: Factor, b: Factor) => Promise<{ readonly c: Factor }>,
): Promise<Comparison> {
  const a = normal(bf16, [height, inner], 36);
  const b = normal(bf16, [inner, width], 37);
  const { c } = await multiply(a, b);
  const [left, right] = [toNumbers(a), toNumbers(b)];
  // Products are exact; the sum is rounded once in each step of 16, and to bf16 at the end.
  const roundings = Math.ceil(inner / 16);
  return compareWithReference(c, (index) => {
    const { value, magnitude } = productElement(left, right, { width, depth: inner }, index);
    const error = magnitude * roundings * roundoff.f32 * 1.01;
    return { value, bound: error + (Math.abs(value) + error) * roundoff.bf16 };
  });
}
