/**
 * The kernel of an elementwise operation. A block makes a window of the two axes that matter most: the one along which
 * the result lies, and another where an array lies along that one, or where rows are short:
 *
 *   out [m, n] by rows, x [m, n] by columns        windows of 64 × 64, read along m, written along n
 *   out [m, 48], bias [48]                          windows of 32 × 64: several rows at once, of bf16
 *   out [n], x [n]                                  windows of 1 × 2048
 */
import type { DType } from "../../formats/dtype.ts";
import type { Size } from "../../ir/size.ts";
import { cdiv, kernel, waitForPreviousKernel } from "../../lang/index.ts";
import type { KernelDefinition, Ref, Scalar, ScalarSpec, Tile } from "../../lang/index.ts";
import { coalescedLayout } from "../../layout/algebra/named-layouts.ts";
import type { RegisterLayout } from "../../layout/algebra/register-layout.ts";
import { threadsPerBlock, powerOfTwoFrom, widestAccess } from "../support/sizes.ts";
import { storeWhole } from "../support/strided.ts";
import type { StridedAxis, StridedForm } from "../support/strided.ts";

/** An array as the function knows it, and the parameter of the kernel that it is, or is a part of. */
export interface MappedArray {
  readonly name: string;
  readonly parameter: string;
  readonly dtype: DType;
  readonly isOutput: boolean;
  /** Of a result of which only some elements are made here. */
  readonly isPart?: boolean;
}

/** How windows lie; the part of a launch that a kernel is made for. */
export interface MapConfiguration {
  /** The axis of a window's rows; −1 where a window has one row. */
  readonly rowAxis: number;
  /** Rows of a block. */
  readonly rows: number;
  /** Columns of a block. */
  readonly columns: number;
  /** Warps of a block, where they are not four. */
  readonly warps?: number;
}

/**
 * Bytes of one array that a thread has in flight, and of all together: blocks that are soon through keep memory the busiest. Those that
 * divide to find their place have more to do beforehand, and more bytes for it. Arrays that repeat come from the cache, and do not count.
 */
const [bytesInFlight, bytesOfSeveralAxes] = [16, 32] as const;
const [fewestBytes, mostBytes] = [32, 96] as const;
/** Bytes of a row or column of a window whose rows and columns both lie along some array. */
const squareBytes = 128;
/** The same of a larger one, which reads and writes whole lines of memory side by side, and bytes of it that a warp holds. */
const [largeBytes, warpBytes] = [256, 4096] as const;

/** Whether elements of an array are read several times. */
function repeats(axes: readonly StridedAxis[], position: number): boolean {
  return axes.some(({ strides }) => strides[position] === 0);
}

export function chooseWindow(
  arrays: readonly MappedArray[],
  axes: readonly StridedAxis[],
  processors: number,
): MapConfiguration {
  const last = axes.length - 1;
  const columns = axes[last]?.extent ?? 1;
  // An array with an element for each row lies along another axis, too, but is read once a row whatever the window.
  const crossing = axes.findIndex(
    ({ strides }, axis) =>
      axis !== last &&
      strides.some((stride, array) => stride === 1 && axes[last]?.strides[array] !== 0),
  );
  const bytes = arrays.map(({ dtype }) => dtype.bits / 8);
  if (crossing >= 0) {
    const count = axes.reduce((product, { extent }) => product * extent, 1);
    const sides = [axes[crossing]?.extent ?? 1, columns];
    const [own = 1] = bytes;
    const large = largeBytes / own;
    const isLarge =
      arrays.length === 2 &&
      bytes.every((each) => each === own) &&
      (own === 2 || own === 4) &&
      sides.every((side) => side >= large) &&
      count >= 4 * processors * large ** 2;
    if (isLarge) {
      const warps = (largeBytes * large) / warpBytes;
      return { rowAxis: crossing, rows: large, columns: large, ...(warps > 4 && { warps }) };
    }
    const extent = Math.max(16, Math.min(64, squareBytes / Math.max(...bytes)));
    return {
      rowAxis: crossing,
      rows: Math.min(extent, powerOfTwoFrom(axes[crossing]?.extent ?? 1)),
      columns: Math.min(extent, powerOfTwoFrom(columns)),
    };
  }
  const span = windowElements(bytes, axes, processors);
  const width = Math.min(span, powerOfTwoFrom(columns));
  const rows = Math.min(span / width, powerOfTwoFrom(axes[last - 1]?.extent ?? 1));
  return { rowAxis: rows > 1 ? last - 1 : -1, rows, columns: width };
}

