/**
 * Products whose factors are often one: a warp of which all lanes have ones goes past them, so that factors of rows that seldom change
 * cost a comparison each.
 *
 *       setp.neu.f32      %p, factor, 1.0          of each factor a lane has
 *       vote.sync.any.pred %q, %p, -1
 *       @!%q bra          $ones
 *       mul.rn.f32        value, value, factor     of each value a lane has
 *   $ones:
 */
import type { Register } from "../../module.ts";
import { float32, integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { TileValue } from "../values.ts";

/** The words of the products of tiles of f32 in one layout. */
export function seldomProducts(
  { code }: EmitContext,
  values: TileValue,
  factors: TileValue,
): readonly Register[] {
  const distinct = new Map(factors.words.map((factor) => [factor.name, factor]));
  let own: Register | undefined;
  for (const factor of distinct.values())
    own =
      own === undefined
        ? code.make("pred", "setp.neu.f32", factor, float32(1))
        : code.make("pred", "setp.neu.or.f32", factor, float32(1), own);
  if (own === undefined) return [];
  const products = values.words.map((value) => code.make("b32", "mov.b32", value));
  const ones = code.label("ones");
  const some = code.make("pred", "vote.sync.any.pred", own, integer(-1));
  code.jumpIf(some, ones, { negated: true });
  products.forEach((product, index) => {
    const [value, factor] = [values.words[index], factors.words[index]];
    if (value !== undefined && factor !== undefined)
      code.emit("mul.rn.f32", [product, value, factor]);
  });
  code.place(ones);
  return products;
}
