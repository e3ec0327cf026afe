/**
 * Indices while code is written: a register, a constant, or both, so that what is known now stays an
 * immediate; and what is known of them for every launch.
 *
 *   x.at(slice(i.mul(64).add(3), 61))     register %r4 (i · 64 + 3), divisor 1, least 3
 *     .at(slice(2, 8))                     register %r4, constant 2
 */
import type { Value } from "../../../ir/node.ts";
import { knownDivisor } from "../../../ir/size.ts";
import type { Size } from "../../../ir/size.ts";
import { greatestCommonDivisor } from "../../../layout/model/divisors.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { IndexValue, Position } from "../values.ts";
import { Ranges } from "./ranges.ts";

const known = new WeakMap<EmitContext, Ranges>();

/** What is known of the kernel's indices. */
export function rangesOf(context: EmitContext): Ranges {
  const found = known.get(context);
  if (found !== undefined) return found;
  const { kernel, windows } = context;
  const made = new Ranges(kernel, windows.definitions, windows.divisors);
  known.set(context, made);
  return made;
}

export function constantPosition(constant: number): Position {
  const divisor = Math.abs(constant);
  return { register: undefined, constant, divisor, least: constant, below: [constant + 1] };
}

export const zeroPosition: Position = Object.freeze(constantPosition(0));

/** An i32 scalar of the kernel as an index. */
export function positionOf(context: EmitContext, value: Value): Position {
  const constant = context.windows.divisors.constant(value) ?? context.scalar(value).constant;
  if (constant !== undefined) return constantPosition(constant);
  const { least, below } = rangesOf(context).of(value);
  const divisor = context.windows.divisors.of(value);
  return { register: context.scalar(value).register, constant: 0, divisor, least, below };
}

/** A size as an index; above what an index can be, no index reaches it. */
export function sizePosition(context: EmitContext, size: Size): Position {
  if (typeof size === "number") return constantPosition(size);
  const divisor = knownDivisor(size);
  return { register: context.size(size), constant: 0, divisor, least: 0, below: [] };
}

/** The sum of two indices. */
export function addIndex(context: EmitContext, left: IndexValue, right: IndexValue): IndexValue {
  const constant = left.constant + right.constant;
  if (left.register === undefined) return { register: right.register, constant };
  if (right.register === undefined) return { register: left.register, constant };
  const register = context.code.make("b32", "add.s32", left.register, right.register);
  return { register, constant };
}

/** The sum of two positions, with what is known of it. */
export function addPositions(context: EmitContext, left: Position, right: Position): Position {
  if (isZero(left)) return right;
  if (isZero(right)) return left;
  const { register, constant } = addIndex(context, left, right);
  const divisor = greatestCommonDivisor(left.divisor, right.divisor);
  const below = left.below.flatMap((bound) =>
    right.below.flatMap((other) =>
      typeof bound === "number" && typeof other === "number" ? [bound + other - 1] : [],
    ),
  );
  return { register, constant, divisor, least: left.least + right.least, below };
}

/** The product of a position and a positive constant. */
export function scalePosition(context: EmitContext, position: Position, factor: number): Position {
  if (factor === 1) return position;
  const { register, constant, divisor, least, below } = position;
  const { code } = context;
  return {
    register: register && code.make("b32", "mul.lo.s32", register, integer(factor)),
    constant: constant * factor,
    divisor: divisor * factor,
    least: least * factor,
    below: below.flatMap((bound) => (typeof bound === "number" ? [(bound - 1) * factor + 1] : [])),
  };
}

/** The quotient of a position by a positive constant that divides it, its constant as well. */
export function dividePosition(context: EmitContext, position: Position, by: number): Position {
  if (by === 1) return position;
  const { register, constant, divisor, least, below } = position;
  const { code } = context;
  return {
    register: register && code.make("b32", "div.s32", register, integer(by)),
    constant: constant / by,
    divisor: divisor / by,
    least: Math.ceil(least / by),
    below: below.flatMap((bound) => (typeof bound === "number" ? [Math.ceil(bound / by)] : [])),
  };
}

export function isZero({ register, constant }: IndexValue): boolean {
  return register === undefined && constant === 0;
}

/** The index as one i32 register. */
export function indexRegister({ code }: EmitContext, { register, constant }: IndexValue): Register {
  if (register === undefined) return code.constant("b32", constant);
  return constant === 0 ? register : code.make("b32", "add.s32", register, integer(constant));
}
