/**
 * Values as parts of other values: an offset, and for each axis a list of modes, extents with strides, the outermost first. What only
 * moves elements keeps that form; a reshape that cuts a mode has to divide it.
 *
 *   x [b, 3·h·d]                         axis 0: b by 3·h·d          axis 1: 3·h·d by 1
 *   reshape to [b, 3, h, d]              axis 1: 3 by h·d            axis 2: h by d          axis 3: d by 1
 *   slice of axis 1 at 2, transpose      offset 2·h·d, axes [h by d] [b by 3·h·d] [1] [d by 1]
 *   reshape to [h·b, d]                  axis 0: h by d, b by 3·h·d  axis 1: d by 1
 *   broadcast                            a new axis by 0
 */
import type { AnyGraphOp, GraphOp, GraphValue } from "../../ops/node.ts";
import { sizeOf } from "../../ops/types.ts";
import { stridesOf } from "../points/points.ts";
import { tensorTypeOf } from "../storage.ts";

export interface Mode {
  readonly extent: number;
  readonly stride: number;
}

export type Axis = readonly Mode[];

export interface Strided {
  /** The value whose memory it is a part of. */
  readonly base: GraphValue;
  readonly offset: number;
  readonly axes: readonly Axis[];
}

function shapeOf(value: GraphValue): readonly number[] {
  return tensorTypeOf(value).shape;
}

/** The value itself. */
export function whole(base: GraphValue): Strided {
  const shape = shapeOf(base);
  const strides = stridesOf(shape);
  return {
    base,
    offset: 0,
    axes: shape.map((extent, axis) => [{ extent, stride: strides[axis] ?? 1 }]),
  };
}

/** Modes without those of extent 1, and with neighbours as one where one stride says both. */
export function joined(modes: readonly Mode[]): readonly Mode[] {
  const found: Mode[] = [];
  for (const mode of modes) {
    if (mode.extent === 1) continue;
    const before = found.at(-1);
    if (before !== undefined && before.stride === mode.extent * mode.stride)
      found[found.length - 1] = { extent: before.extent * mode.extent, stride: mode.stride };
    else found.push(mode);
  }
  return found;
}

/** Modes cut into groups of given extents; undefined where a cut goes through a mode that it does not divide. */
export function grouped(
  modes: readonly Mode[],
  extents: readonly number[],
): readonly (readonly Mode[])[] | undefined {
  const rest = joined(modes).toReversed();
  const groups: (readonly Mode[])[] = [];
  // From the innermost, where the remainders of a cut are known.
  const pending = [...rest];
  for (const extent of extents.toReversed()) {
    const group: Mode[] = [];
    let left = extent;
    while (left > 1) {
      const mode = pending.shift();
      if (mode === undefined) return undefined;
      if (left % mode.extent === 0) {
        group.unshift(mode);
        left /= mode.extent;
      } else if (mode.extent % left === 0) {
        group.unshift({ extent: left, stride: mode.stride });
        pending.unshift({ extent: mode.extent / left, stride: mode.stride * left });
        left = 1;
      } else return undefined;
    }
    groups.unshift(group);
  }
  return pending.length === 0 ? groups : undefined;
}

/** An axis from an element on, by steps; undefined where that cuts modes apart. */
function sliced(
  axis: Axis,
  start: number,
  extent: number,
  step: number,
): { readonly offset: number; readonly axis: Axis } | undefined {
  const modes = joined(axis);
  const all = modes.reduce((count, each) => count * each.extent, 1);
  if (start === 0 && step === 1 && extent === all) return { offset: 0, axis };
  const [outer, ...others] = modes;
  if (outer === undefined) return { offset: 0, axis };
  const inner = others.reduce((count, each) => count * each.extent, 1);
  // Whole runs of the inner modes, or some elements of the innermost one alone.
  if (start % inner === 0 && extent % inner === 0 && (step === 1 || inner === 1))
    return {
      offset: (start / inner) * outer.stride,
      axis: [{ extent: extent / inner, stride: outer.stride * step }, ...others],
    };
  return undefined;
}

