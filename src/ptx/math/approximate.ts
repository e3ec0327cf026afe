/**
 * The approximations that GPUs have, in f32, for those who ask for them. Subnormal operands count as zeros
 * and subnormal results are zeros (`.ftz`), which is what makes each a single instruction.
 */
import type { Code } from "../code.ts";
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
  logistic,
} as const satisfies { readonly [fn: string]: Unary };

export const approximateBinary = {
  div: (code: Code, left: Register, right: Register) =>
    code.make("b32", "div.full.ftz.f32", left, right),
} as const;
