/** Inference for products whose blocks along k have scales, and for what a product is added to. */
import { f32 } from "../../formats/dtype.ts";
import { scaledKind } from "../../targets/scaled-products.ts";
import type { ScaledKind } from "../../targets/scaled-products.ts";
import type { Op } from "../node.ts";
import { opName } from "../op-names.ts";
import { sameShape } from "../size.ts";
import { sameType, tileType, typeText } from "../types.ts";
import type { TileType, Type } from "../types.ts";
import { fail, requireTileShape, tileOperand } from "./checks.ts";
import type { AnyDraft } from "./checks.ts";
import type { Draft } from "./inference-input.ts";

/** The kind of a product that inference has seen. */
export function kindOfScaledDot({ operands, attributes }: Op<"scaled_dot">): ScaledKind {
  const [left, right, scales] = [operands.left, operands.right, operands.leftScales].map(
    ({ type }) => (type.kind === "tile" ? type.dtype : undefined),
  );
  const kind = left && right && scales && scaledKind(left, right, scales, attributes.block);
  if (kind === undefined) throw new Error("a product with scales of no kind");
  return kind;
}

export function scaledDot(draft: Draft<"scaled_dot">): readonly Type[] {
  const { operands, attributes } = draft;
  const left = tileOperand(draft, "left", operands.left);
  const right = tileOperand(draft, "right", operands.right);
  const [leftScales, rightScales] = [
    tileOperand(draft, "the scales of left", operands.leftScales),
    tileOperand(draft, "the scales of right", operands.rightScales),
  ];
  const [m = 0, k = 0] = left.shape;
  const n = right.shape[1] ?? 0;
  const blocks = k / attributes.block;
  const kind = scaledKind(left.dtype, right.dtype, leftScales.dtype, attributes.block);
  const fits =
    sameShape(left.shape, [m, k]) &&
    sameShape(right.shape, [k, n]) &&
    sameShape(leftScales.shape, [m, blocks]) &&
    sameShape(rightScales.shape, [n, blocks]);
  const all = [left, right, leftScales, rightScales];
  if (kind === undefined || leftScales.dtype !== rightScales.dtype || !fits)
    fail(draft, "TW2029", "operands of scaled_dot do not fit together", {
      expected: `narrow floats [m, k] and [k, n], scales [m, k / ${attributes.block}] and [n, k / ${attributes.block}]`,
      found: all.map(typeText).join(", "),
    });
  requireTileShape(draft, [m, n]);
  const result = tileType(f32, [m, n]);
  if (operands.accumulator !== undefined)
    requireAccumulator(draft, result, tileOperand(draft, "the accumulator", operands.accumulator));
  return [result];
}

/** The tile that a product is added to has the product's type. */
export function requireAccumulator(draft: AnyDraft, wanted: TileType, found: TileType): void {
  if (!sameType(wanted, found))
    fail(draft, "TW2034", `what ${opName(draft)} begins with has another type than the result`, {
      expected: typeText(wanted),
      found: typeText(found),
    });
}
