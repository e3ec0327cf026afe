/**
 * Products of rows along the head, of the plain kernels. Tensor cores take whole rows; f32 is multiplied by lanes, each of which would need whole
 * rows of both factors in its registers: of heads of 256 that is more than there are, and minutes of the assembler's time. So f32 is
 * read and multiplied some elements of the head at a time, which the first cache has by then.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { dot, loop, slice, zeros } from "../../lang/index.ts";
import type { Slice, Tile } from "../../lang/index.ts";

/** Rows of an operand, [rows, head], or its columns, [head, columns]: all of the head, and some elements of it. */
export interface Factor {
  readonly whole: () => Tile<"bf16">;
  readonly part: (along: Slice) => Tile<"bf16">;
}

/** Elements of the head that lanes multiply at a time. */
const together = 16;

/** An operand with heads of a size, a multiple of 16: for tensor cores it is read once, here. */
export function factorOf(
  format: DType,
  size: number,
  load: (along: Slice) => Tile<"bf16">,
): Factor {
  const all = slice(0, size);
  if (isMultipliedByLanes(format)) return { whole: () => load(all), part: load };
  const tile = load(all);
  return { whole: () => tile, part: load };
}

/** Columns for rows. */
export function turned({ whole, part }: Factor): Factor {
  return { whole: () => whole().transpose(), part: (along) => part(along).transpose() };
}

/** Rows times columns, summed in f32. */
export function scoreProducts(
  format: DType,
  size: number,
  left: Factor,
  right: Factor,
  shape: readonly [rows: number, columns: number],
): Tile<"f32"> {
  if (!isMultipliedByLanes(format)) return dot(left.whole(), right.whole(), { dtype: dtypes.f32 });
  const start = zeros(dtypes.f32, shape);
  return loop({ to: size / together, carry: start }, (part, accumulator) => {
    const along = slice(part.mul(together), together);
    const options = { accumulator, dtype: dtypes.f32, precision: "ieee" } as const;
    return dot(left.part(along), right.part(along), options);
  });
}

function isMultipliedByLanes(format: DType): boolean {
  return format.bits === 32;
}
