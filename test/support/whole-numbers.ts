/** Numbers that every format holds exactly, so that sums in any order are equal. */
import type { DType, DTypeName } from "../../src/formats/dtype.ts";
import { fromNumbers } from "../../src/formats/hostarray.ts";

/** Small whole numbers; without a sign for formats that have none. */
export function wholeNumbers<N extends DTypeName>(
  dtype: DType<N>,
  shape: readonly number[],
  seed: number,
) {
  const count = shape.reduce((product, extent) => product * extent, 1);
  const isUnsigned = dtype.kind === "unsigned";
  const values: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const value = ((index * 7 + seed * 3 + (index >> 4)) % 7) - 3;
    values.push(isUnsigned ? Math.abs(value) : value);
  }
  return { array: fromNumbers(dtype, shape, values), values };
}
