/**
 * What becomes of a register layout when each element is taken for several narrower ones, side by side along the last axis: they lie in the
 * registers of the wide one, one after the other, so that its words stay as they are.
 *
 *   each of 4 parts of (L0 L1) on [4]      (R0 R1 L0 L1) on [16]
 *   wide elements of (R0 R1 L0 L1) on [16] (L0 L1) on [4]
 *   wide elements of (L0 L1 R0 R1) on [16] none: their parts lie in four lanes
 */
import { binaryDigits, collapse, expand, registerDigit, renumber } from "./expansion.ts";
import type { Digit } from "./expansion.ts";
import { product } from "./index-bits.ts";
import type { RegisterLayout } from "./register-layout.ts";
import { reshapeLayout } from "./reshape.ts";

type Shape = readonly number[];

/** The shape of the narrow elements: the last axis has `parts` times as many. */
export function splitShape(shape: Shape, parts: number): Shape {
  return shape.with(-1, (shape.at(-1) ?? 1) * parts);
}

/** Where the parts lie of elements that lie in the layout. */
export function splitElements(
  layout: RegisterLayout,
  shape: Shape,
  parts: number,
): RegisterLayout | undefined {
  const steps = Math.log2(parts);
  return changeLast(layout, shape, splitShape(shape, parts), (digits, axis) => {
    const wide = digits.map((digit) => ({ ...digit, stride: digit.stride * parts }));
    const bits = Array.from({ length: steps }, (_, step) => registerDigit(2, 2 ** step));
    return axis === "last" ? [...bits, ...wide] : wide;
  });
}

/** Where the elements lie whose parts, of the shape, lie in the layout; undefined where these are apart. */
export function joinElements(
  layout: RegisterLayout,
  shape: Shape,
  parts: number,
): RegisterLayout | undefined {
  const steps = Math.log2(parts);
  const to = shape.with(-1, (shape.at(-1) ?? 1) / parts);
  return changeLast(layout, shape, to, (digits, axis) => {
    if (axis !== "last") return digits;
    const bits = binaryDigits(digits);
    const low = bits.slice(0, steps);
    const isTogether =
      low.length === steps && low.every(({ radix, thread }) => radix === 2 && thread === undefined);
    return isTogether ? bits.slice(steps) : undefined;
  });
}

/** The layout with other digits; a flat one whose bits straddle axes is changed as one axis. */
function changeLast(
  layout: RegisterLayout,
  from: Shape,
  to: Shape,
  change: (digits: readonly Digit[], axis: "last" | "other") => readonly Digit[] | undefined,
): RegisterLayout | undefined {
  if (layout.kind === "splat") return undefined;
  const expansion = expand(layout, from);
  if (expansion === undefined) {
    const one = from.length === 1 ? undefined : reshapeLayout(layout, from, [product(from)]);
    const changed = one && changeLast(one, [product(from)], [product(to)], change);
    return changed && reshapeLayout(changed, [product(to)], to);
  }
  const last = expansion.axes.length - 1;
  const axes = expansion.axes.map((digits, axis) =>
    change(digits, axis === last ? "last" : "other"),
  );
  return axes.every((digits) => digits !== undefined)
    ? collapse(renumber({ shape: to, axes }))
    : undefined;
}
