/**
 * Windows on global memory. A window runs along axes of its array from an origin; it may overhang what it
 * was cut from, and then carries the bounds that a run-time test must ask for. Bounds that hold for every
 * launch are dropped when the window is made:
 *
 *   x: [n, 512], grid i of ceildiv(n, 64)
 *
 *   | window                             | axis | origin   | bounds                                 |
 *   |------------------------------------|------|----------|----------------------------------------|
 *   | x.at(slice(i.mul(64), 64), all)    | 0    | 64 i     | below n; none if n is a multiple of 64 |
 *   |                                    | 1    | 0        | none                                   |
 *   | x.at(slice(i.mul(64).sub(1), 66))  | 0    | 64 i − 1 | from 0, below n                        |
 *   |   .at(slice(j, 8))                 | 0    | 64 i − 1 + j | as before, and j from 0, below 66  |
 *
 * Positions are sums of i32 and wrap around as those do. An element that is inside every window it was cut
 * from, asked from the innermost outwards, has a position from 0 below 2³¹ in each, so that none of its own
 * sums has wrapped; of any other element some bound says so, since bounds are tested without wrapping.
 * An index that drops an axis must be inside; where that is not certain, an access asks (`inside.ts`).
 */
import { divisorNumber } from "../../../ir/facts/index.ts";
import type { KernelParameter, Op, Value } from "../../../ir/node.ts";
import { ceilDivSize, knownDivisor, multiplySizes } from "../../../ir/size.ts";
import type { Size } from "../../../ir/size.ts";
import { refOf, rowMajor } from "../../../layout/model/windows.ts";
import { greatestCommonDivisor } from "../../../support/integers.ts";
import type { Register } from "../../module.ts";
import type { EmitContext } from "../context.ts";
import type { Bound, GlobalValue, IndexValue, Position, WindowAxis } from "../values.ts";
import { addIndex, addPositions, constantPosition, zeroPosition } from "./positions.ts";
import { addProduct, wideRegister } from "./wide.ts";

/** Arrays begin at multiples of so many bytes. */
export const arrayAlignment = 16;

/** A window on a whole array. */
function wholeArray(
  root: Value,
  made: Pick<GlobalValue, "name" | "base" | "readOnly">,
  strides: readonly Size[] | undefined,
): GlobalValue {
  const { dtype, shape } = refOf(root);
  const steps = strides ?? rowMajor(shape);
  return {
    kind: "global",
    root,
    ...made,
    moved: undefined,
    dtype,
    array: shape.map((extent, axis) => ({ extent, stride: steps[axis] ?? 1 })),
    origin: shape.map(() => zeroPosition),
    axes: shape.map((size, axis) => ({ root: axis, size, bounds: [] })),
    required: [],
  };
}

/** An array parameter of the kernel. */
export function globalParameter(
  context: EmitContext,
  { name, role, value, strides }: KernelParameter,
): GlobalValue {
  const base = context.parameter({ kind: "array", name });
  return wholeArray(value, { name, base, readOnly: role === "input" }, strides);
}

/** An allocation in global memory: scratch of the launch. */
export function globalScratch(context: EmitContext, op: Op<"alloc">, value: Value): GlobalValue {
  const { dtype, shape } = op.attributes;
  const name = `${op.attributes.name ?? "scratch"} ${value.id}`;
  const elements = multiplySizes(...shape);
  const bytes =
    dtype.bits === 4 ? ceilDivSize(elements, 2) : multiplySizes(elements, dtype.bits / 8);
  const base = context.parameter({ kind: "scratch", name, bytes, zeroed: false });
  return wholeArray(value, { name, base, readOnly: false }, undefined);
}

/** A slice of one axis: where it begins, and how many elements it has. */
export interface AxisSlice {
  readonly offset: Position;
  readonly size: Size;
  readonly dropped: boolean;
}

type Sliced = Pick<GlobalValue, "origin" | "axes" | "required">;

