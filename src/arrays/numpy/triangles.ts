/** Which elements of matrices lie on one side of a diagonal. */
import type { DTypeName } from "../../formats/dtype.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { NDArray } from "../array.ts";
import * as base from "../functions.ts";
import { iota } from "../shapes.ts";

/** The matrix, or each of a batch, with zeros on the other side of the diagonal `offset` above the main one. */
export function triangle<D extends DTypeName>(
  side: "lower" | "upper",
  x: NDArray<D>,
  offset: number,
): NDArray<D> {
  if (x.rank < 2)
    throw new TilewrightError({
      code: "TW9307",
      message: `${x.toString()} has no triangle`,
      expected: "a matrix, or a batch of matrices",
      found: `rank ${x.rank}`,
    });
  const places = (along: number) => iota(x.shape.slice(-2), "i32", { axis: along });
  const distance = base.sub(places(1), places(0));
  const isKept =
    side === "lower" ? base.lessEqual(distance, offset) : base.greaterEqual(distance, offset);
  return base.where(isKept, x, 0);
}
