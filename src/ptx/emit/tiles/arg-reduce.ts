/**
 * Searches for the first least or greatest element along an axis: a reduction by minimum of keys joined
 * with numbers. The first NaN beats every number, and -0 equals +0, so NaN gets the least key of all.
 */
import { i32 } from "../../../formats/dtype.ts";
import type { Op } from "../../../ir/node.ts";
import type { RegisterLayout } from "../../../layout/algebra/register-layout.ts";
import { digitsAlong, registerPart, weighed } from "../../../layout/model/axis-distribution.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { tileFromElements } from "../elements.ts";
import { alignedElements } from "./left-aligned-keys.ts";
import { combineAlong } from "./combining.ts";
import { orderedKey } from "./keys.ts";
import type { KeyOrder } from "./keys.ts";
import { TilePlaces } from "./valid-registers.ts";
import { RankedKeys } from "./key-index-pairs.ts";
import { resultTile } from "./rearrange.ts";

export function argReduce(op: Op<"arg_reduce">, context: EmitContext): void {
  const { fn, axis } = op.attributes;
  const tile = context.tile(op.operands.source);
  const { dtype, shape, layout } = tile;
  const [target] = op.results;
  const result = target?.type.kind === "tile" ? resultTile(target) : undefined;
  const descending = fn === "argmax";
  const order: KeyOrder = {
    descending,
    equalZeros: true,
    nan: descending ? "greatest" : "least",
  };
  const ranked = new RankedKeys(context, dtype, shape[axis] ?? 1);
  const numberOf = numbersAlong(context, layout, shape, axis);
  const carriers = alignedElements(context, tile).map((element, register) =>
    ranked.join(orderedKey(context, dtype, element, order), numberOf(register)),
  );
  const slots = combineAlong(
    context,
    op,
    { tile, axes: [axis], carriers: () => carriers, result },
    {
      combine: (left, right) => ranked.first(left, right),
      neutral: ranked.last,
      redux:
        ranked.width === 1 && carriers[0]?.[0]?.type === "b32" ? "redux.sync.min.u32" : undefined,
      idempotent: true,
    },
  );
  const found = slots.map((slot) => slot && ranked.number(slot));
  if (result !== undefined) {
    context.define(target, tileFromElements(context, result, found));
    return;
  }
  const [only] = found;
  if (only === undefined) throw new Error("a search in nothing");
  context.define(target, { kind: "scalar", dtype: i32, register: only });
}

/** b32: the number along the axis of a register's element. */
export function numbersAlong(
  context: EmitContext,
  layout: RegisterLayout,
  shape: readonly number[],
  axis: number,
): (register: number) => Register {
  const along = layout.kind === "splat" ? undefined : digitsAlong(layout, shape, [axis]);
  const own =
    along && (along.axes.find((each) => along.expansion.shape[each] !== 1) ?? along.axes[0]);
  if (along === undefined || own === undefined)
    throw new Error(`${layout.text} has no digits along axis ${axis}`);
  const { code } = context;
  const lane = new TilePlaces(context, along.expansion).coordinate(own);
  const digits = weighed(along.expansion, own);
  const known = new Map<number, Register>();
  return (register) => {
    const part = registerPart(digits, register);
    const made = known.get(part) ?? sum(part);
    known.set(part, made);
    return made;
  };
  function sum(part: number): Register {
    if (lane === undefined) return code.constant("b32", part);
    return part === 0 ? lane : code.make("b32", "add.u32", lane, integer(part));
  }
}
