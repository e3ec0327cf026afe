/**
 * Windows on global memory, as registers: the arrays and scratch of a launch, their reshapes, and addresses of elements.
 * How windows are cut, and which of their bounds are tested, is `access/slice.ts`.
 */
import type { KernelParameter, Op, Value } from "../../../ir/node.ts";
import { ceilDivSize, multiplySizes, rowMajorSizes } from "../../../ir/size.ts";
import type { Size } from "../../../ir/size.ts";
import { reshapeGlobal, reshapeShared } from "../../../layout/access/reshape.ts";
import { wholeAxes } from "../../../layout/access/window.ts";
import { refOf } from "../../../ir/traverse.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { GlobalValue, IndexValue, RefValue, SharedValue } from "../values.ts";
import { addIndex, constantPosition, positionSums, zeroPosition } from "./positions.ts";
import { addProduct, wideRegister } from "./address-arithmetic.ts";
import type { WideSum } from "./address-arithmetic.ts";

/** A window on a whole array. */
function wholeArray(
  root: Value,
  made: Pick<GlobalValue, "name" | "base" | "readOnly">,
  strides: readonly Size[] | undefined,
): GlobalValue {
  const { dtype, shape } = refOf(root);
  const steps = strides ?? rowMajorSizes(shape);
  return {
    kind: "global",
    root,
    ...made,
    moved: undefined,
    dtype,
    array: shape.map((extent, axis) => ({ extent, stride: steps[axis] ?? 1 })),
    ...wholeAxes(shape, { zero: zeroPosition }),
  };
}

/** An array parameter of the kernel. */
export function globalParameter(
  context: EmitContext,
  { name, role, value, strides }: KernelParameter,
): GlobalValue {
  const base = context.parameter({ kind: "array", name });
  // Under programmatic dependent launch the kernel before may still write the inputs.
  const readOnly = role === "input" && context.dependentLaunch === false;
  return wholeArray(value, { name, base, readOnly }, strides);
}

/** An allocation in global memory: scratch of the launch. */
export function globalScratch(context: EmitContext, op: Op<"alloc">, value: Value): GlobalValue {
  const { dtype, shape } = op.attributes;
  const name = `${op.attributes.name ?? "scratch"} ${value.id}`;
  const elements = multiplySizes(...shape);
  // Lone 4-bit elements are updated with the whole word around them.
  const bytes =
    dtype.bits === 4
      ? multiplySizes(ceilDivSize(elements, 8), 4)
      : multiplySizes(elements, dtype.bits / 8);
  const base = context.parameter({ kind: "scratch", name, bytes, zeroed: false });
  return wholeArray(value, { name, base, readOnly: false }, undefined);
}

/** Any window under another shape, element by element where strides cannot express it. */
export function reshapeRef(
  context: EmitContext,
  source: RefValue,
  shape: readonly Size[],
): RefValue {
  const box = source.kind === "reshaped" ? undefined : reshapeBox(context, source, shape);
  if (box !== undefined) return box;
  const axes = wholeAxes(shape, { zero: zeroPosition });
  return { kind: "reshaped", dtype: source.dtype, source, shape, ...axes };
}

/** Undefined where strides cannot express it. What a shared window looks like to instructions is still the source's. */
export function reshapeBox(
  context: EmitContext,
  source: GlobalValue | SharedValue,
  shape: readonly Size[],
): GlobalValue | SharedValue | undefined {
  if (source.kind === "shared") {
    const view = reshapeShared(source, shape);
    return view && { ...source, ...view };
  }
  const box = reshapeGlobal(source, shape, positionSums(context));
  return box && { ...source, ...box, base: movedBase(context, source, box.from) };
}

/** The address where the origins of the given axes are zero. */
function movedBase(
  context: EmitContext,
  { array, origin, base, dtype }: GlobalValue,
  axes: readonly number[],
): Register {
  if (axes.length === 0) return base;
  const { code } = context;
  const scale = dtype.bits === 4 ? 1 : dtype.bits / 8;
  const sum = axes.reduce<WideSum>(
    (total, axis) =>
      addProduct(context, total, origin[axis] ?? zeroPosition, array[axis]?.stride ?? 1, scale),
    { register: undefined, constant: 0 },
  );
  const offset = wideRegister(context, sum);
  const bytes = dtype.bits === 4 ? code.make("b64", "shr.s64", offset, integer(1)) : offset;
  const moved = code.make("b64", "add.s64", base, bytes);
  const { redirects, failureCell } = context;
  if (failureCell !== undefined) redirects.set(moved, redirects.get(base) ?? base);
  return moved;
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
