/** Ops of IR that ask for an approximation, a rounding or another form that their function has not. */
import { dtypes } from "../../src/formats/dtype.ts";
import { infer, scalar, tile } from "../ir-fixtures.ts";
import type { Mistake } from "../ir-fixtures.ts";

const { bf16, f32, f64 } = dtypes;
const row = tile(f32, 64);
const half = tile(bf16, 64);

export const mannerMistakes: readonly Mistake[] = [
  {
    name: "an approximate tangent",
    code: "TW2015",
    make: () => infer("unary", { source: row }, { fn: "tan", approximate: true }),
    message: "tan has no approximate form for f32",
    found: "tan of f32",
    remedy: "leave the option out",
  },
  {
    name: "an approximate exponential of f64",
    code: "TW2015",
    make: () => infer("unary", { source: scalar(f64) }, { fn: "exp", approximate: true }),
    message: "exp has no approximate form for f64",
    expected:
      "one of sqrt, rsqrt, exp, exp2, log, log2, sin, cos, tanh, erf, logistic, div; in f32, tf32, f16 or bf16",
  },
  {
    name: "an approximate product",
    code: "TW2015",
    make: () => infer("binary", { left: row, right: row }, { fn: "mul", approximate: true }),
    message: "mul has no approximate form for f32",
  },
  {
    name: "factors of bf16 that are often one",
    code: "TW2017",
    make: () => infer("binary", { left: half, right: half }, { fn: "mul", oftenOne: true }),
    message: "mul of bf16 has no form for factors that are often one",
    expected: "mul of f32",
    found: "mul of bf16",
  },
  {
    name: "a sum with what is often one",
    code: "TW2017",
    make: () => infer("binary", { left: row, right: row }, { fn: "add", oftenOne: true }),
    message: "add of f32 has no form for factors that are often one",
  },
  {
    name: "a product with what is often one, rounded up",
    code: "TW2017",
    make: () =>
      infer("binary", { left: row, right: row }, { fn: "mul", oftenOne: true, rounding: "up" }),
    message: "mul of f32 has no form for factors that are often one",
  },
  {
    name: "a remainder that is rounded",
    code: "TW2018",
    make: () => infer("binary", { left: row, right: row }, { fn: "rem", rounding: "zero" }),
    message: 'rem of f32 has no rounding "zero"',
    expected: "one of add, sub, mul, div, sqrt, fma; in f32 or f64",
  },
  {
    name: "a sum of bf16 that flushes",
    code: "TW2018",
    make: () => infer("binary", { left: half, right: half }, { fn: "add", flushToZero: true }),
    message: "add of bf16 does not flush subnormal numbers",
    expected: "one of add, sub, mul, div, sqrt, fma in f32; one of add, sub, mul, fma in f16",
  },
  {
    name: "an fma of f64 that flushes",
    code: "TW2018",
    make: () =>
      infer("fma", { a: scalar(f64), b: scalar(f64), c: scalar(f64) }, { flushToZero: true }),
    message: "fma of f64 does not flush subnormal numbers",
    remedy: "leave flushToZero out, or compute in f32",
  },
  {
    name: "an approximation that is rounded",
    code: "TW2018",
    make: () =>
      infer("unary", { source: row }, { fn: "sqrt", approximate: true, rounding: "down" }),
    message: "an approximation is not rounded as asked",
    found: "both",
  },
];
