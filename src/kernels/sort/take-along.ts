/** Gathers along an axis by indices, which moves the payloads of sorted keys. */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { PlannedLaunch } from "../../device/operation.ts";
import { tensor, cdiv, dim, iota, kernel, slice } from "../../lang/index.ts";
import type { KernelDefinition } from "../../lang/index.ts";
import { threadsPerBlock } from "../support/sizes.ts";

const span = 8 * threadsPerBlock;

/** `x` is [outer, length, inner]; element (o, i, j) of `out`, which is [outer, kept, inner], is (o, indices[o, i, j], j) of it. */
export function takeAlongKernel(dtype: DType): KernelDefinition {
  const [outer, length, kept, inner] = [dim("outer"), dim("length"), dim("kept"), dim("inner")];
  const taken = [outer, kept, inner];
  return kernel(
    {
      name: "take_along",
      grid: { layer: outer, part: cdiv(kept.mul(inner), span) },
      inputs: { x: tensor(dtype, [outer, length, inner]), indices: tensor(dtypes.i32, taken) },
      outputs: { out: tensor(dtype, taken) },
    },
    ({ layer, part, x, indices, out }) => {
      const flat = [outer, kept.mul(inner)];
      const here = slice(part.mul(span), span);
      const numbers = iota(dtypes.i32, [span], { axis: 0 }).add(part.mul(span));
      const columns = numbers.rem(inner);
      const own = indices.reshape(flat).at(layer, here).load();
      const where = numbers.lt(kept.mul(inner));
      out
        .reshape(flat)
        .at(layer, here)
        .store(x.at(layer, own, columns).load({ where }));
    },
  );
}

/** A launch of the kernel, by the names of its arrays. */
export interface TakenAlong {
  readonly kernel: KernelDefinition;
  readonly x: string;
  readonly indices: string;
  readonly out: string;
  readonly shapes: {
    readonly outer: number;
    readonly length: number;
    readonly kept: number;
    readonly inner: number;
  };
}

export function takeAlongLaunch({ kernel, x, indices, out, shapes }: TakenAlong): PlannedLaunch {
  const { outer, length, kept, inner } = shapes;
  const taken = [outer, kept, inner];
  return {
    kernel,
    arguments: {
      x: { argument: x, shape: [outer, length, inner] },
      indices: { argument: indices, shape: taken },
      out: { argument: out, shape: taken },
    },
  };
}
