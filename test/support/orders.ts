/** The order of numbers that sorts and selections keep to, and numbers that try it. */
import type { DType, DTypeName } from "../../src/formats/dtype.ts";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import type { Random } from "../../src/support/random.ts";

/** Places of a row in order: NaN behind all numbers, −0 before 0, equal ones as they were. */
export function inOrder(row: readonly number[], descending: boolean): readonly number[] {
  const rank = (value: number, other: number): number => {
    if (Number.isNaN(value) || Number.isNaN(other))
      return Number(Number.isNaN(value)) - Number(Number.isNaN(other));
    if (value === 0 && other === 0)
      return Number(Object.is(other, -0)) - Number(Object.is(value, -0));
    return value < other ? -1 : Number(value > other);
  };
  return row
    .map((_, index) => index)
    .sort((left, right) => rank(row[left] ?? 0, row[right] ?? 0) * (descending ? -1 : 1));
}

/** Random numbers of a format, near and far apart; of floats zeros of both signs, infinities and NaN, too. */
export function oddNumbers<D extends DTypeName>(
  dtype: DType<D>,
  shape: readonly number[],
  random: Random,
): HostArray<D> {
  const count = shape.reduce((all, extent) => all * extent, 1);
  const odd = [0, -0, Infinity, -Infinity, NaN];
  const values = Array.from({ length: count }, () => {
    if (dtype.kind === "float")
      return random.uniform() < 0.1
        ? (odd[random.below(odd.length)] ?? 0)
        : (random.uniform() - 0.5) * 2 ** random.below(12);
    const spread = 2 ** Math.min(dtype.bits, 1 + random.below(40));
    const low = dtype.kind === "signed" ? -spread / 2 : 0;
    return Math.floor(low + random.uniform() * spread);
  });
  return fromNumbers(dtype, shape, values);
}
