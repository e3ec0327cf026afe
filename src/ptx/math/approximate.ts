/**
 * The approximations that GPUs have, in f32, for those who ask for them. Subnormal operands count as zeros
 * and subnormal results are zeros (`.ftz`), which is what makes each a single instruction. Functions without one
 * are made of few: `logistic` of 4, `erf` of 14.
 */
import type { Code } from "../function-builder.ts";
import type { Register } from "../module.ts";
import { Arithmetic } from "./arithmetic.ts";

type Unary = (code: Code, x: Register) => Register;

/** The instruction by itself. */
function instruction(opcode: string): Unary {
  return (code, x) => code.make("b32", opcode, x);
}

const exp2 = instruction("ex2.approx.ftz.f32");
const log2 = instruction("lg2.approx.ftz.f32");

function exp(code: Code, x: Register): Register {
  return exp2(code, new Arithmetic(code, 32).mul(x, Math.LOG2E));
}

/** 2^… may be infinite, and its reciprocal is 0 then. */
function logistic(code: Code, x: Register): Register {
  const f = new Arithmetic(code, 32);
  const decay = exp2(code, f.mul(x, -Math.LOG2E));
  return f.make("rcp.approx.ftz", f.add(decay, 1));
}

/** Abramowitz and Stegun, 7.1.26: of 1/(1 + 0.3275911·|x|), from the first power on. */
const erfPowers = [0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429] as const;

/** 1 - P(t)·exp(-x²), with the sign of x put back: one reciprocal and one power of two. */
function erf(code: Code, x: Register): Register {
  const f = new Arithmetic(code, 32);
  const t = f.make("rcp.approx.ftz", f.fma(f.abs(x), 0.3275911, 1));
  const decay = exp2(code, f.mul(f.mul(x, x), -Math.LOG2E));
  const [first, ...rest] = erfPowers.toReversed();
  const sum = rest.reduce<Register | number>((inner, power) => f.fma(inner, t, power), first ?? 0);
  const near = f.mul(f.mul(sum, t), decay);
  return f.copySign(f.sub(1, near), x);
}

export const approximateUnary = {
  sqrt: instruction("sqrt.approx.ftz.f32"),
  rsqrt: instruction("rsqrt.approx.ftz.f32"),
  exp,
  exp2,
  log: (code: Code, x: Register) => new Arithmetic(code, 32).mul(log2(code, x), Math.LN2),
  log2,
  sin: instruction("sin.approx.ftz.f32"),
  cos: instruction("cos.approx.ftz.f32"),
  tanh: instruction("tanh.approx.f32"),
  erf,
  logistic,
} as const satisfies { readonly [fn: string]: Unary };

export const approximateBinary = {
  div: (code: Code, left: Register, right: Register) =>
    code.make("b32", "div.full.ftz.f32", left, right),
} as const;