/** A broadcast of a view: axes that it adds or stretches lie by 0. */
function stretched(
  op: GraphOp<"stablehlo.broadcast_in_dim">,
  axes: readonly Axis[],
  shape: readonly number[],
): readonly Axis[] {
  const { broadcast_dimensions: dimensions } = op.attributes;
  return shape.map((extent, axis) => {
    const own = axes[dimensions.indexOf(axis)];
    const isSame = own?.reduce((count, each) => count * each.extent, 1) === extent;
    return own !== undefined && isSame ? own : [{ extent, stride: 0 }];
  });
}

/** A slice of a view. */
function cut(
  op: GraphOp<"stablehlo.slice">,
  { base, offset, axes }: Strided,
  shape: readonly number[],
): Strided | undefined {
  const { start_indices: starts, strides } = op.attributes;
  let from = offset;
  const found: Axis[] = [];
  for (const [axis, modes] of axes.entries()) {
    const part = sliced(modes, starts[axis] ?? 0, shape[axis] ?? 1, strides[axis] ?? 1);
    if (part === undefined) return undefined;
    from += part.offset;
    found.push(part.axis);
  }
  return { base, offset: from, axes: found };
}

/** The result of an op that only moves elements, of a view of its operand; undefined of others. */
export function through(op: AnyGraphOp, view: Strided): Strided | undefined {
  const [result] = op.results;
  if (result === undefined) return undefined;
  const { axes } = view;
  const shape = shapeOf(result);
  if (op.kind === "stablehlo.transpose")
    return { ...view, axes: op.attributes.permutation.map((axis) => axes[axis] ?? []) };
  if (op.kind === "stablehlo.reshape") {
    const groups = grouped(axes.flat(), shape);
    return groups && { ...view, axes: groups };
  }
  if (op.kind === "stablehlo.broadcast_in_dim")
    return { ...view, axes: stretched(op, axes, shape) };
  return op.kind === "stablehlo.slice" ? cut(op, view, shape) : undefined;
}

/** The operand that an op which only moves elements moves them from. */
export function movedOperand(op: AnyGraphOp): GraphValue | undefined {
  const isMoving =
    op.kind === "stablehlo.transpose" ||
    op.kind === "stablehlo.reshape" ||
    op.kind === "stablehlo.broadcast_in_dim" ||
    op.kind === "stablehlo.slice";
  return isMoving ? op.operands.operand : undefined;
}

/** A value as a part of each of those that it was moved from, itself the first. */
export function viewsOf(
  value: GraphValue,
  definition: (value: GraphValue) => AnyGraphOp | undefined,
): readonly Strided[] {
  const found = [whole(value)];
  const moved: AnyGraphOp[] = [];
  for (let base = value; ;) {
    const op = definition(base);
    const operand = op === undefined ? undefined : movedOperand(op);
    if (op === undefined || operand === undefined || sizeOf(shapeOf(operand)) === 0) return found;
    moved.push(op);
    base = operand;
    let view: Strided | undefined = whole(base);
    for (const each of moved.toReversed()) view = view && through(each, view);
    if (view !== undefined) found.push(view);
  }
}

/** Where the elements of a value lie in another that they were moved into as they are, each to one place; undefined where they were not. */
export function placesIn(view: Strided, target: GraphValue): Strided | undefined {
  const modes = view.axes.flat().filter(({ extent }) => extent > 1);
  const strides = stridesOf(modes.map(({ extent }) => extent));
  const own = modes
    .map(({ extent, stride }, i) => ({ from: stride, mode: { extent, stride: strides[i] ?? 1 } }))
    .toSorted((one, other) => other.from - one.from);
  let inside = 1;
  for (const { from, mode } of own.toReversed()) {
    if (from !== inside) return undefined;
    inside *= mode.extent;
  }
  const shape = shapeOf(view.base);
  if (inside !== sizeOf(shape)) return undefined;
  const axes = grouped(
    own.map(({ mode }) => mode),
    shape,
  );
  return axes && { base: target, offset: 0, axes };
}
