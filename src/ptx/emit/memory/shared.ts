/**
 * Windows on shared memory, as registers: where they begin, and what run-time offsets add (`shared-storage.ts` says how the
 * number of an element becomes the place where it is stored).
 */
import type { Op, Value } from "../../../ir/node.ts";
import { sliceShared } from "../../../layout/access/slice.ts";
import type { AxisSlice, Testing } from "../../../layout/access/slice.ts";
import {
  linearStep,
  moveValues,
  partsAddUp,
  storedDigits,
  storedNumber,
} from "../../../layout/access/shared-storage.ts";
import type { StoredDigit } from "../../../layout/access/shared-storage.ts";
import type { SharedMove } from "../../../layout/access/window.ts";
import { product } from "../../../layout/algebra/index-bits.ts";
import { rowMajor } from "../../../layout/algebra/shared-layout.ts";
import { refOf } from "../../../ir/traverse.ts";
import type { SharedWindow } from "../../../layout/model/windows.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { indexQuotient, indexRemainder } from "../elementwise/division.ts";
import type { MovedIndex, Position, SharedValue } from "../values.ts";
import { storedAs } from "../../../layout/model/placed-types.ts";

/** b32: the stored number of an element whose number is in a register. */
export function storedRegister(
  { code }: EmitContext,
  digits: readonly StoredDigit[],
  value: Register,
  step = 1,
): Register {
  let sum: Register | undefined;
  for (const { radix, number, stored } of digits) {
    let digit = value;
    if (number > 1) digit = indexQuotient(code, digit, number);
    if (radix !== Infinity) digit = indexRemainder(code, digit, radix);
    const weight = integer(stored * step);
    sum =
      sum === undefined
        ? code.make("b32", "mul.lo.u32", digit, weight)
        : code.make("b32", "mad.lo.u32", digit, weight, sum);
  }
  return sum ?? code.constant("b32", 0);
}

/** The window of an allocation, a member of a union, or the bytes of one. */
export function wholeShared(context: EmitContext, value: Value, offset: number): SharedValue {
  const { dtype, shape } = refOf(value);
  const allocation = shape.map(Number);
  return {
    kind: "shared",
    window: sharedWindow(context, value),
    dtype,
    allocation,
    layout: storedAs(context.windows.definitions.get(value)) ?? rowMajor,
    offset,
    shape: allocation,
    strides: allocation.map((_, axis) => product(allocation.slice(axis + 1))),
    first: 0,
    moves: [],
    required: [],
    rank: undefined,
  };
}

export function sharedWindow({ windows }: EmitContext, value: Value): SharedWindow {
  const window = windows.of(value);
  if (window.space === "gmem") throw new Error(`%${value.id} lies in global memory`);
  return window;
}

/** A member of a union, whose bytes begin where the union's do. */
export function unionMember(
  context: EmitContext,
  op: Op<"union_member">,
  value: Value,
): SharedValue {
  const start = context.sharedOffset(op.operands.union);
  return wholeShared(context, value, start + op.attributes.offset);
}

export function sliceSharedValue(
  source: SharedValue,
  slices: readonly AxisSlice<Position>[],
  testing: Testing<Position>,
): SharedValue {
  const sliced = sliceShared<Position, MovedIndex>(source, slices, offsets, testing);
  return { ...source, ...sliced };
}

const offsets = {
  constant: ({ register, constant }: Position): number | undefined =>
    register === undefined ? constant : undefined,
  moveOf: ({ register: index }: Position, move: SharedMove): MovedIndex => {
    if (index === undefined) throw new Error("an offset that is known now moves nothing");
    return { index, ...move };
  },
};

/** b32: the address at which the allocation begins, in the block of the window. */
export function allocationBase({ code, numbers }: EmitContext, { rank }: SharedValue): Register {
  if (rank === undefined) return numbers.shared;
  return code.make("b32", "mapa.shared::cluster.u32", numbers.shared, rank);
}

/** b32: what run-time offsets add to the stored number, times `step`; undefined for nothing. */
export function movedNumber(
  context: EmitContext,
  digits: readonly StoredDigit[],
  moves: readonly MovedIndex[],
  step: number,
): Register | undefined {
  const { code } = context;
  let sum: Register | undefined;
  for (const move of moves) {
    const linear = linearStep(digits, move);
    const own =
      linear === undefined
        ? storedRegister(context, digits, scaled(context, move), step)
        : code.make("b32", "mul.lo.u32", move.index, integer(linear * step));
    sum = sum === undefined ? own : code.make("b32", "add.u32", sum, own);
  }
  return sum;
}

function scaled({ code }: EmitContext, { index, stride }: MovedIndex): Register {
  return stride === 1 ? index : code.make("b32", "mul.lo.u32", index, integer(stride));
}

/** A shared::cta address in a register, and bytes behind it. */
export interface SharedStart {
  readonly base: Register;
  readonly offset: number;
}

/** Where the window's first element lies, before the swizzle. */
export function sharedStart(context: EmitContext, window: SharedValue): SharedStart {
  const { code } = context;
  const { allocation, layout, dtype, first, moves, offset } = window;
  const digits = storedDigits(layout, allocation);
  const base = allocationBase(context, window);
  const exact = partsAddUp(digits, [[first], ...moves.map(moveValues)]);
  const bytes = dtype.bits / 8;
  if (exact && bytes >= 1) {
    const moved = movedNumber(context, digits, moves, bytes);
    return {
      base: moved === undefined ? base : code.make("b32", "add.u32", base, moved),
      offset: offset + storedNumber(digits, first) * bytes,
    };
  }
  const number = moves.reduce(
    (sum, move) => code.make("b32", "add.u32", sum, scaled(context, move)),
    code.constant("b32", first),
  );
  const stored = storedRegister(context, digits, number, dtype.bits);
  const moved = code.make("b32", "shr.u32", stored, integer(3));
  return { base: code.make("b32", "add.u32", base, moved), offset };
}
