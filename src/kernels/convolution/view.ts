/**
 * Strided views of arrays: named axes whose extents and strides are dimensions of the kernel, so that one kernel serves all sizes with the
 * same alignment:
 *
 *   x, channels last    [n, depth, height, width, group, c]    strides [x_n, 0, x_height, x_width, x_group, 1]
 *   x, channels first   the same axes                           strides [x_n, 0, x_height, 1, x_group, x_c]
 */
import type { DType } from "../../formats/dtype.ts";
import type { Size } from "../../ir/size.ts";
import { tensor } from "../../lang/index.ts";
import type { TensorSpec } from "../../lang/index.ts";
import { alignedDimension, alignment } from "../support/sizes.ts";

export interface ViewAxis {
  /** Axes of one name have one extent, in all arrays of a kernel. */
  readonly name: string;
  readonly extent: number;
  readonly stride: number;
}

/** A size of 1 is known to the kernel, others are dimensions. */
export function extentSize({ name, extent }: Pick<ViewAxis, "name" | "extent">): Size {
  return extent === 1 ? 1 : alignedDimension(name, extent);
}

function strideName(view: string, axis: string): string {
  return `${view}_${axis}`;
}

export class View {
  readonly name: string;
  readonly axes: readonly ViewAxis[];

  constructor(name: string, axes: readonly ViewAxis[]) {
    this.name = name;
    this.axes = axes;
  }

  spec(dtype: DType): TensorSpec {
    return tensor(
      dtype,
      this.axes.map((axis) => extentSize(axis)),
      {
        // The stride of a single element says nothing.
        strides: this.axes.map(({ name, extent, stride }) =>
          extent === 1 || stride === 1 ? 1 : alignedDimension(strideName(this.name, name), stride),
        ),
      },
    );
  }

  /** Values for the dimensions of the kernel. */
  dimensions(): { readonly [name: string]: number } {
    return Object.fromEntries(
      this.axes.flatMap(({ name, extent, stride }) => [
        [name, extent],
        [strideName(this.name, name), stride],
      ]),
    );
  }

  /** What of the array a kernel depends on. */
  text(): string {
    const parts = this.axes.map(({ extent, stride }) =>
      extent === 1 ? 1 : [alignment(extent), stride === 1 || alignment(stride)],
    );
    return JSON.stringify([this.name, parts]);
  }
}
