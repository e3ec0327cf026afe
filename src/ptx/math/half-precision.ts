/**
 * Functions whose results are rounded to bf16 or f16 at once: what the rounding hides need not be computed. Before it a result may be off by
 * an eighth of a unit in the last place of the format, 2^-11 of a number of bf16 and 2^-14 of one of f16, so that after it the error is at
 * most 0.63 units. Operands are numbers of the format, in f32.
 *
 *   exp       e(x) = 2^(x·log2 e), by the GPU's power       tanh    bf16: the GPU's own; f16: 1 - 2 / (1 + e(2|x|))
 *   log       ln 2·log2 x, by the GPU's logarithm           erf     x·P(x²), up to where it rounds to 1
 *   logistic  1 / (1 + e(-x))                               erfc    t·P(t)·e(-x²), t = 1 / (1 + p·|x|)
 *   sin       ±r·P(r²), x = k·π + r                         erf_inv x·P(log2(1 - x²))
 *
 * The GPU's approximations take subnormal numbers of f32 for zeros, as which bf16 has its own: there powers are squares of smaller ones,
 * and logarithms and roots the variants that keep them.
 */
import { namesOf } from "../../support/records.ts";
import type { Code } from "../function-builder.ts";
import type { Register } from "../module.ts";
import { Arithmetic } from "./arithmetic.ts";
import { farAngle, farFrom } from "./angle.ts";

export type HalfFormat = "bf16" | "f16";

type ByFormat<T> = { readonly [F in HalfFormat]: T };
type Unary = (f: Arithmetic, x: Register) => Register;

function approximate(f: Arithmetic, operation: "ex2" | "lg2" | "rcp" | "rsqrt", x: Register) {
  return f.make(`${operation}.approx.ftz`, x);
}

/* ---- powers and logarithms ---- */

/** 2^(scale·x), with subnormal results where the format has such of f32. */
function power(format: HalfFormat, scale: number): Unary {
  if (format === "f16") return (f, x) => approximate(f, "ex2", scale === 1 ? x : f.mul(x, scale));
  return (f, x) => {
    const root = approximate(f, "ex2", f.mul(x, scale / 2));
    return f.mul(root, root);
  };
}

/** Nearer to zero than this a series has fewer instructions than it takes to save what cancels. */
const near = 2 ** -6;

/** `far`, or `close` where |distance| is small. */
function nearZero(f: Arithmetic, distance: Register, close: Register, far: Register): Register {
  return f.select(f.compare("lt", f.abs(distance), near), close, far);
}

/** x·(1 + x/2), or e(x) - 1. */
const expm1: Unary = (f, x) => {
  const grown = approximate(f, "ex2", f.mul(x, Math.LOG2E));
  return nearZero(f, x, f.mul(f.fma(x, 0.5, 1), x), f.sub(grown, 1));
};

/** log(1 + r)·scale by its series. */
function logSeries(f: Arithmetic, r: Register, scale: number): Register {
  return f.mul(f.polynomial(r, [scale, -scale / 2, scale / 3]), r);
}

/** Numbers of bf16 are either 1 or so far from it that nothing is lost; those of f16 are no subnormal numbers of f32. */
function logarithm(operand: HalfFormat | "f32", scale: number): Unary {
  const instruction = operand === "f16" ? "lg2.approx.ftz" : "lg2.approx";
  const far: Unary = (f, x) => {
    const value = f.make(instruction, x);
    return scale === 1 ? value : f.mul(value, scale);
  };
  if (operand === "bf16") return far;
  return (f, x) => {
    const r = f.sub(x, 1);
    return nearZero(f, r, logSeries(f, r, scale * Math.LOG2E), far(f, x));
  };
}

const log1p: Unary = (f, x) => {
  const far = f.mul(approximate(f, "lg2", f.add(x, 1)), Math.LN2);
  return nearZero(f, x, logSeries(f, x, 1), far);
};

/** Of bf16 with the power 2^24 smaller: its reciprocal is no subnormal number while the result is one. */
function logistic(format: HalfFormat): Unary {
  if (format === "f16")
    return (f, x) => approximate(f, "rcp", f.add(approximate(f, "ex2", f.mul(x, -Math.LOG2E)), 1));
  return (f, x) => {
    const decay = approximate(f, "ex2", f.fma(x, -Math.LOG2E, -24));
    return f.mul(approximate(f, "rcp", f.add(decay, 2 ** -24)), 2 ** -24);
  };
}

/* ---- tanh and error functions ---- */

/** tanh r = r·(c0 + c1·r² + …), |r| ≤ 0.4. 2^-17.2. */
const tanhCurve = [0.9999938011169434, -0.3326263725757599, 0.12127982825040817];
const tanhCurveEnd = 0.4;

function tanh(format: HalfFormat): Unary {
  if (format === "bf16") return (f, x) => f.make("tanh.approx", x);
  return (f, x) => {
    const size = f.abs(x);
    const close = f.mul(f.polynomial(f.mul(x, x), tanhCurve), x);
    const divisor = f.add(approximate(f, "ex2", f.mul(size, 2 * Math.LOG2E)), 1);
    const far = f.copySign(f.fma(approximate(f, "rcp", divisor), -2, 1), x);
    return f.select(f.compare("lt", size, tanhCurveEnd), close, far);
  };
}

