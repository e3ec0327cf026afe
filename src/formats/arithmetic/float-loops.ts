/**
 * Float functions as loops over the float registers: f64 numbers in, f64 numbers out, and the store
 * rounds them to the format.
 *
 * Rounding twice, to f64 here and to p ≤ 24 bits at the store, gives what rounding once would give.
 * It could only differ where the exact result is no midpoint of the format but its f64 is one; and a
 * midpoint m has at most p + 1 bits, also among the subnormals, where it has fewer:
 *
 *   add, sub   either exact in 53 bits, or the smaller operand is below 2^-28 of the larger, which is a
 *              number of the format: then the result is nowhere near half a unit away from it
 *   mul        exact: 48 bits
 *   div        x/y ≠ m means |x - m·y| is at least one unit of m·y's 2p + 1 bits: a relative distance
 *              of 2^-49 or more, where the f64 is within 2^-53
 *   sqrt       √x ≠ m since m² has more than p bits, and |x - m²| is at least one unit of its 2p + 2
 *              bits: a relative distance of 2^-51 or more
 *   rem        the result of fmod is a number of the format, and JavaScript's % is fmod
 *
 * The transcendental functions are within about one unit in the last place of f64; `special.ts` says
 * what that leaves of correct rounding.
 */
import type { BinaryIn, ClassifyFunction, UnaryIn } from "./functions.ts";
import { flagRegister, floatRegisters, registerElements } from "./registers.ts";
import {
  complementaryErrorFunction,
  errorFunction,
  exponential2,
  inverseErrorFunction,
  logistic,
  power,
  roundHalfEven,
} from "./special.ts";

const elements = floatRegisters;
const flags = flagRegister;
const second = registerElements;

/** A loop over the first `count` elements of the registers; the result replaces the first operand. */
export type FloatLoop = (count: number) => void;

/** A loop over a function that takes so long that the call does not show. */
function each(fn: (value: number) => number): FloatLoop {
  return (count) => {
    for (let i = 0; i < count; i++) elements[i] = fn(elements[i] as number);
  };
}

/** Of a number and NaN the number. */
function passingNan(fn: (left: number, right: number) => number): FloatLoop {
  return (count) => {
    for (let i = 0; i < count; i++) {
      const left = elements[i] as number;
      const right = elements[second + i] as number;
      elements[i] = left !== left ? right : right !== right ? left : fn(left, right);
    }
  };
}

/** Negation and magnitude act on bits, NaN included, and are not here. */
export type FloatUnaryFunction = Exclude<UnaryIn<"float" | "number">, "neg" | "abs">;

export const floatUnaryLoops: { readonly [F in FloatUnaryFunction]: FloatLoop } = {
  sign(count) {
    for (let i = 0; i < count; i++) elements[i] = Math.sign(elements[i] as number);
  },
  floor(count) {
    for (let i = 0; i < count; i++) elements[i] = Math.floor(elements[i] as number);
  },
  ceil(count) {
    for (let i = 0; i < count; i++) elements[i] = Math.ceil(elements[i] as number);
  },
  round(count) {
    for (let i = 0; i < count; i++) elements[i] = roundHalfEven(elements[i] as number);
  },
  trunc(count) {
    for (let i = 0; i < count; i++) elements[i] = Math.trunc(elements[i] as number);
  },
  sqrt(count) {
    for (let i = 0; i < count; i++) elements[i] = Math.sqrt(elements[i] as number);
  },
  rsqrt(count) {
    for (let i = 0; i < count; i++) elements[i] = 1 / Math.sqrt(elements[i] as number);
  },
  exp(count) {
    for (let i = 0; i < count; i++) elements[i] = Math.exp(elements[i] as number);
  },
  exp2(count) {
    for (let i = 0; i < count; i++) elements[i] = exponential2(elements[i] as number);
  },
  expm1: each(Math.expm1),
  log(count) {
    for (let i = 0; i < count; i++) elements[i] = Math.log(elements[i] as number);
  },
  log2(count) {
    for (let i = 0; i < count; i++) elements[i] = Math.log2(elements[i] as number);
  },
  log1p: each(Math.log1p),
  sin(count) {
    for (let i = 0; i < count; i++) elements[i] = Math.sin(elements[i] as number);
  },
  cos(count) {
    for (let i = 0; i < count; i++) elements[i] = Math.cos(elements[i] as number);
  },
  tan: each(Math.tan),
  atan: each(Math.atan),
  asin: each(Math.asin),
  acos: each(Math.acos),
  tanh(count) {
    for (let i = 0; i < count; i++) elements[i] = Math.tanh(elements[i] as number);
  },
  sinh: each(Math.sinh),
  cosh: each(Math.cosh),
  asinh: each(Math.asinh),
  acosh: each(Math.acosh),
  atanh: each(Math.atanh),
  cbrt: each(Math.cbrt),
  erf: each(errorFunction),
  erf_inv: each(inverseErrorFunction),
  erfc: each(complementaryErrorFunction),
  logistic: each(logistic),
};

export type FloatBinaryFunction = BinaryIn<"float" | "number">;

export const floatBinaryLoops: { readonly [F in FloatBinaryFunction]: FloatLoop } = {
  add(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = (elements[i] as number) + (elements[second + i] as number);
    }
  },
  sub(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = (elements[i] as number) - (elements[second + i] as number);
    }
  },
  mul(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = (elements[i] as number) * (elements[second + i] as number);
    }
  },
  div(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = (elements[i] as number) / (elements[second + i] as number);
    }
  },
  rem(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = (elements[i] as number) % (elements[second + i] as number);
    }
  },
  min(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = Math.min(elements[i] as number, elements[second + i] as number);
    }
  },
  max(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = Math.max(elements[i] as number, elements[second + i] as number);
    }
  },
  fmin: passingNan(Math.min),
  fmax: passingNan(Math.max),
  pow(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = power(elements[i] as number, elements[second + i] as number);
    }
  },
  atan2(count) {
    for (let i = 0; i < count; i++) {
      elements[i] = Math.atan2(elements[i] as number, elements[second + i] as number);
    }
  },
};

/** Results go to the flag register. */
export const classifyLoops: { readonly [F in ClassifyFunction]: FloatLoop } = {
  is_nan(count) {
    for (let i = 0; i < count; i++) flags[i] = Number(elements[i] !== elements[i]);
  },
  is_finite(count) {
    // Infinite numbers and NaN alone give NaN.
    for (let i = 0; i < count; i++) flags[i] = Number((elements[i] as number) * 0 === 0);
  },
};

/** The predicates that loops exist for: `gt` and `ge` are these with the operands exchanged. */
export type LoopPredicate = "eq" | "ne" | "lt" | "le";

export const floatCompareLoops: { readonly [P in LoopPredicate]: FloatLoop } = {
  eq(count) {
    for (let i = 0; i < count; i++) flags[i] = Number(elements[i] === elements[second + i]);
  },
  ne(count) {
    for (let i = 0; i < count; i++) flags[i] = Number(elements[i] !== elements[second + i]);
  },
  lt(count) {
    for (let i = 0; i < count; i++) {
      flags[i] = Number((elements[i] as number) < (elements[second + i] as number));
    }
  },
  le(count) {
    for (let i = 0; i < count; i++) {
      flags[i] = Number((elements[i] as number) <= (elements[second + i] as number));
    }
  },
};
