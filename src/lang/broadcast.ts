/**
 * Implicit broadcasting, by NumPy's rule: shapes are aligned at the last axis, and an extent that is 1
 * or missing repeats. The IR knows only equal shapes, so each operand that must grow gets an op:
 *
 *   [128, 64] with [64]       broadcast {shape = [128, 64], axes = [1]}
 *   [128, 64] with [128, 1]   broadcast {shape = [128, 64], axes = [0, 1]}
 *   [128, 64] with a scalar   broadcast {shape = [128, 64], axes = []}
 */
import type { Value } from "../ir/node.ts";
import { sameShape, shapeText } from "../ir/size.ts";
import { dataShape, isData } from "../ir/types.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { emitValue } from "./trace.ts";

export function shapeOf(value: Value): readonly number[] {
  return isData(value.type) ? dataShape(value.type) : [];
}

/** The shape that all of `shapes` broadcast to. */
export function joinShapes(
  label: string,
  shapes: readonly (readonly number[])[],
  location: Location,
): readonly number[] {
  let joined: readonly number[] = [];
  for (const shape of shapes) {
    const rank = Math.max(joined.length, shape.length);
    const next: number[] = [];
    for (let axis = 0; axis < rank; axis++) {
      const left = joined[axis - rank + joined.length] ?? 1;
      const right = shape[axis - rank + shape.length] ?? 1;
      if (left !== right && left !== 1 && right !== 1) {
        throw new TilewrightError({
          code: "TW1010",
          message: `operands of ${label} have shapes that do not fit together`,
          location,
          expected: shapeText(joined),
          found: shapeText(shape),
        });
      }
      next.push(left === 1 ? right : left);
    }
    joined = next;
  }
  return joined;
}

/** Whether a value of shape `from` repeats to `to`. */
export function broadcasts(from: readonly number[], to: readonly number[]): boolean {
  const missing = to.length - from.length;
  return (
    missing >= 0 && from.every((extent, axis) => extent === 1 || extent === to[axis + missing])
  );
}

/** `value` repeated to `shape`, to which it broadcasts; itself where it has that shape. */
export function broadcastValue(value: Value, shape: readonly number[], location: Location): Value {
  const from = shapeOf(value);
  if (sameShape(from, shape)) return value;
  const axes = from.map((_, axis) => axis + shape.length - from.length);
  return emitValue("broadcast", { source: value }, { shape, axes }, location);
}
