/** What tests of the library share: numbers that every format holds exactly, and the code of a mistake. */
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { fromNumbers } from "../../formats/hostarray.ts";
import { TilewrightError } from "../../support/diagnostics.ts";

/** Small whole numbers; without a sign for formats that have none. */
export function wholeNumbers<N extends DTypeName>(
  dtype: DType<N>,
  shape: readonly number[],
  seed: number,
) {
  const count = shape.reduce((product, extent) => product * extent, 1);
  const isUnsigned = dtype.kind === "unsigned";
  const values = Array.from({ length: count }, (_, index) => {
    const value = ((index * 7 + seed * 3 + (index >> 4)) % 7) - 3;
    return isUnsigned ? Math.abs(value) : value;
  });
  return { array: fromNumbers(dtype, shape, values), values };
}

export function codeOf(make: () => unknown): string {
  try {
    make();
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
  return "nothing was thrown";
}
