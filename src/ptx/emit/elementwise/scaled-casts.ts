/**
 * Numbers of 4 bits that are multiplied by a power of two once they are bf16, and used for nothing else: `x.cast(bf16).mul(1 / 4)`. The
 * conversion takes the factor along, and saves two of its shifts by that (`halvesCast`); the product is there then. Both are exact, so
 * nothing else comes out of it.
 */
import { bf16 } from "../../../formats/dtype.ts";
import type { AnyOp, Region, Value } from "../../../ir/node.ts";
import { countUses, definingOps } from "../../../ir/rewrite/analysis.ts";
import { walkOps } from "../../../ir/traverse.ts";
import { widensHalves } from "../../../layout/model/functions.ts";
import { onceForEach } from "../../../support/memo.ts";
import { greatestFactor } from "./paired.ts";

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

function isNarrowCast(op: AnyOp | undefined): boolean {
  return op?.kind === "cast" && op.attributes.dtype === bf16 && widensHalves(op);
}

function factorOf(op: AnyOp | undefined): number | undefined {
  if (op?.kind !== "constant") return undefined;
  const value = Number(op.attributes.value);
  return value >= leastFactor && value <= greatestFactor && Number.isInteger(Math.log2(value))
    ? value
    : undefined;
}