/** erf x = x·(c0 + c1·x² + …), up to where it rounds to 1. 2^-12.3, 2^-15.0. */
const erfCurves: ByFormat<{ readonly end: number; readonly curve: readonly number[] }> = {
  bf16: {
    end: 2.25,
    curve: [
      1.128156304359436, -0.3731898069381714, 0.1060379147529602, -0.02067304216325283,
      0.002392050577327609, -0.00012081976456101984,
    ],
  },
  f16: {
    end: 2.65,
    curve: [
      1.1283472776412964, -0.37559375166893005, 0.11128446459770203, -0.025049526244401932,
      0.004119744524359703, -0.0004595563223119825, 3.049434417334851e-5, -8.956745318755566e-7,
    ],
  },
};

function erf(format: HalfFormat): Unary {
  const { end, curve } = erfCurves[format];
  return (f, x) => {
    const bounded = f.clamp(x, -end, end);
    return f.mul(f.polynomial(f.mul(bounded, bounded), curve), bounded);
  };
}

interface ErfcCurve {
  readonly slope: number;
  readonly curve: readonly number[];
}

/** e^(z²)·erfc z = t·(c0 + c1·t + …), t = 1 / (1 + slope·z), up to where erfc rounds to 0. 2^-11.9, 2^-16.6; of f32 for f16 2^-16.8. */
const erfcCurves: { readonly [name in HalfFormat | "f32"]: ErfcCurve } = {
  bf16: {
    slope: 0.7,
    curve: [0.3979460299015045, 0.352422297000885, 0.49618634581565857, -0.24654436111450195],
  },
  f16: {
    slope: 0.5,
    curve: [
      0.27722781896591187, 0.33121606707572937, 0.05486293509602547, 0.531058669090271,
      -0.19435590505599976,
    ],
  },
  f32: {
    slope: 0.65,
    curve: [
      0.3663804531097412, 0.3739551305770874, 0.2314549684524536, 0.35727182030677795,
      -0.47330474853515625, 0.1442507952451706,
    ],
  },
};

function erfc({ slope, curve }: ErfcCurve, decay: Unary): Unary {
  return (f, x) => {
    const t = approximate(f, "rcp", f.fma(f.abs(x), slope, 1));
    const upper = f.mul(f.mul(f.polynomial(t, curve), t), decay(f, f.mul(x, x)));
    return f.select(f.compare("lt", x, 0), f.sub(2, upper), upper);
  };
}

/** erf_inv x = x·(c0 + c1·l + …), l = log2(1 - x²): infinite at 1, as the last term is positive there. 2^-15.5, 2^-19.2. */
const erfInvCurves: ByFormat<readonly number[]> = {
  bf16: [
    0.8862459063529968, -0.1605944186449051, 0.005959583446383476, 0.0010411710245534778,
    4.276748586562462e-5,
  ],
  f16: [
    0.8862282633781433, -0.1608070284128189, 0.0055629718117415905, 0.0007744301110506058,
    -3.948247103835456e-5, -1.2447837434592657e-5, -8.76326055276877e-7, -2.171188562272164e-8,
  ],
};

function erfInv(format: HalfFormat): Unary {
  return (f, x) => {
    const logarithmOfRest = approximate(f, "lg2", f.fma(f.neg(x), x, 1));
    return f.mul(f.polynomial(logarithmOfRest, erfInvCurves[format]), x);
  };
}

/* ---- sine and cosine ---- */

/** sin r = r·(c0 + c1·r² + …), |r| ≤ π/2. 2^-13.2, 2^-20.0. */
const sinCurves: ByFormat<readonly number[]> = {
  bf16: [0.9998918175697327, -0.16596011817455292, 0.007602903060615063],
  f16: [0.9999990463256836, -0.1666555404663086, 0.00831189751625061, -0.00018488059868104756],
};

/** -π as the sum of two floats of one sign, so that an x of -0 stays. */
const minusPi = [-3.141592502593994, -1.5099580252808664e-7] as const;

/** x = k·π + r, of which the low bits of `halves` are k; for cosines k is a whole number and a half. */
interface HalfTurns {
  readonly halves: Register;
  readonly rest: Register;
}

function nearHalfTurns(f: Arithmetic, x: Register, isCosine: boolean): HalfTurns {
  const { rounder } = f.format;
  const [high, low] = minusPi;
  const shifted = isCosine
    ? f.add(f.fma(x, 1 / Math.PI, -0.5), rounder)
    : f.fma(x, 1 / Math.PI, rounder);
  const whole = f.sub(shifted, rounder);
  const k = isCosine ? f.add(whole, 0.5) : whole;
  return { halves: f.lowWord(shifted), rest: f.fma(k, low, f.fma(k, high, x)) };
}

