/**
 * Windows that must not leave what they were cut from: every window of shared memory, and every index. Where the
 * kernel's `guard` says so, it asks before it accesses memory through the window, and traps:
 *
 *   b: smem [2112]     b.at(slice(s, 64)).load()          setp.gt.u32 %p0, %s, 2048;   @%p0 trap;
 *   x: gmem [n, 64]    x.at(row).load(), row loaded       setp.gt.u32 %p0, %row, %last;  @%p0 trap;
 *
 * As unsigned numbers what lies before 0 is behind the end. It is the access that asks: a window that nobody
 * uses may lie anywhere, as on the simulator. What was asked before on every way to the op is not asked again.
 */
import type { AnyOp, Op, Value } from "../../../ir/node.ts";
import { isPromisedInside } from "../../../ir/promises.ts";
import { accessesOf } from "../../../ir/traits.ts";
import { peerIndex, placeIndices } from "../../../layout/access/indexed-barriers.ts";
import type { PlaceIndex } from "../../../layout/access/indexed-barriers.ts";
import type { Operand, Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { trapOutside } from "../failure.ts";
import { liesInShared } from "../../../layout/access/window.ts";
import type { RefValue, ScalarValue } from "../values.ts";
import type { Bound, RequiredBound } from "./checked-bounds.ts";
import { indexRegister, positionOf } from "./positions.ts";

type Redirect = readonly [register: Register, to: Operand];

/** Traps where a window that the op accesses is not inside. */
export function requireInside(context: EmitContext, op: AnyOp): void {
  const { asked } = context;
  if (isPromisedInside(op) && !context.checksPromises) return;
  for (const { value } of accessesOf(op)) {
    // Windows of tensor memory are tested where they are made.
    if (value.type.kind !== "ref" || value.type.space === "tmem") continue;
    const ref = context.ref(value);
    for (const bound of requiredOf(ref)) {
      if (asked.has(bound)) continue;
      asked.add(bound);
      trapOutside(context, isOutside(context, bound), "the window is not inside", () =>
        redirectsOf(context, ref),
      );
    }
  }
}

/** The indices of the barrier or counter that the op picks: all of them inside, since it traps otherwise. */
export function insideIndices(context: EmitContext, op: AnyOp): readonly ScalarValue[] {
  return placeIndices(op).map((place) => insideIndex(context, op, place));
}

/** The rank of the peer that the op names, if any: a block that is there, since it traps otherwise. */
export function insidePeer(context: EmitContext, op: AnyOp): ScalarValue | undefined {
  const place = peerIndex(op, context.kernel);
  return place && insideIndex(context, op, place);
}

function insideIndex(
  context: EmitContext,
  op: AnyOp,
  { text, index, extent }: PlaceIndex,
): ScalarValue {
  const { guard = [] } = op.attributes as { readonly guard?: readonly string[] };
  const given = context.scalar(index);
  if (!guard.includes(text)) return given;
  const { asked, code, failureCell } = context;
  const own =
    failureCell === undefined ? given.register : code.make("b32", "mov.b32", given.register);
  const bound = { start: { register: own, constant: 0 }, count: 1, size: extent };
  if (asked.has(bound)) return given;
  asked.add(bound);
  trapOutside(context, isOutside(context, bound), "the index is not inside", () => [
    [own, integer(0)],
  ]);
  return { ...given, register: own, constant: undefined };
}

/** An offset that a window of tensor memory has, of so many elements of an axis: inside, since it traps otherwise. */
export function insideOffset(
  context: EmitContext,
  offset: Value,
  { count, size }: Omit<Bound, "start">,
): Register {
  const { asked, code, failureCell } = context;
  const { register } = context.scalar(offset);
  const own = failureCell === undefined ? register : code.make("b32", "mov.b32", register);
  const bound = { start: { register: own, constant: 0 }, count, size };
  if (asked.has(bound)) return own;
  asked.add(bound);
  trapOutside(context, isOutside(context, bound), "the window is not inside", () => [
    [own, integer(0)],
  ]);
  return own;
}

/** The block that a window is moved to, and that it must be there. */
export interface PeerRank {
  readonly rank: Register;
  readonly required: readonly RequiredBound[];
}

/** The rank that the op names; it is the access through the window that asks whether there is such a block. */
export function peerRank(context: EmitContext, op: Op<"peer_ref">): PeerRank {
  const place = peerIndex(op, context.kernel);
  const { register } = context.scalar(op.operands.rank);
  const { guard = [] } = op.attributes;
  if (place === undefined || !guard.includes(place.text)) return { rank: register, required: [] };
  const rank = context.failureCell === undefined ? register : ownIndex(context, register, 0);
  const start = { ...positionOf(context, place.index), register: rank, constant: 0 };
  return { rank, required: [{ start, count: 1, size: place.extent }] };
}

/** A window by registers of its own, which a failure moves to the first element (`failure.ts`). */
export function movable(context: EmitContext, sliced: RefValue, source: RefValue): RefValue {
  if (context.failureCell === undefined || sliced.required.length === source.required.length)
    return sliced;
  if (sliced.kind === "shared") {
    const moves = sliced.moves.map((move) => ({
      ...move,
      index: ownIndex(context, move.index, 0),
    }));
    return { ...sliced, moves };
  }
  const along = new Set(liesInShared(sliced) ? [] : sliced.axes.map(({ root }) => root));
  const origin = sliced.origin.map((position, root) => {
    const { register, constant } = position;
    if (along.has(root) || register === undefined) return position;
    return { ...position, register: ownIndex(context, register, -constant) };
  });
  return { ...sliced, origin };
}

/** A copy of the register, which is `first` after a failure. */
function ownIndex({ code, redirects }: EmitContext, register: Register, first: number): Register {
  if (redirects.has(register)) return register;
  const own = code.make("b32", "mov.b32", register);
  redirects.set(own, integer(first));
  return own;
}

/** What finds the window where it is not inside after a failure. */
function redirectsOf({ redirects }: EmitContext, ref: RefValue): readonly Redirect[] {
  return registersOf(ref).flatMap((register): readonly Redirect[] => {
    const to = redirects.get(register);
    return to === undefined ? [] : [[register, to]];
  });
}

function registersOf(ref: RefValue): readonly Register[] {
  if (ref.kind === "shared")
    return [...ref.moves.map(({ index }) => index), ...(ref.rank === undefined ? [] : [ref.rank])];
  const own = ref.origin.flatMap(({ register }) => register ?? []);
  return ref.kind === "global" ? [ref.base, ...own] : [...own, ...registersOf(ref.source)];
}

function requiredOf(ref: RefValue): readonly RequiredBound[] {
  return ref.kind === "reshaped" ? [...ref.required, ...requiredOf(ref.source)] : ref.required;
}

function isOutside(context: EmitContext, { start, count, size }: Bound): Register {
  const { code } = context;
  const first = indexRegister(context, start);
  if (typeof size === "number")
    return code.make("pred", "setp.gt.u32", first, integer(size - count));
  if (count !== 1) throw new Error("windows of shared memory have known sizes");
  return code.make("pred", "setp.ge.u32", first, context.size(size));
}