/** Slices axes that run along others from an origin. */
export function sliceAxes(
  context: EmitContext,
  { origin, axes, required }: Sliced,
  slices: readonly AxisSlice[],
): Sliced {
  const moved = [...origin];
  const kept: WindowAxis[] = [];
  const needed = [...required];
  axes.forEach((axis, index) => {
    const slice = slices[index];
    const start = origin[axis.root];
    if (slice === undefined || start === undefined) throw new Error("a slice for each axis");
    const position = addPositions(context, start, slice.offset);
    moved[axis.root] = position;
    const before = axis.bounds.map((bound) => ({
      // Of the array itself the start is the window's own position.
      start: bound.start === start ? position : addPositions(context, bound.start, slice.offset),
      size: bound.size,
    }));
    const own = { start: slice.offset, size: axis.size };
    const bounds = [...before, own].flatMap((bound) => unproven(context, bound, slice.size));
    if (slice.dropped)
      needed.push(...bounds.map(({ start: at, size }) => ({ start: at, count: 1, size })));
    else kept.push({ root: axis.root, size: slice.size, bounds });
  });
  return { origin: moved, axes: kept, required: needed };
}

/** The bound as far as it does not hold for every launch. */
function unproven(
  { windows: { facts } }: EmitContext,
  { start, size }: Pick<Bound, "start" | "size">,
  count: Size,
): readonly Bound[] {
  const low = start.fact.least < 0n;
  const high = !facts.endsWithin(start.fact, count, size);
  return low || high ? [{ start, size, low, high }] : [];
}

export function sliceGlobal(
  context: EmitContext,
  source: GlobalValue,
  slices: readonly AxisSlice[],
): GlobalValue {
  return { ...source, ...sliceAxes(context, source, slices) };
}

export function transposeAxes<T>(axes: readonly T[], permutation: readonly number[]): readonly T[] {
  return permutation.flatMap((axis) => axes.slice(axis, axis + 1));
}

/** Divides the number of the window's first element, counted from an aligned address. */
export function startDivisor({ array, origin, moved = 0 }: GlobalValue): number {
  return array.reduce(
    (divisor, { stride }, axis) =>
      greatestCommonDivisor(
        divisor,
        divisorNumber((origin[axis] ?? zeroPosition).fact) * knownDivisor(stride),
      ),
    moved,
  );
}

/** b64: the address of an element of the window; of the byte that holds it for 4-bit formats. */
export function globalElementAddress(
  context: EmitContext,
  window: GlobalValue,
  indices: readonly IndexValue[],
): Register {
  const positions = windowPositions(context, window, indices);
  return wideRegister(context, arraySum(context, window, positions));
}

/** The position along each axis of the array of an element of the window. */
export function windowPositions(
  context: EmitContext,
  { origin, axes }: GlobalValue,
  indices: readonly IndexValue[],
): readonly IndexValue[] {
  const positions: IndexValue[] = [...origin];
  axes.forEach(({ root }, axis) => {
    const start = origin[root] ?? constantPosition(0);
    positions[root] = addIndex(context, start, indices[axis] ?? constantPosition(0));
  });
  return positions;
}

/** The address of the element at a position of the array, the base included. */
function arraySum(
  context: EmitContext,
  { array, base, dtype }: GlobalValue,
  positions: readonly IndexValue[],
) {
  const sum = (scale: number, start: Register | undefined) =>
    array.reduce(
      (total, { stride }, axis) =>
        addProduct(context, total, positions[axis] ?? constantPosition(0), stride, scale),
      { register: start, constant: 0 },
    );
  if (dtype.bits !== 4) return sum(dtype.bits / 8, base);
  return halved(context, base, sum(1, undefined));
}

/** The byte of a 4-bit element. */
export function halved(
  context: EmitContext,
  base: Register,
  sum: { readonly register: Register | undefined; readonly constant: number },
) {
  if (sum.register === undefined) return { register: base, constant: Math.floor(sum.constant / 2) };
  const { code } = context;
  const half = code.make("b64", "shr.s64", wideRegister(context, sum), {
    kind: "integer",
    value: 1,
  });
  return { register: code.make("b64", "add.s64", base, half), constant: 0 };
}
