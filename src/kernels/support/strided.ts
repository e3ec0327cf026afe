/**
 * Arrays of a kernel over collapsed axes: each with the axes along which it is not broadcast, and their strides. Extents and strides are
 * dimensions of the kernel, so that one kernel serves all such launches:
 *
 *   axes [m, n], x by rows, bias [n]      x: tensor(f32, [extent0, extent1], { strides: [stride0_0, 1] })
 *                                         bias: tensor(f32, [extent1], { strides: [1] })
 */
import type { DType } from "../../formats/dtype.ts";
import { addSizes } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { rowMajorStrides } from "../../formats/shape.ts";
import { tensor, dim, slice } from "../../lang/index.ts";
import type { TensorSpec, Index, Ref, LaunchSize, Tile } from "../../lang/index.ts";
import { Scalar } from "../../lang/elementwise.ts";
import { alignment } from "./sizes.ts";

/** An axis, and how far apart elements of each array are along it; 0 where it repeats. */
export interface StridedAxis {
  readonly extent: number;
  readonly strides: readonly number[];
}

const extentName = (axis: number): string => `extent${axis}`;
const placesName = (array: number): string => `places${array}`;
const strideName = (array: number, axis: number): string => `stride${array}_${axis}`;

/** What of a stride a kernel depends on: a stride of 0 or 1 is part of it, and of others what they are multiples of. */
export function strideForm(stride: number): number {
  return stride <= 1 ? stride : -alignment(stride);
}

/** What of the axes a kernel depends on; equal texts have equal kernels. */
export function formText(
  axes: readonly StridedAxis[],
  placements: readonly Placement[] = [],
): string {
  const forms = axes.map(({ extent, strides }) => [alignment(extent), strides.map(strideForm)]);
  const parts = placements.map(({ offset, most }) => [offset === 0, most > 0 && alignment(most)]);
  return JSON.stringify([forms, parts]);
}

/** Where an array begins within the one that it is a part of, in elements; parts of one array share `most`. */
export interface Placement {
  readonly offset: number;
  /** The greatest offset of a part of the same array; a part begins at 0 or there. */
  readonly most: number;
  /** The part that declares the array. */
  readonly of: number;
  /** Whether nothing is lost where a window that begins in the part reaches into the next: it never does, or the part is only read. */
  readonly mayReachOn: boolean;
}

/**
 * The axes as a kernel sees them; those in `exact` are part of the kernel. An array that begins further on has an axis in
 * front whose elements lie as far apart as the offset's alignment allows, and is the last of that axis. Halves of rows whose length is
 * part of the kernel are windows of the rows instead: threads that store one need not wait for those that store the other. Only the end of the row
 * cuts these off, so that a half is stored so only where it is made of whole windows: the rest of one would be the other half's, of another block perhaps.
 */
export class StridedForm {
  readonly axes: readonly StridedAxis[];
  readonly extents: readonly Size[];
  readonly #placements: readonly Placement[];
  readonly #exact: readonly number[];

  constructor(
    axes: readonly StridedAxis[],
    exact: readonly number[] = [],
    placements: readonly Placement[] = [],
  ) {
    this.axes = axes;
    this.#exact = exact;
    this.#placements = placements;
    this.extents = axes.map(({ extent }, axis) =>
      exact.includes(axis) ? extent : dim(extentName(axis), { multipleOf: alignment(extent) }),
    );
  }

  /** The axes along which an array does not repeat. */
  ownAxes(position: number): readonly number[] {
    return this.axes.flatMap(({ strides }, axis) => ((strides[position] ?? 0) > 0 ? [axis] : []));
  }

