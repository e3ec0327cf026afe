/** Elements of arrays by their positions along one axis: what belongs to keys follows them where they went. */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { array, cdiv, dim, iota, kernel, slice } from "../../lang/index.ts";
import type { KernelDefinition } from "../../lang/index.ts";
import { lanes } from "../support/sizes.ts";

const span = 8 * lanes;

/** Arrays, each [outer, length, inner]: element (o, i, j) of `out` is (o, places[o, i, j], j) of `x`. */
export function takeAlongKernel(dtype: DType): KernelDefinition {
  const [outer, length, inner] = [dim("outer"), dim("length"), dim("inner")];
  const shape = [outer, length, inner];
  return kernel(
    {
      name: "take_along",
      grid: { layer: outer, part: cdiv(length.mul(inner), span) },
      inputs: { x: array(dtype, shape), places: array(dtypes.i32, shape) },
      outputs: { out: array(dtype, shape) },
    },
    ({ layer, part, x, places, out }) => {
      const flat = [outer, length.mul(inner)];
      const here = slice(part.mul(span), span);
      const numbers = iota(dtypes.i32, [span], 0).add(part.mul(span));
      const columns = numbers.rem(inner);
      const own = places.reshape(flat).at(layer, here).load();
      const where = numbers.lt(length.mul(inner));
      const taken = x.at(layer, own, columns).load({ where });
      out.reshape(flat).at(layer, here).store(taken);
    },
  ) as unknown as KernelDefinition;
}
