/**
 * Functions of users that are given an array piece by piece, such as epilogues and scores. How large pieces are is the plan's decision, so what
 * such a function makes of an element may depend on that element alone:
 *
 *   sums.sub(sums.max(1, { keep: true }))      the greatest of 64, 128 or 256 columns, and other numbers for every configuration
 *   sums.reshape([rows, 2, 32]).max(2)         extents of one's own fit pieces of one size, and are refused for others by themselves
 */
import type { AnyOp, Value } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import { activeTrace } from "../../lang/trace.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";

/** What a function makes of a piece of this shape; refuses one that combines elements along a whole axis of it. */
export function byElement<T>(
  what: string,
  shape: readonly number[],
  make: () => T,
  location: Location,
): T {
  const trace = activeTrace(what, location);
  const from = trace.position;
  const made = make();
  const mixing = trace.opsSince(from).find((op) => combines(op, shape));
  if (mixing === undefined) return made;
  throw new TilewrightError({
    code: "TW9905",
    message: `${what} combines elements of a piece, whose size the plan decides`,
    expected: "a function of each element and of what is given beside it",
    found: opName(mixing),
    location: mixing.location,
    remedy: "combine rows or columns by another operation; matmul has outputs with combine",
  });
}

function combines(op: AnyOp, shape: readonly number[]): boolean {
  const isWhole = (source: Value, axes: readonly number[]): boolean => {
    const { type } = source;
    if (type.kind !== "tile" || type.shape.length !== shape.length) return false;
    // A piece of a single element is the least of larger ones: what combines it with nothing here would combine others there.
    const isSingle = shape.every((extent) => extent === 1);
    return axes.some(
      (axis) => (isSingle || (shape[axis] ?? 1) > 1) && type.shape[axis] === shape[axis],
    );
  };
  if (op.kind === "reduce") return isWhole(op.operands.source, op.attributes.axes);
  if (op.kind === "scan" || op.kind === "arg_reduce")
    return isWhole(op.operands.source, [op.attributes.axis]);
  return op.kind === "sort" && isWhole(op.operands.keys, [op.attributes.axis]);
}