/** The same of an angle that is n quarters and a rest: those of the other parity become the nearer half turn. */
function farHalfTurns(f: Arithmetic, x: Register, isCosine: boolean): HalfTurns {
  const { quarters, rest } = farAngle(f, x);
  const isOther = f.testIntegers(
    isCosine ? "setp.eq.s32" : "setp.ne.s32",
    f.integers("and.b32", quarters, 1),
    0,
  );
  const isBefore = f.compare("lt", rest, 0);
  const step = f.selectWords(isBefore, -1, 1);
  const moved = f.integers("add.s32", quarters, step);
  const nearest = f.code.make("b32", "selp.b32", moved, quarters, isOther);
  const opposite = f.select(isBefore, Math.PI / 2, -Math.PI / 2);
  return {
    // Of cosines n is odd, and the shift rounds down.
    halves: f.integers("shr.s32", nearest, 1),
    rest: f.select(isOther, f.add(rest, opposite), rest),
  };
}

/** No number of f16 is far; of bf16 those that are take a branch. */
function halfTurns(format: HalfFormat, f: Arithmetic, x: Register, isCosine: boolean): HalfTurns {
  const close = nearHalfTurns(f, x, isCosine);
  if (format === "f16") return close;
  const { code } = f;
  const [halves, rest] = [code.register("b32"), code.register("b32")];
  code.emit("mov.b32", [halves, close.halves]);
  code.emit("mov.b32", [rest, close.rest]);
  const done = code.label("angle");
  code.jumpIf(f.compare("gt", f.abs(x), farFrom[32]), done, { negated: true, uniform: false });
  const far = farHalfTurns(f, x, isCosine);
  code.emit("mov.b32", [halves, far.halves]);
  code.emit("mov.b32", [rest, far.rest]);
  code.place(done);
  return { halves, rest };
}

/** cos((k + 1/2)·π + r) is -sin r for even k. */
function sine(format: HalfFormat, isCosine: boolean): Unary {
  const curve = sinCurves[format].map((each) => (isCosine ? -each : each));
  return (f, x) => {
    const { halves, rest } = halfTurns(format, f, x, isCosine);
    const value = f.mul(f.polynomial(f.mul(rest, rest), curve), rest);
    return f.integers("xor.b32", value, f.integers("shl.b32", halves, 31));
  };
}

function formsOf(format: HalfFormat) {
  return {
    exp: power(format, Math.LOG2E),
    exp2: power(format, 1),
    expm1,
    log: logarithm(format, Math.LN2),
    log2: logarithm(format, 1),
    log1p,
    rsqrt: (f, x) => (format === "f16" ? approximate(f, "rsqrt", x) : f.make("rsqrt.approx", x)),
    sin: sine(format, false),
    cos: sine(format, true),
    tanh: tanh(format),
    erf: erf(format),
    erf_inv: erfInv(format),
    erfc: erfc(erfcCurves[format], power(format, -Math.LOG2E)),
    logistic: logistic(format),
  } as const satisfies { readonly [fn: string]: Unary };
}

const forms: ByFormat<ReturnType<typeof formsOf>> = {
  bf16: formsOf("bf16"),
  f16: formsOf("f16"),
};

/**
 * The same of any number of f32, as exact, over the exponents of f32. Not among them are sines, whose angles f32 has nearer to multiples of π, the inverse of erf, which f32 has nearer to 1, and erf, which is
 * near 1 only to the rounding.
 */
function singleFormsOf(format: HalfFormat) {
  const accurate = format === "f16" ? erfcCurves.f32 : erfcCurves.bf16;
  return {
    exp: power("bf16", Math.LOG2E),
    exp2: power("bf16", 1),
    expm1,
    log: logarithm("f32", Math.LN2),
    log2: logarithm("f32", 1),
    log1p,
    tanh: tanh(format),
    erfc: erfc(accurate, power("bf16", -Math.LOG2E)),
    logistic: logistic("bf16"),
  } as const satisfies { readonly [fn: string]: Unary };
}

const singleForms: ByFormat<ReturnType<typeof singleFormsOf>> = {
  bf16: singleFormsOf("bf16"),
  f16: singleFormsOf("f16"),
};

/** The functions that have a form of their own here: of numbers of a format, and of those of f32 that are rounded to it. */
export type HalfFunction = keyof ReturnType<typeof formsOf>;
export type SingleFunction = keyof ReturnType<typeof singleFormsOf>;
export const halfFunctions: readonly HalfFunction[] = namesOf(forms.bf16);
export const singleFunctions: readonly SingleFunction[] = namesOf(singleForms.bf16);

export function isHalfFunction(fn: string): fn is HalfFunction {
  return Object.hasOwn(forms.bf16, fn);
}

export function isSingleFunction(fn: string): fn is SingleFunction {
  return Object.hasOwn(singleForms.bf16, fn);
}

/** The function of a number of the format, in f32, to be rounded to the format. */
export function halfFunction(
  code: Code,
  format: HalfFormat,
  fn: HalfFunction,
  x: Register,
): Register {
  return forms[format][fn](new Arithmetic(code, 32), x);
}

/** The function of a number of f32, as exact as results that are rounded to the format show. */
export function singleFunction(
  code: Code,
  format: HalfFormat,
  fn: SingleFunction,
  x: Register,
): Register {
  return singleForms[format][fn](new Arithmetic(code, 32), x);
}
