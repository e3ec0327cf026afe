/** What lies between two places of an axis, the others whole. */
import type { DTypeName } from "../../formats/dtype.ts";
import type { NDArray } from "../array.ts";
import * as shapes from "../shapes.ts";
import type { Range } from "../shapes.ts";

export function part<D extends DTypeName>(x: NDArray<D>, axis: number, range: Range): NDArray<D> {
  return shapes.slice(
    x,
    x.shape.map((_, each) => (each === axis ? range : null)),
  );
}
