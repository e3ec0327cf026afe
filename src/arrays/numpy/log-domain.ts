/** Sums of what is known by its logarithm, without overflow. */
import type { DTypeName } from "../../formats/dtype.ts";
import type { NDArray } from "../array.ts";
import * as base from "../functions.ts";
import type { Operand } from "../functions.ts";

/** log(exp(x) + exp(y)): the larger one and what the other adds to it, which is no number only where both are infinite. */
export function logAddExp<D extends DTypeName>(x: Operand<D>, y: Operand<D>): NDArray<D> {
  const [left, right] = base.together(x, y);
  const larger = base.maximum(left, right);
  const areAlike = base.equal(left, right);
  const distance = base.abs(
    base.sub(base.where(areAlike, 0, left), base.where(areAlike, 0, right)),
  );
  return base.add(larger, base.log1p(base.exp(base.neg(distance))));
}
