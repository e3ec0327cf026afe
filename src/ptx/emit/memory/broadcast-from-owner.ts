/**
 * Elements that one lane of each set of copies has, for all of them: from another lane of the warp by
 * `shfl`, across warps through the op's scratch.
 *
 *   layout (L2 L3 L4 R0 W0 W1), copies in L0 and L1:   lane reads lane & ~3 of its warp
 *   layout (L0 L1 L2 L3 L4), copies in W0 and W1:      warp 0 writes, barrier, all read
 */
import { u32 } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { AnyOp } from "../../../ir/node.ts";
import { laneMask, lanesPerWarp } from "../../../layout/algebra/index-bits.ts";
import type { DistributedLayout } from "../../../layout/algebra/register-layout.ts";
import type { Register } from "../../module.ts";
import { braces, integer } from "../../operands.ts";
import { threadBarrier } from "../barriers.ts";
import type { EmitContext } from "../context.ts";
import { ScratchMemory } from "../tiles/scratch.ts";

/** The elements as their first holder has them; `layout` is undefined for a scalar. */
export function shareElements(
  context: EmitContext,
  op: AnyOp,
  dtype: DType,
  layout: DistributedLayout | undefined,
  elements: readonly (Register | undefined)[],
  reason = "old values of the atomic",
): readonly (Register | undefined)[] {
  const all = laneMask(context.scope.warps);
  const copies = (layout === undefined ? all : layout.replicated) & all;
  if (copies === 0) return elements;
  return copies < lanesPerWarp
    ? shareInWarp(context, dtype, copies, elements)
    : shareAcrossWarps(context, op, { dtype, copies, reason }, elements);
}

function shareInWarp(
  context: EmitContext,
  dtype: DType,
  copies: number,
  elements: readonly (Register | undefined)[],
): readonly (Register | undefined)[] {
  const { code, numbers } = context;
  const source = code.make("b32", "and.b32", numbers.lane, integer(lanesPerWarp - 1 - copies));
  const read = (word: Register): Register =>
    code.make("b32", "shfl.sync.idx.b32", word, source, integer(31), integer(-1));
  return elements.map((element) => element && throughWords(context, dtype, element, read));
}

/** Does something to the 32-bit words of an element. */
function throughWords(
  { code }: EmitContext,
  { bits }: DType,
  element: Register,
  change: (word: Register) => Register,
): Register {
  if (bits === 16) {
    const word = change(code.make("b32", "cvt.u32.u16", element));
    return code.make("b16", "cvt.u16.u32", word);
  }
  if (bits !== 64) return change(element);
  const halves = code.registers("b32", 2);
  code.emit("mov.b64", [braces(halves), element]);
  return code.make("b64", "mov.b64", braces(halves.map(change)));
}

function shareAcrossWarps(
  context: EmitContext,
  op: AnyOp,
  {
    dtype,
    copies,
    reason,
  }: { readonly dtype: DType; readonly copies: number; readonly reason: string },
  elements: readonly (Register | undefined)[],
): readonly (Register | undefined)[] {
  const { code, numbers, scope } = context;
  const all = laneMask(scope.warps);
  const scratch = new ScratchMemory(context, op);
  const type = dtype.bits === 64 ? "b64" : dtype.bits === 16 ? "b16" : "b32";
  const bytes = dtype.bits === 64 ? 8 : u32.bits / 8;
  const kept = all - copies;
  const first = code.make("b32", "and.b32", numbers.index, integer(kept));
  const own = code.make("b32", "mul.lo.u32", first, integer(bytes));
  const place = scratch.at(own);
  const owner = code.make("pred", "setp.eq.u32", first, numbers.index);
  const span = bytes * (kept === 0 ? 1 : all + 1);
  scratch.begin();
  code.guarded(owner, () => {
    elements.forEach((element, index) => {
      if (element !== undefined)
        code.emit(`st.shared.${type}`, [scratch.address(place, index * span), element]);
    });
  });
  threadBarrier(context, reason);
  return elements.map((element, index) =>
    element === undefined
      ? undefined
      : code.make(type, `ld.shared.${type}`, scratch.address(place, index * span)),
  );
}