/** Elements of a window: enough bytes in flight, but not so many that processors are left without one. */
function windowElements(
  bytes: readonly number[],
  axes: readonly StridedAxis[],
  processors: number,
): number {
  const single = bytes.filter((_, position) => !repeats(axes, position));
  const least = Math.max(1, widestAccess / Math.min(...single));
  const all = single.reduce((sum, each) => sum + each, 0);
  const wanted = axes.length === 1 ? bytesInFlight : bytesOfSeveralAxes;
  let each = Math.max(least, wanted / Math.max(...single));
  while (each > least && each * all > mostBytes) each /= 2;
  while (each * all < fewestBytes) each *= 2;
  const count = axes.reduce((product, { extent }) => product * extent, 1);
  while (each > least && count / (each * threadsPerBlock) < 2 * processors) each /= 2;
  return each * threadsPerBlock;
}

/** What the body of an elementwise operation does with tiles that broadcast to a window. */
export type MapBody = (tiles: { readonly [name: string]: Tile | Scalar }) => {
  readonly [name: string]: Tile;
};

export function mapKernel(
  name: string,
  arrays: readonly MappedArray[],
  scalars: { readonly [name: string]: ScalarSpec },
  form: StridedForm,
  window: MapConfiguration,
  body: MapBody,
): KernelDefinition {
  const last = form.axes.length - 1;
  const sizes = form.axes.map((_, axis) =>
    axis === last ? window.columns : axis === window.rowAxis ? window.rows : 1,
  );
  const named = (role: "input" | "output" | "inout") =>
    Object.fromEntries(
      arrays.flatMap((each, position) =>
        roleOf(each) === role && declaring(arrays, each.parameter) === position
          ? [[each.parameter, form.spec(position, each.dtype)]]
          : [],
      ),
    );
  const grid = form.extents.map((extent, axis) => [`block${axis}`, cdiv(extent, sizes[axis] ?? 1)]);
  return kernel(
    {
      name,
      grid: Object.fromEntries(grid) as { readonly [axis: string]: Size },
      ...(window.warps !== undefined && { warps: window.warps }),
      inputs: { ...named("input"), ...scalars },
      outputs: named("output"),
      inouts: named("inout"),
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      // The next kernel starts when the last block has ended: where each says so beforehand, a GPU starts one every 1.2 ns, and memory waits.
      waitForPreviousKernel();
      const starts = sizes.map((size, axis) =>
        (argument[`block${axis}`] as Scalar<"i32">).mul(size),
      );
      const windowOf = ({ parameter: own }: MappedArray, position: number): Ref =>
        form.window(argument[own] as Ref, position, starts, sizes);
      const shapeOf = (position: number): readonly number[] =>
        form.tileShape(position, sizes, [window.rowAxis, last]);
      const layout = narrowLayout(arrays, form, window);
      const tiles: { [name: string]: Tile | Scalar } = {};
      for (const scalar of Object.keys(scalars)) tiles[scalar] = argument[scalar] as Scalar;
      for (const [position, each] of arrays.entries())
        if (!each.isOutput) {
          const tile = windowOf(each, position).load().reshape(shapeOf(position));
          const isNarrow = layout !== undefined && !repeats(form.axes, position);
          tiles[each.name] = isNarrow ? tile.layoutHint(layout) : tile;
        }
      const results = body(tiles);
      for (const [position, each] of arrays.entries()) {
        const result = results[each.name];
        if (each.isOutput && result !== undefined)
          storeWhole(windowOf(each, position), result, shapeOf(position));
      }
    },
  ) as unknown as KernelDefinition;
}

/**
 * How tiles lie of which each element is met once, where those that repeat have wider elements: as widely as memory is accessed for
 * the narrow ones, since the others come from the cache.
 */
function narrowLayout(
  arrays: readonly MappedArray[],
  form: StridedForm,
  { rows, columns, warps = 4 }: MapConfiguration,
): RegisterLayout | undefined {
  const single = arrays.flatMap((_, position) => (repeats(form.axes, position) ? [] : [position]));
  const bitsOf = (position: number): number => arrays[position]?.dtype.bits ?? 0;
  const [bits = 0] = single.map(bitsOf);
  const vector = (8 * widestAccess) / bits;
  const isNarrow =
    bits >= 8 &&
    single.every((position) => bitsOf(position) === bits && form.isAligned(position, vector)) &&
    arrays.some(({ dtype }) => dtype.bits > bits);
  return isNarrow && columns >= vector
    ? coalescedLayout([rows, columns], vector, warps)
    : undefined;
}

/** The first array that is, or is a part of, a parameter: it declares the parameter. */
function declaring(arrays: readonly MappedArray[], parameter: string): number {
  return arrays.findIndex((each) => each.parameter === parameter);
}

/** An output is written whole; what is written in parts is updated. */
function roleOf({ isOutput, isPart = false }: MappedArray): "input" | "output" | "inout" {
  if (!isOutput) return "input";
  return isPart ? "inout" : "output";
}