  spec(position: number, dtype: DType): TensorSpec {
    const own = this.ownAxes(position);
    const most = this.#most(position);
    if (this.wholeShape(position) !== undefined)
      return tensor(dtype, [...this.extents.slice(0, -1), 2 * most]);
    if (own.length === 0 && most === 0) return tensor(dtype, [1]);
    const extents = own.map((axis) => this.extents[axis] ?? 1);
    const strides = own.map((axis) => this.#stride(position, axis));
    if (most === 0) return tensor(dtype, extents, { strides });
    return tensor(dtype, [this.#places(position), ...extents], {
      strides: [alignment(most), ...strides],
    });
  }

  /** The shape of an array by rows of which this is one half, where these are exact. */
  wholeShape(position: number): readonly number[] | undefined {
    const { most = 0, mayReachOn = false } = this.#placements[position] ?? {};
    const last = this.axes.length - 1;
    const areHalves = most > 0 && most === this.axes[last]?.extent && this.#exact.includes(last);
    if (!areHalves || !mayReachOn) return undefined;
    const shape = this.axes.map(({ extent }) => extent).with(-1, 2 * most);
    const byRows = rowMajorStrides(shape);
    const liesSo = this.axes.every(({ strides }, axis) => strides[position] === byRows[axis]);
    return liesSo ? shape : undefined;
  }

  /** Whether rows of an array have their elements side by side, from multiples of so many on. */
  isAligned(position: number, elements: number): boolean {
    const { offset = 0 } = this.#placements[position] ?? {};
    const strides = this.axes.map((axis) => axis.strides[position] ?? 0);
    return (
      strides.at(-1) === 1 &&
      [offset, ...strides.slice(0, -1)].every((each) => each % elements === 0)
    );
  }

  #declares(position: number): boolean {
    return (this.#placements[position]?.of ?? position) === position;
  }

  #most(position: number): number {
    return this.#placements[position]?.most ?? 0;
  }

  #places(position: number): LaunchSize {
    return dim(placesName(this.#placements[position]?.of ?? position));
  }

  #stride(position: number, axis: number): Size {
    const stride = this.axes[axis]?.strides[position] ?? 1;
    return stride <= 1
      ? stride
      : dim(strideName(position, axis), { multipleOf: alignment(stride) });
  }

  /** The window of an array from `starts` on, of `sizes` elements along the axes that it has. */
  window(ref: Ref, position: number, starts: readonly Index[], sizes: readonly number[]): Ref {
    const own = this.ownAxes(position);
    const window = own.map((axis) => slice(starts[axis] ?? 0, sizes[axis] ?? 1));
    if (this.wholeShape(position) !== undefined) {
      const { offset = 0 } = this.#placements[position] ?? {};
      const start = starts.at(-1) ?? 0;
      const from = start instanceof Scalar ? start.add(offset) : addSizes(start, offset);
      return ref.at(...window.slice(0, -1), slice(from, sizes.at(-1) ?? 1));
    }
    if (this.#most(position) > 0) {
      const isFirst = this.#placements[position]?.offset === 0;
      return ref.at(isFirst ? 0 : this.#places(position).sub(1), ...window);
    }
    return own.length === 0 ? ref : ref.at(...window);
  }

  /** What is loaded from such a window, in the shape of a tile with the last axes of the kernel. */
  tileShape(
    position: number,
    sizes: readonly number[],
    axes: readonly number[],
  ): readonly number[] {
    const own = this.ownAxes(position);
    return axes.map((axis) => (own.includes(axis) ? (sizes[axis] ?? 1) : 1));
  }

  /** Values for the dimensions of the kernel. */
  dimensions(): { readonly [name: string]: number } {
    const values: { [name: string]: number } = {};
    const isStrided = (position: number): boolean =>
      this.#declares(position) && this.wholeShape(position) === undefined;
    for (const [axis, { extent, strides }] of this.axes.entries()) {
      if (typeof this.extents[axis] !== "number") values[extentName(axis)] = extent;
      for (const [position, stride] of strides.entries())
        if (stride > 1 && isStrided(position)) values[strideName(position, axis)] = stride;
    }
    for (const [position, { most }] of this.#placements.entries())
      if (most > 0 && isStrided(position))
        values[placesName(position)] = most / alignment(most) + 1;
    return values;
  }
}

/** Stores a value that broadcasts to `shape` into a window with the same elements. */
export function storeWhole(target: Ref, value: Tile, shape: readonly number[]): void {
  target.store(value.broadcastTo(shape).reshape(target.shape.map(Number)));
}
