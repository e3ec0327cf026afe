/**
 * An axis of any array as contiguous rows. An array with another layout is permuted into rows, and results are permuted back:
 *
 *   x [2, 100, 3], axis 1     rows [2, 3, 100] ──▶ 6 rows of 100 ──▶ the best 4 of each [2, 3, 4] ──▶ back [2, 4, 3]
 */
import type { DType } from "../../formats/dtype.ts";
import { tensor } from "../../lang/index.ts";
import type { TensorSpec } from "../../lang/index.ts";
import { permute } from "../movement/strided-copies.ts";
import type { Step } from "../support/compose.ts";
import { laidOut } from "../support/sizes.ts";

export class PermutedRows {
  /** Elements before the axis, along it, and behind it. */
  readonly outer: number;
  readonly length: number;
  readonly inner: number;
  /** Whether the array already consists of such rows. */
  readonly isDirect: boolean;
  readonly #shape: readonly number[];
  readonly #strides: readonly number[];
  readonly #axis: number;
  readonly #dtype: DType;

  constructor(x: TensorSpec, axis: number, dimensions: { readonly [name: string]: number }) {
    const { shape, strides } = laidOut(x, dimensions);
    const product = (extents: readonly number[]): number =>
      extents.reduce((all, extent) => all * extent, 1);
    this.outer = product(shape.slice(0, axis));
    this.length = shape[axis] ?? 1;
    this.inner = product(shape.slice(axis + 1));
    this.isDirect = x.strides === undefined && this.inner === 1;
    this.#shape = shape;
    this.#strides = strides;
    this.#axis = axis;
    this.#dtype = x.dtype;
  }

  get rows(): number {
    return this.outer * this.inner;
  }

  /** The axes with that of the rows last. */
  get #permuted(): readonly number[] {
    return [...this.#shape.keys()].filter((each) => each !== this.#axis).concat(this.#axis);
  }

  /** Permutes the array into rows. */
  toRows(from: string, to: string): Step {
    const x = tensor(this.#dtype, this.#shape, { strides: this.#strides });
    return moved(x, this.#permuted, from, to);
  }

  /** Permutes rows of a result back, of any format and length. */
  fromRows(from: string, to: string, dtype: DType, length: number): Step {
    const shape = this.#permuted.map((axis) => (axis === this.#axis ? length : this.#shape[axis]));
    const axes = this.#shape.map((_, each) => {
      if (each === this.#axis) return this.#shape.length - 1;
      return each < this.#axis ? each : each - 1;
    });
    return moved(
      tensor(
        dtype,
        shape.map((extent) => extent ?? 1),
      ),
      axes,
      from,
      to,
    );
  }
}

function moved(x: TensorSpec, axes: readonly number[], from: string, to: string): Step {
  return {
    operation: permute({ x, permutation: axes }),
    dimensions: {},
    arrays: { x: from, out: to },
  };
}
