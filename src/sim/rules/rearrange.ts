/**
 * Moving elements of a tile to other places: transpose, slice and broadcast are all walks over the
 * source with some stride for each axis of the result.
 *
 *   transpose of [2, 3]    shape [3, 2]   strides [1, 3]   offset 0
 *   broadcast [3] to [2, 3] shape [2, 3]  strides [0, 1]   offset 0
 *   slice [1:, 1:] of [2, 3] shape [1, 2] strides [3, 1]   offset 4
 */
import type { DType, Elements } from "../../formats/dtype.ts";
import { wordsOf } from "../memory.ts";
import { product } from "../view.ts";

export interface Rearrangement {
  /** The result's. */
  readonly shape: readonly number[];
  /** Distance in the source between neighbours along each axis of the result. */
  readonly strides: readonly number[];
  /** Where the first element lies in the source. */
  readonly offset: number;
}

/** The walk as a function from source to target elements. Bits are moved, not numbers. */
export function rearrangement(
  dtype: DType,
  { shape, strides, offset }: Rearrangement,
): (source: Elements, target: Elements) => void {
  const row = shape.at(-1) ?? 1;
  const step = strides.at(-1) ?? 1;
  const starts = rowStarts(shape.slice(0, -1), strides, offset);
  if (step === 1)
    return (source, target) => {
      for (let i = 0; i < starts.length; i++) {
        const start = starts[i] as number;
        target.set(source.subarray(start, start + row) as never, i * row);
      }
    };
  const unit = dtype.bits === 64 ? 2 : 1;
  return (source, target) => {
    const from = wordsOf(source, dtype.bits);
    const to = wordsOf(target, dtype.bits);
    for (let word = 0; word < unit; word++) {
      let write = word;
      for (let i = 0; i < starts.length; i++) {
        let read = (starts[i] as number) * unit + word;
        for (let j = 0; j < row; j++) {
          to[write] = from[read] as number;
          read += step * unit;
          write += unit;
        }
      }
    }
  };
}

/** Where each row of the result begins in the source. */
function rowStarts(
  shape: readonly number[],
  strides: readonly number[],
  offset: number,
): Int32Array {
  const starts = new Int32Array(product(shape));
  for (let row = 0; row < starts.length; row++) {
    let rest = row;
    let start = offset;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const extent = shape[axis] ?? 1;
      start += (rest % extent) * (strides[axis] ?? 0);
      rest = Math.floor(rest / extent);
    }
    starts[row] = start;
  }
  return starts;
}
