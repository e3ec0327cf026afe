/** The gradient of every function of arrays that has one, against central differences of the function itself. */
import { expect, test } from "vitest";
import { add, array, grad, mul, reshape, sum } from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";
import { gradients } from "./gradients.ts";

type F64 = NDArray<"f64">;

const place = [0.31, 0.72, 0.47, 0.85, 0.23, 0.66];
const step = 1e-6;

const at = (values: readonly number[]): F64 => reshape(array(values, "f64"), [2, 3]);

/** A number from all results, in which each counts differently. */
function weighed(y: F64): F64 {
  const count = y.shape.reduce((product, extent) => product * extent, 1);
  const list = Array.from({ length: count }, (_, index) => Math.cos(index) + 1.3);
  return sum(mul(y, reshape(array(list, "f64"), y.shape)));
}

test.each(Object.entries(gradients))("%s", async (_, f) => {
  const loss = (x: F64): F64 => weighed(f(x));
  const found = (await grad(loss)(at(place)).values()) as unknown as readonly (readonly number[])[];
  const flat = found.flat();
  for (const index of place.keys()) {
    const moved = (by: number) => at(place.with(index, (place[index] ?? 0) + by));
    const [above, below] = [await loss(moved(step)).values(), await loss(moved(-step)).values()];
    const slope = (Number(above) - Number(below)) / (2 * step);
    expect(Math.abs((flat[index] ?? NaN) - slope)).toBeLessThan(1e-6 * (1 + Math.abs(slope)));
  }
});

test("a wrong gradient would be found", async () => {
  const value = (x: F64): F64 => sum(add(x, mul(x, x)));
  const [first] = ((await grad(value)(at(place)).values()) as unknown as number[][])[0] ?? [];
  expect(first).toBeCloseTo(1 + 2 * 0.31, 12);
});
