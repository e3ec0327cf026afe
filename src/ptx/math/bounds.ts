/**
 * How far results are from the exact ones, at most: what the tests measure against, and the table in
 * docs/arithmetic.md. The bounds of f32 with one operand hold for every operand; those of two operands and
 * of f64 are above the largest error found among many millions. Approximations have the bounds of the PTX
 * manual.
 */
import type { ApproximateFunction } from "../../formats/arithmetic/functions.ts";
import { markdownTable } from "../../support/markdown.ts";

export interface ErrorBound {
  /** In units in the last place of the exact result; at least that of the least subnormal number. */
  readonly ulp: number;
  readonly note: string;
}

export interface ApproximateBound {
  readonly error: number;
  readonly of: "relative" | "absolute";
  readonly note: string;
}

const plain = (ulp: number): ErrorBound => ({ ulp, note: "" });

const f32 = {
  rsqrt: { ulp: 0.501, note: "" },
  exp: plain(1),
  exp2: plain(1),
  expm1: plain(2),
  log: plain(1),
  log2: plain(1),
  log1p: plain(2),
  sin: { ulp: 2, note: "of any size" },
  cos: { ulp: 2, note: "of any size" },
  tan: { ulp: 3.1, note: "of any size" },
  atan: plain(2),
  asin: plain(3),
  acos: plain(3),
  tanh: plain(1),
  sinh: plain(2),
  cosh: plain(2),
  asinh: plain(3),
  acosh: plain(3),
  atanh: plain(3),
  cbrt: plain(1),
  erf: plain(2),
  erf_inv: plain(5),
  erfc: plain(4),
  logistic: plain(2),
  pow: plain(2),
  atan2: plain(2),
  rem: { ulp: 0, note: "exact" },
} as const;

const f64: { readonly [F in keyof typeof f32]: ErrorBound } = {
  ...f32,
  rsqrt: { ulp: 1.5, note: "as the simulator's" },
};

const approximate: { readonly [F in ApproximateFunction]: ApproximateBound } = {
  sqrt: { error: 2 ** -23, of: "relative", note: "" },
  rsqrt: { error: 2 ** -22.9, of: "relative", note: "" },
  exp: { error: 2 ** -22, of: "relative", note: "and 2^-23 more for each unit of x" },
  exp2: { error: 2 ** -22, of: "relative", note: "" },
  log: { error: 2 ** -22, of: "absolute", note: "relative outside of 0.5 to 2" },
  log2: { error: 2 ** -22, of: "absolute", note: "relative outside of 0.5 to 2" },
  sin: { error: 2 ** -20.5, of: "absolute", note: "up to 2π; 2^-14.7 up to 100π" },
  cos: { error: 2 ** -20.5, of: "absolute", note: "up to 2π; 2^-14.7 up to 100π" },
  tanh: { error: 2 ** -11, of: "relative", note: "" },
  erf: { error: 2 ** -20, of: "absolute", note: "" },
  logistic: { error: 2 ** -21, of: "relative", note: "and 2^-23 more for each unit of x" },
  div: { error: 2 ** -22, of: "relative", note: "divisors up to 2^126" },
};

export const mathBounds = { f32, f64, approximate } as const;

function boundText({ ulp, note }: ErrorBound): string {
  return note === "" ? String(ulp) : `${ulp}, ${note}`;
}

function approximateText({ error, of, note }: ApproximateBound): string {
  const text = `2^${Math.round(Math.log2(error) * 10) / 10} ${of}`;
  return note === "" ? text : `${text}; ${note}`;
}

const exact: ErrorBound = { ulp: 0.5, note: "correctly rounded" };

/** The table of docs/arithmetic.md. */
export function renderMathTable(): string {
  const accurate = { f32, f64 } as {
    readonly [N in "f32" | "f64"]: { readonly [fn: string]: ErrorBound };
  };
  const approximations: { readonly [fn: string]: ApproximateBound } = approximate;
  const names = new Set([...Object.keys(f32), ...Object.keys(approximate)]);
  const rows = [...names].map((name) => {
    const approximation = approximations[name];
    return [
      `\`${name}\``,
      boundText(accurate.f32[name] ?? exact),
      boundText(accurate.f64[name] ?? exact),
      approximation === undefined ? "" : approximateText(approximation),
    ];
  });
  return markdownTable(["function", "f32, ulp", "f64, ulp", "`approximate`, f32"], rows);
}
