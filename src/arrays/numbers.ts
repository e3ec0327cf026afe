/**
 * Plain numbers beside arrays, which become elements of the arrays' dtype. Floats take any number and round it; what an
 * integer or a truth cannot be is refused, since `mul(counts, 0.5)` would multiply by 0.
 */
import { dtypes } from "../formats/dtype.ts";
import type { DTypeName } from "../formats/dtype.ts";
import { TilewrightError } from "../support/diagnostics.ts";

/** Refuses a number that `dtype` does not have. */
export function requireNumber(value: number, dtype: DTypeName): void {
  const { kind, bits } = dtypes[dtype];
  if (kind === "float") return;
  const [least, greatest] =
    kind === "bool"
      ? [0, 1]
      : kind === "unsigned"
        ? [0, 2 ** bits]
        : [-(2 ** (bits - 1)), 2 ** (bits - 1)];
  // The end of a range is itself no number of it, and that before it none of f64 where there are 64 bits.
  const isBelow = kind === "bool" ? value <= greatest : value < greatest;
  if (Number.isInteger(value) && value >= least && isBelow) return;
  throw new TilewrightError({
    code: "TW9321",
    message: `${value} is no number of ${dtype}`,
    expected: kind === "bool" ? "0 or 1" : `a whole number from ${least}, below ${greatest}`,
    found: `${value}`,
  });
}
