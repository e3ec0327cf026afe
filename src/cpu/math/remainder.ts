/**
 * The exact remainder, C's fmod, in vectors of f64. While a lane's remainder a is not below the divisor b, a multiple of b is
 * taken away that leaves no rounding:
 *
 *   of f32    q·b·2^s, where the quotient q has 28 bits and b has 24: the product is exact
 *   of f64    b·2^s, the greatest up to a: both are within a factor of two
 *
 * Lanes that are done stand still. A usual remainder of f32 takes one round, the longest ten; of f64 a bit of the quotient each.
 */
import { op, read } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import type { VectorArithmetic } from "./vector-arithmetic.ts";

export function remainder(f: VectorArithmetic, x: Expression, y: Expression): Expression {
  const { builder } = f;
  const dividend = f.abs(x);
  const finite = f.compareAnd("lt", dividend, Infinity, f.compare("gt", f.abs(y), 0));
  // An infinite divisor leaves the dividend; NaN is no number that could be reduced.
  const reducible = f.compareAnd("lt", f.abs(y), Infinity, finite);
  const a = builder.variable(f.select(reducible, dividend, 0), "a");
  const b = f.select(reducible, f.abs(y), 1);
  const exponentOfB = exponentOf(f, b);
  builder.whileLoop(
    () => op("v128.any_true", f.compare("ge", read(a), b)),
    () => {
      const difference = f.sub(exponentOf(f, read(a)), exponentOfB);
      const next =
        f.precision === 32
          ? reduceByQuotient(f, read(a), b, difference)
          : reduceByBit(f, read(a), b, difference);
      builder.set(a, next);
    },
  );
  const known = f.select(reducible, read(a), f.select(finite, dividend, NaN));
  return f.select(f.compare("nan", x, y), NaN, f.copySign(known, x));
}

/** Of numbers from 0 on; of 0 one that is below all others. */
function exponentOf(f: VectorArithmetic, value: Expression): Expression {
  const { place, bias, fraction } = f.format;
  const up = fraction + 2;
  const isSubnormal = f.compare("lt", value, 2 ** (1 - bias));
  const normal = f.select(isSubnormal, f.mul(value, 2 ** up), value);
  const exponent = f.floatOfWord(f.words("shr", f.highWord(normal), place));
  return f.sub(exponent, f.select(isSubnormal, up, 0));
}

/** 2^n of whole numbers from -1000 to 1000. */
function powerOfTwo(f: VectorArithmetic, n: Expression): Expression {
  const { rounder, bias, place } = f.format;
  return f.withHighWord(f.words("shl", f.lowWord(f.add(f.add(n, bias), rounder)), place));
}

function reduceByQuotient(
  f: VectorArithmetic,
  a: Expression,
  b: Expression,
  difference: Expression,
): Expression {
  const multiple = f.mul(b, powerOfTwo(f, f.clamp(f.sub(difference, 27), 0, undefined)));
  const quotient = f.truncate(f.div(a, multiple));
  const rest = f.sub(a, f.mul(quotient, multiple));
  // The quotient may have been rounded up to a whole number.
  return f.add(rest, f.select(f.compare("lt", rest, 0), multiple, 0));
}

function reduceByBit(
  f: VectorArithmetic,
  a: Expression,
  b: Expression,
  difference: Expression,
): Expression {
  const limit = 1000;
  let shift = f.clamp(difference, 0, undefined);
  let multiple = b;
  // Up to 2,098 in steps that are powers of two themselves.
  for (let step = 0; step < 3; step++) {
    const part = f.clamp(shift, undefined, limit);
    multiple = f.mul(multiple, powerOfTwo(f, part));
    shift = f.sub(shift, part);
  }
  const isAbove = f.compare("gt", multiple, a);
  const fitting = f.mul(multiple, f.select(isAbove, 0.5, 1));
  return f.select(f.compare("ge", a, b), f.sub(a, fitting), a);
}
