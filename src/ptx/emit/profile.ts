/**
 * Marks of a profiled kernel: one lane writes the clock into the ring of its thread or warp (`ir/profile-ring.ts`).
 *
 *   mov.u64        clock, %clock64
 *   and.b32        slot, count, edges − 1           the newest over the oldest
 *   mad.wide.u32   place, slot, 16, ring
 *   st.global.v4   [place + 48], {site + 1, 0, clock}
 *   add.u32        count, count, 1
 *
 * The count stays in a register, and nothing is read from memory, so that a mark costs about ten instructions of a warp and
 * nobody waits for it.
 */
import type { Op } from "../../ir/node.ts";
import { headSlots, ringsOfWarps, slotWords } from "../../ir/profile-ring.ts";
import { refOf } from "../../ir/traverse.ts";
import type { Operand, Register } from "../module.ts";
import { address, integer, symbol, vector } from "../operands.ts";
import type { EmitContext } from "./context.ts";

const slotBytes = 4 * slotWords;

/** The ring of the lane's thread or warp. */
export interface ProfileRing {
  readonly base: Register;
  /** Edges so far. */
  readonly count: Register;
  /** Slots for edges, less one. */
  readonly mask: Register;
  /** Whether this lane writes. */
  readonly leads: Register;
}

export function profileMark(op: Op<"profile_mark">, context: EmitContext): void {
  const { edge, site = 0 } = op.attributes;
  if (op.operands.ring === undefined) return;
  if (edge === "open") context.profile = openRing(op.operands.ring, context);
  else if (edge === "close") closeRing(context, ringOf(context));
  else writeEdge(context, ringOf(context), site);
}

function ringOf({ profile }: EmitContext): ProfileRing {
  if (profile === undefined) throw new Error("a mark stands before its ring is open");
  return profile;
}

function openRing(
  ring: NonNullable<Op<"profile_mark">["operands"]["ring"]>,
  context: EmitContext,
): ProfileRing {
  const { code, numbers, kernel } = context;
  const array = context.ref(ring);
  if (array.kind !== "global") throw new Error("rings lie in global memory");
  const [, slots = headSlots] = refOf(ring).shape;
  const ofWarps = ringsOfWarps(kernel);
  const perBlock = kernel.threads.length * (ofWarps ? kernel.warps : 1);
  const inBlock = ofWarps
    ? code.make("b32", "mad.lo.u32", numbers.thread, integer(kernel.warps), numbers.warp)
    : numbers.thread;
  const number = code.make("b32", "mad.lo.u32", numbers.block, integer(perBlock), inBlock);
  const slotCount = context.size(slots);
  const ringBytes = code.make("b32", "shl.b32", slotCount, integer(Math.log2(slotBytes)));
  const base = code.make("b64", "mad.wide.u32", number, ringBytes, array.base);
  const mask = code.make("b32", "sub.u32", slotCount, integer(headSlots + 1));
  const count = code.make("b32", "mov.b32", integer(0));
  const leads = ofWarps ? numbers.leader : numbers.elected;
  const processor = code.make("b32", "mov.u32", symbol("%smid"));
  const head = [processor, count, ...words(context, "%clock64")];
  const timer = words(context, "%globaltimer");
  code.guarded(leads, () => {
    code.emit("st.global.v4.b32", [address(base), vector(head)]);
    code.emit("st.global.v2.b32", [address(base, slotBytes), vector(timer)]);
  });
  return { base, count, mask, leads };
}

function closeRing(context: EmitContext, { base, count, leads }: ProfileRing): void {
  const { code } = context;
  const [clock, timer] = [words(context, "%clock64"), words(context, "%globaltimer")];
  code.guarded(leads, () => {
    code.emit("st.global.b32", [address(base, 4), count]);
    code.emit("st.global.v2.b32", [address(base, slotBytes + 8), vector(timer)]);
    code.emit("st.global.v2.b32", [address(base, 2 * slotBytes), vector(clock)]);
  });
}

function writeEdge(context: EmitContext, ring: ProfileRing, site: number): void {
  const { code } = context;
  const { base, count, mask, leads } = ring;
  const clock = words(context, "%clock64");
  const slot = code.make("b32", "and.b32", count, mask);
  const place = code.make("b64", "mad.wide.u32", slot, integer(slotBytes), base);
  const edge: readonly Operand[] = [
    code.constant("b32", site + 1),
    code.constant("b32", 0),
    ...clock,
  ];
  code.guarded(leads, () => {
    code.emit("st.global.v4.b32", [address(place, headSlots * slotBytes), vector(edge)]);
  });
  code.emit("add.u32", [count, count, integer(1)]);
}

/** A special register of 64 bits, low word first. */
function words({ code }: EmitContext, name: string): readonly Register[] {
  const time = code.make("b64", "mov.u64", symbol(name));
  const halves = [code.register("b32"), code.register("b32")];
  code.emit("mov.b64", [vector(halves), time]);
  return halves;
}
