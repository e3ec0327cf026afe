/**
 * Windows on shared memory. An element of the allocation has a number in row-major order; the layout cuts
 * that number into digits, each worth so many stored elements, and the swizzle then moves bytes.
 *
 *   bf16 [2, 64, 128] in shared(tile 8 64, swizzle 128)
 *
 *   | digit of the number | radix | one step of the number | one step stored |
 *   |---------------------|-------|------------------------|-----------------|
 *   | column in a tile    | 64    | 1                      | 1               |
 *   | tile along columns  | 2     | 64                     | 512             |
 *   | row in a tile       | 8     | 128                    | 64              |
 *   | tile along rows, stage | … | 1024                   | 1024            |
 *
 * Digits that follow on in both are one digit. As long as parts of a number do not carry from digit to
 * digit, the stored places of the parts add up, so that a lane, a register and a run-time offset each
 * contribute on their own; the last digit has no end.
 */
import { divisorNumber } from "../../../ir/facts/index.ts";
import type { Op, Value } from "../../../ir/node.ts";
import { levelsOf, rowMajor } from "../../../layout/algebra/shared-layout.ts";
import type { SharedLayout } from "../../../layout/algebra/shared-layout.ts";
import { product } from "../../../layout/algebra/bits.ts";
import { refOf } from "../../../layout/model/windows.ts";
import type { SharedWindow } from "../../../layout/model/windows.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { indexQuotient, indexRemainder } from "../elementwise/division.ts";
import type { SharedMove, SharedValue } from "../values.ts";
import type { AxisSlice } from "./global.ts";
import { storedAs } from "../../../layout/model/placed-types.ts";

export interface StoredDigit {
  readonly radix: number;
  /** What a step adds to the element's number. */
  readonly number: number;
  /** What it adds to the stored number. */
  readonly stored: number;
}

/** The digits of an element's number, least significant first. */
export function storedDigits(
  layout: SharedLayout,
  allocation: readonly number[],
): readonly StoredDigit[] {
  const steps = allocation.map((_, axis) => product(allocation.slice(axis + 1)));
  const digits = levelsOf(layout, allocation)
    .filter(({ count }) => count > 1)
    .map(({ axis, per, count, stride }) => ({
      radix: count,
      number: (steps[axis] ?? 1) * per,
      stored: stride,
    }))
    .sort((left, right) => left.number - right.number);
  const merged: StoredDigit[] = [];
  for (const digit of digits) {
    const last = merged.at(-1);
    const follows = last !== undefined && digit.stored === last.stored * last.radix;
    if (follows) merged[merged.length - 1] = { ...last, radix: last.radix * digit.radix };
    else merged.push(digit);
  }
  const top = merged.pop() ?? { radix: 1, number: 1, stored: 1 };
  return [...merged, { ...top, radix: Infinity }];
}

export function digitOf({ radix, number }: StoredDigit, value: number): number {
  const quotient = Math.floor(value / number);
  return radix === Infinity ? quotient : quotient % radix;
}

/** The stored number of an element, before the swizzle. */
export function storedNumber(digits: readonly StoredDigit[], value: number): number {
  return digits.reduce((sum, digit) => sum + digitOf(digit, value) * digit.stored, 0);
}

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

export function sliceShared(
  { windows: { facts } }: EmitContext,
  source: SharedValue,
  slices: readonly AxisSlice[],
): SharedValue {
  let { first } = source;
  const moves = [...source.moves];
  const required = [...source.required];
  const kept: number[] = [];
  slices.forEach(({ offset, size, dropped }, axis) => {
    const stride = source.strides[axis] ?? 0;
    const whole = source.shape[axis] ?? 1;
    const count = Number(size);
    if (offset.fact.least < 0n || !facts.endsWithin(offset.fact, count, whole))
      required.push({ start: offset, count, size: whole });
    first += offset.constant * stride;
    if (offset.register !== undefined)
      moves.push(moveOf(offset.register, divisorNumber(offset.fact), stride, whole - count));
    if (!dropped) kept.push(axis);
  });
  return {
    ...source,
    first,
    moves,
    required,
    shape: kept.map((axis) => Number(slices[axis]?.size ?? 1)),
    strides: kept.map((axis) => source.strides[axis] ?? 0),
  };
}

/** Accesses stay inside, so an offset is at most what its size leaves. */
function moveOf(index: Register, divisor: number, stride: number, room: number): SharedMove {
  const step = Math.max(1, divisor);
  return { index, stride, divisor: step, count: Math.floor(Math.max(0, room) / step) + 1 };
}

/** b32: the address at which the allocation begins, in the block of the window. */
export function allocationBase({ code, numbers }: EmitContext, { rank }: SharedValue): Register {
  if (rank === undefined) return numbers.shared;
  return code.make("b32", "mapa.shared::cluster.u32", numbers.shared, rank);
}

/** b32: what run-time offsets add to the stored number, times `step`; undefined for nothing. */
export function movedNumber(
  context: EmitContext,
  digits: readonly StoredDigit[],
  moves: readonly SharedMove[],
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

function scaled({ code }: EmitContext, { index, stride }: SharedMove): Register {
  return stride === 1 ? index : code.make("b32", "mul.lo.u32", index, integer(stride));
}

/** Stored elements for a step of the index, where every step adds as many. */
function linearStep(
  digits: readonly StoredDigit[],
  { stride, divisor, count }: SharedMove,
): number | undefined {
  const once = storedNumber(digits, stride * divisor);
  const linear = Array.from({ length: count }, (_, step) => step).every(
    (step) => storedNumber(digits, step * stride * divisor) === step * once,
  );
  return linear && once % divisor === 0 ? once / divisor : undefined;
}

/** Whether parts of a number add up in what is stored: no digit overflows, whatever values are chosen. */
export function partsAddUp(
  digits: readonly StoredDigit[],
  parts: readonly (readonly number[])[],
): boolean {
  return digits.every((digit) => {
    const sum = parts.reduce(
      (total, values) => total + Math.max(0, ...values.map((value) => digitOf(digit, value))),
      0,
    );
    return sum < digit.radix;
  });
}

/** All values that an offset may add to the number of the first element. */
export function moveValues({ stride, divisor, count }: SharedMove): readonly number[] {
  return Array.from({ length: count }, (_, step) => step * divisor * stride);
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
