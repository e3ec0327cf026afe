/**
 * Indices while code is written: a register, a constant, or both, so that what is known now stays an
 * immediate; and what is known of them for every launch.
 *
 *   x.at(slice(i.mul(64).add(3), 61))     register %r4 (i · 64 + 3), 3 mod 64
 *     .at(slice(2, 8))                     register %r4, constant 2, 5 mod 64
 */
import { exactly, sumOfIndices } from "../../../ir/range-analysis/index.ts";
import type { Value } from "../../../ir/node.ts";
import type { Size } from "../../../ir/size.ts";
import { isZero } from "../../../layout/access/window.ts";
import type { IndexSums } from "../../../layout/access/window.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { IndexValue, Position } from "../values.ts";

export function constantPosition(constant: number): Position {
  return { register: undefined, constant, fact: exactly(BigInt(constant)) };
}

export const zeroPosition: Position = Object.freeze(constantPosition(0));

/** An i32 scalar of the kernel as an index. */
export function positionOf(context: EmitContext, value: Value): Position {
  const fact = context.windows.facts.of(value);
  const constant = context.windows.facts.constant(value);
  if (constant !== undefined) return constantPosition(constant);
  return { register: context.scalar(value).register, constant: 0, fact };
}

/** A size as an index. */
export function sizeIndex(context: EmitContext, size: Size): IndexValue {
  if (typeof size === "number") return { register: undefined, constant: size };
  return { register: context.size(size), constant: 0 };
}

/** The sum of two indices, which wraps around as i32 does. */
export function addIndex(context: EmitContext, left: IndexValue, right: IndexValue): IndexValue {
  const constant = (left.constant + right.constant) | 0;
  if (left.register === undefined) return { register: right.register, constant };
  if (right.register === undefined) return { register: left.register, constant };
  const register = context.code.make("b32", "add.s32", left.register, right.register);
  return { register, constant };
}

/** Sums of positions, with what is known of them. */
export function positionSums(context: EmitContext): IndexSums<Position> {
  return {
    zero: zeroPosition,
    add: (left, right) => {
      if (isZero(left)) return right;
      if (isZero(right)) return left;
      return { ...addIndex(context, left, right), fact: sumOfIndices(left.fact, right.fact) };
    },
  };
}

/** The index as one i32 register. */
export function indexRegister({ code }: EmitContext, { register, constant }: IndexValue): Register {
  if (register === undefined) return code.constant("b32", constant);
  return constant === 0 ? register : code.make("b32", "add.s32", register, integer(constant));
}
