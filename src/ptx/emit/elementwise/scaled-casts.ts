/**
 * 4-bit elements multiplied by a power of two right after their conversion to bf16, `x.cast(bf16).mul(1 / 4)`: the scale is folded into the
 * conversion, which saves two of its shifts (`halvesCast`), and the mul emits nothing. Both are exact.
 */
import { bf16, isInteger } from "../../../formats/dtype.ts";
import type { AnyOp, Region, Value } from "../../../ir/node.ts";
import { countUses, definingOps } from "../../../ir/rewrite/analysis.ts";
import { walkOps } from "../../../ir/traverse.ts";
import { widensHalves } from "../../../layout/model/layout-functions.ts";
import { onceForEach } from "../../../support/memo.ts";
import { greatestFactor } from "./packed-conversions.ts";

/** The least factor with which offsets and products are normal numbers of bf16. */
const leastFactor = 2 ** -120;

/** The factor that the result of each such conversion is multiplied by. */
export const castFactors = onceForEach((body: Region): ReadonlyMap<Value, number> => {
  const definitions = definingOps(body);
  const uses = countUses(body);
  const factors = new Map<Value, number>();
  walkOps(body, (op) => {
    if (op.kind !== "binary" || op.attributes.fn !== "mul") return;
    const { left, right } = op.operands;
    const given = definitions.get(right);
    const laid = given?.kind === "convert_layout" ? definitions.get(given.operands.source) : given;
    const factor = factorOf(laid);
    if (factor !== undefined && uses.get(left) === 1 && isNarrowCast(definitions.get(left)))
      factors.set(left, factor);
  });
  return factors;
});

/** Below and from where products of scales are normal numbers of bf16. */
const [beyond, leastNormal] = [2 ** 128, 2 ** -126];
/** What brings back the numbers that are placed lowest (`placedHalves`). */
const backFactor = 2 ** 133;

/**
 * Those of these conversions whose product with the factor is multiplied by scales, and used for nothing else, where the scales are known to
 * be zeros, none, or within a range in which they may be multiplied by what brings placed numbers back: `x.cast(bf16).mul(f).mul(s)` with
 * `s = y.lt(a).select(0, y.minimum(b))`, which is zero or from a to b. One fma then makes the product of a placed number (`scaledHalves`), which is the same,
 * since it is rounded once, as the product with the scale is; but for the sign of zeros where the scale is zero.
 */
export const placedCasts = onceForEach((body: Region): ReadonlySet<Value> => {
  const definitions = definingOps(body);
  const uses = countUses(body);
  const factors = castFactors(body);
  const placed = new Set<Value>();
  walkOps(body, (op) => {
    if (op.kind !== "binary" || op.attributes.fn !== "mul") return;
    const { left, right } = op.operands;
    const product = definitions.get(left);
    if (product?.kind !== "binary" || product.attributes.fn !== "mul" || uses.get(left) !== 1)
      return;
    const cast = product.operands.left;
    const factor = factors.get(cast);
    const range = factor === undefined ? undefined : rangeOf(right, definitions);
    if (factor === undefined || range === undefined) return;
    const [low, high] = [range.least * factor, range.most * factor * backFactor];
    if (low >= leastNormal && high < beyond) placed.add(cast);
  });
  return placed;
});

type Definitions = ReturnType<typeof definingOps>;

/** The op that made a value, whatever shape and layout it was given since. */
function madeBy(value: Value, definitions: Definitions): AnyOp | undefined {
  const op = definitions.get(value);
  const isShape = op?.kind === "broadcast" || op?.kind === "reshape" || op?.kind === "transpose";
  return isShape || op?.kind === "convert_layout" ? madeBy(op.operands.source, definitions) : op;
}

/** Magnitudes that scales other than zero have. */
function rangeOf(
  scales: Value,
  definitions: Definitions,
): { readonly least: number; readonly most: number } | undefined {
  const constantOf = (value: Value): number | undefined => {
    const op = madeBy(value, definitions);
    return op?.kind === "constant" ? Number(op.attributes.value) : undefined;
  };
  // Another shape would have other elements at the same place.
  const asLaid = (value: Value): Value => {
    const op = definitions.get(value);
    return op?.kind === "convert_layout" ? asLaid(op.operands.source) : value;
  };
  const chosen = madeBy(scales, definitions);
  if (chosen?.kind !== "select" || constantOf(chosen.operands.ifTrue) !== 0) return undefined;
  const test = definitions.get(asLaid(chosen.operands.condition));
  const otherwise = definitions.get(asLaid(chosen.operands.ifFalse));
  if (test?.kind !== "compare" || test.attributes.predicate !== "lt") return undefined;
  if (otherwise?.kind !== "binary" || otherwise.attributes.fn !== "min") return undefined;
  const [low, most] = [constantOf(test.operands.right), constantOf(otherwise.operands.right)];
  const isSame = asLaid(test.operands.left) === asLaid(otherwise.operands.left);
  if (!isSame || low === undefined || most === undefined) return undefined;
  return low > 0 && most >= low ? { least: low, most } : undefined;
}

function isNarrowCast(op: AnyOp | undefined): boolean {
  if (op?.kind !== "cast" || op.attributes.dtype !== bf16 || !widensHalves(op)) return false;
  const { type } = op.operands.source;
  return type.kind === "tile" && isInteger(type.dtype);
}

function factorOf(op: AnyOp | undefined): number | undefined {
  if (op?.kind !== "constant") return undefined;
  const value = Number(op.attributes.value);
  return value >= leastFactor && value <= greatestFactor && Number.isInteger(Math.log2(value))
    ? value
    : undefined;
}
