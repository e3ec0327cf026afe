/**
 * Functions of F8E8M0FNU, powers of two, on the exponents that are its codes: 2^(code - 127), and 255 is NaN.
 *
 *   2^3 · 2^-5             130 + 122 - 127 = 125, 2^-2
 *   2^100 · 2^100          beyond 254: NaN
 *   2^-100 · 2^-100        below 0: the least number, 2^-127
 *   √2^-3                  (124 + 127) >> 1 = 125, 2^-2: the nearest, as 2^-1.5 is below 1.5 · 2^-2
 *
 * NaN is the greatest code, so that the greater of two is right by itself.
 */
import { isScaleFunction } from "../../../formats/arithmetic/functions.ts";
import type {
  BinaryFunction,
  ClassifyFunction,
  ComparePredicate,
  ScaleFunction,
} from "../../../formats/arithmetic/functions.ts";
import type { Code } from "../../function-builder.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";

const bias = 127;
const nan = 255;

function isNan(code: Code, value: Register): Register {
  return code.make("pred", "setp.eq.u32", value, integer(nan));
}

function nanWhere(code: Code, condition: Register, otherwise: Register): Register {
  return code.make("b32", "selp.b32", integer(nan), otherwise, condition);
}

type Extreme = "min" | "max";

function extreme(code: Code, fn: Extreme, left: Register, right: Register): Register {
  return code.make("b32", `${fn}.u32`, left, right);
}

/** An exponent that may be out of range, of operands of which none is NaN. */
function bounded(code: Code, exponent: Register, left: Register, right: Register): Register {
  const most = code.make("b32", "min.s32", exponent, integer(nan));
  const result = code.make("b32", "max.s32", most, integer(0));
  return nanWhere(code, isNan(code, extreme(code, "max", left, right)), result);
}

type Binary = (code: Code, left: Register, right: Register) => Register;

const binaries: { readonly [F in Exclude<ScaleFunction, "sqrt">]: Binary } = {
  mul(code, left, right) {
    const sum = code.make("b32", "add.s32", left, right);
    return bounded(code, code.make("b32", "add.s32", sum, integer(-bias)), left, right);
  },
  div(code, left, right) {
    const difference = code.make("b32", "sub.s32", left, right);
    return bounded(code, code.make("b32", "add.s32", difference, integer(bias)), left, right);
  },
  min(code, left, right) {
    const greater = extreme(code, "max", left, right);
    return nanWhere(code, isNan(code, greater), extreme(code, "min", left, right));
  },
  max: (code, left, right) => extreme(code, "max", left, right),
  fmin: (code, left, right) => extreme(code, "min", left, right),
  fmax(code, left, right) {
    const [greater, lesser] = [
      extreme(code, "max", left, right),
      extreme(code, "min", left, right),
    ];
    return code.make("b32", "selp.b32", lesser, greater, isNan(code, greater));
  },
};

export function scaleBinary(
  code: Code,
  fn: BinaryFunction,
  left: Register,
  right: Register,
): Register {
  if (!isScaleFunction(fn)) throw new Error(`${fn} of powers of two`);
  return binaries[fn](code, left, right);
}

/** The square root, which is the one function of one scale. */
export function scaleRoot(code: Code, value: Register): Register {
  const sum = code.make("b32", "add.s32", value, integer(bias));
  const half = code.make("b32", "shr.u32", sum, integer(1));
  return nanWhere(code, isNan(code, value), half);
}

export function scaleClassify(code: Code, fn: ClassifyFunction, value: Register): Register {
  const found = isNan(code, value);
  return fn === "is_nan" ? found : code.make("pred", "not.pred", found);
}

/** The operand that is the greater one where the predicate holds, and so the only one that may be NaN. */
const greater: { readonly [P in ComparePredicate]: "left" | "right" } = {
  eq: "left",
  ne: "left",
  lt: "right",
  le: "right",
  gt: "left",
  ge: "left",
};

export function scaleCompare(
  code: Code,
  predicate: ComparePredicate,
  left: Register,
  right: Register,
): Register {
  const holds = code.make("pred", `setp.${predicate}.u32`, left, right);
  const unordered = isNan(code, greater[predicate] === "left" ? left : right);
  if (predicate === "ne") return code.make("pred", "or.pred", holds, unordered);
  const ordered = code.make("pred", "not.pred", unordered);
  return code.make("pred", "and.pred", holds, ordered);
}
