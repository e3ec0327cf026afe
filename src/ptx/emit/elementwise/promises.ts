/**
 * Promises about integers. Code for GPUs relies on them; code for the emulator tests each element where the promise is made, and traps, which
 * the emulator tells as what it is:
 *
 *   assumeMultipleOf(x, 16)      cvt.s64.s32 %d, %x;  rem.s64 %r, %d, 16;  setp.ne.s64 %p, %r, 0;  @%p trap;
 */
import { i64, u64 } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { Op } from "../../../ir/node.ts";
import { promiseText } from "../../../ir/promises.ts";
import type { Operand, Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { tileElements } from "../elements.ts";
import { placesOf } from "../tiles/valid-registers.ts";
import { emitCast } from "./casts.ts";

export function checkPromise(op: Op<"assume">, context: EmitContext): void {
  const { code } = context;
  const { source } = op.operands;
  const { position } = op.location;
  context.messages.push({
    kind: "promise",
    text: promiseText(op.attributes),
    values: [],
    position,
  });
  if (source.type.kind === "scalar") {
    checkElement(op, context, source.type.dtype, context.scalar(source).register);
    return;
  }
  const tile = context.tile(source);
  const places = placesOf(context, tile.layout, tile.shape);
  for (const [register, element] of tileElements(context, tile).entries()) {
    const inside = places.inside(register);
    if (inside === false) continue;
    const skip = code.label("outside");
    if (inside !== true) code.jumpIf(inside, skip, { negated: true, uniform: false });
    checkElement(op, context, tile.dtype, element);
    if (inside !== true) code.place(skip);
  }
}

function checkElement(
  { attributes }: Op<"assume">,
  context: EmitContext,
  dtype: DType,
  element: Register,
): void {
  const { code } = context;
  const wide = dtype.kind === "signed" ? i64 : u64;
  const type = dtype.kind === "signed" ? "s64" : "u64";
  const value = emitCast(context, dtype, wide, element);
  const trapWhere = (comparison: string, left: Register, right: Operand): void => {
    const broken = code.make("pred", `setp.${comparison}.${type}`, left, right);
    code.guarded(broken, () => {
      code.emit("trap", [], "a promise does not hold");
    });
  };
  const { multipleOf, least, greatest, below } = attributes;
  if (multipleOf !== undefined) {
    const rest = code.make("b64", `rem.${type}`, value, integer(multipleOf));
    trapWhere("ne", rest, integer(0));
  }
  if (least !== undefined) trapWhere("lt", value, integer(BigInt(least)));
  if (greatest !== undefined) trapWhere("gt", value, integer(BigInt(greatest)));
  if (below !== undefined)
    trapWhere("ge", value, typeof below === "number" ? integer(below) : context.size(below, 64));
}
