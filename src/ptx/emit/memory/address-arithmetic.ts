/**
 * 64-bit sums of products of an index and a stride: addresses in global memory. What is known now is
 * added up in a constant, which ends as the immediate offset of an instruction.
 *
 *   | stride    | index          | instruction                                      |
 *   |-----------|----------------|--------------------------------------------------|
 *   | 512       | 3              | none: the constant grows                         |
 *   | 512       | register       | mad.wide.s32 sum, index, 512 · bytes, sum        |
 *   | n         | 3              | mad.wide.s32 sum, n, 3 · bytes, sum              |
 *   | n         | small register | mad.wide.s32 sum, n, index · bytes, sum          |
 *   | n         | register       | mad.lo.s64 sum, index, n · bytes, sum            |
 */
import { multiplySizes } from "../../../ir/size.ts";
import type { Size } from "../../../ir/size.ts";
import { TilewrightError } from "../../../support/diagnostics.ts";
import type { Location } from "../../../support/location.ts";
import type { AddressOperand, Operand, Register } from "../../module.ts";
import { address, integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { IndexValue } from "../values.ts";
import { indexRegister } from "./positions.ts";

export interface WideSum {
  /** b64; undefined for zero. */
  readonly register: Register | undefined;
  readonly constant: number;
}

const wide = 2 ** 31;

/** A stride as a constant times a dimension, which is less than 2³¹; undefined for sums and products of several. */
function singleFactor(
  stride: Size,
): { readonly constant: number; readonly size: Size } | undefined {
  if (typeof stride === "number" || stride.kind === "sum") return undefined;
  if (stride.kind !== "product") return { constant: 1, size: stride };
  const [factor, ...others] = stride.factors;
  if (factor === undefined || others.length > 0) return undefined;
  return { constant: stride.coefficient, size: factor };
}

/** The sum with `index * stride * scale` added; `most` bounds the index where that is known. */
export function addProduct(
  context: EmitContext,
  sum: WideSum,
  index: IndexValue,
  stride: Size,
  scale: number,
  most = Infinity,
): WideSum {
  if (typeof stride === "number") return addFixed(context, sum, index, stride * scale);
  const { register, constant } = index;
  const factor = singleFactor(stride);
  if (register === undefined) {
    if (constant === 0) return sum;
    const scaled = constant * scale * (factor?.constant ?? 1);
    if (factor !== undefined && Math.abs(scaled) < wide)
      return addWide(context, sum, context.size(factor.size), integer(scaled));
  } else if (factor !== undefined && most * scale * factor.constant < wide) {
    const { code } = context;
    const own = indexRegister(context, index);
    const by = scale * factor.constant;
    const scaled = by === 1 ? own : code.make("b32", "mul.lo.s32", own, integer(by));
    return addWide(context, sum, context.size(factor.size), scaled);
  }
  return addLong(context, sum, index, context.size(multiplySizes(stride, scale), 64));
}

/** The sum with a picked index, of 32 or 64 bits, times a stride. */
export function addGathered(
  context: EmitContext,
  sum: WideSum,
  index: Register,
  stride: Size,
  scale: number,
): WideSum {
  if (index.type !== "b64")
    return addProduct(context, sum, { register: index, constant: 0 }, stride, scale);
  const by =
    typeof stride === "number"
      ? integer(stride * scale)
      : context.size(multiplySizes(stride, scale), 64);
  return multiplied(context, sum, index, by);
}

/** Whether an axis has fewer than 2³¹ elements whatever the launch. */
export function isShort(size: Size): boolean {
  return typeof size === "number" ? size < wide : size.kind === "dimension";
}

/**
 * Refuses an axis of 2³¹ elements or more where places are reckoned in 32 bits: now, or where only the launch knows, by the
 * parameter that it fills in.
 */
export function requireShort(context: EmitContext, size: Size, location: Location): void {
  if (isShort(size)) return;
  if (typeof size !== "number") {
    context.size(size);
    return;
  }
  throw new TilewrightError({
    code: "TW7004",
    message: `an axis of ${size} elements is reached through a view that does not lie evenly`,
    location,
    expected: "fewer than 2^31 elements",
    found: String(size),
  });
}

function addFixed(
  context: EmitContext,
  { register, constant }: WideSum,
  index: IndexValue,
  stride: number,
): WideSum {
  const sum = { register, constant: constant + index.constant * stride };
  if (index.register === undefined || stride === 0) return sum;
  if (stride < wide) return addWide(context, sum, index.register, integer(stride));
  return addLong(context, sum, { ...index, constant: 0 }, integer(stride));
}

function addWide({ code }: EmitContext, sum: WideSum, left: Register, right: Operand): WideSum {
  const register =
    sum.register === undefined
      ? code.make("b64", "mul.wide.s32", left, right)
      : code.make("b64", "mad.wide.s32", left, right, sum.register);
  return { register, constant: sum.constant };
}

function addLong(context: EmitContext, sum: WideSum, index: IndexValue, stride: Operand): WideSum {
  const own = context.code.make("b64", "cvt.s64.s32", indexRegister(context, index));
  return multiplied(context, sum, own, stride);
}

function multiplied({ code }: EmitContext, sum: WideSum, own: Register, stride: Operand): WideSum {
  const register =
    sum.register === undefined
      ? code.make("b64", "mul.lo.s64", own, stride)
      : code.make("b64", "mad.lo.s64", own, stride, sum.register);
  return { register, constant: sum.constant };
}

/** Offsets of instructions have 32 bits; what is more goes into the register. */
export function wideAddress(context: EmitContext, sum: WideSum): AddressOperand {
  const { register, constant } = sum;
  return register !== undefined && Math.abs(constant) < wide
    ? address(register, constant)
    : address(wideRegister(context, sum));
}

/** The sum as one register. */
export function wideRegister({ code }: EmitContext, { register, constant }: WideSum): Register {
  if (register === undefined) return code.constant("b64", constant);
  return constant === 0 ? register : code.make("b64", "add.s64", register, integer(constant));
}
