/** Functions of F8E8M0FNU, of all codes, against integers: a product adds exponents. */
import { expect, test } from "vitest";
import { dtypes } from "../dtype.ts";
import { binaryElements, classifyElements, compareElements, unaryElements } from "./elementwise.ts";
import {
  acceptsBinary,
  acceptsFused,
  acceptsUnary,
  binaryFunctions,
  comparePredicates,
  unaryFunctions,
} from "./functions.ts";
import type { ComparePredicate } from "./functions.ts";

const scale = dtypes.f8e8m0fnu;
const nan = 255;
const codes = Uint8Array.from({ length: 256 }, (_, code) => code);
const left = Uint8Array.from({ length: 65536 }, (_, index) => index >> 8);
const right = Uint8Array.from({ length: 65536 }, (_, index) => index & 255);

/** The code of an exponent: NaN above the greatest, the least number below it. */
function codeOf(exponent: number): number {
  return exponent > 127 ? nan : Math.max(exponent, -127) + 127;
}

const functions: { readonly [fn: string]: (a: number, b: number) => number } = {
  mul: (a, b) => (a === nan || b === nan ? nan : codeOf(a - 127 + (b - 127))),
  div: (a, b) => (a === nan || b === nan ? nan : codeOf(a - b)),
  min: (a, b) => (a === nan || b === nan ? nan : Math.min(a, b)),
  max: (a, b) => (a === nan || b === nan ? nan : Math.max(a, b)),
  fmin: (a, b) => (a === nan ? b : b === nan ? a : Math.min(a, b)),
  fmax: (a, b) => (a === nan ? b : b === nan ? a : Math.max(a, b)),
};

const predicates: { readonly [P in ComparePredicate]: (a: number, b: number) => boolean } = {
  eq: (a, b) => a === b && a !== nan,
  ne: (a, b) => a !== b || a === nan,
  lt: (a, b) => a < b && b !== nan,
  le: (a, b) => a <= b && b !== nan,
  gt: (a, b) => a > b && a !== nan,
  ge: (a, b) => a >= b && a !== nan,
};

test("these functions there are, and no others", () => {
  expect(binaryFunctions.filter((fn) => acceptsBinary(fn, scale))).toEqual(Object.keys(functions));
  expect(unaryFunctions.filter((fn) => acceptsUnary(fn, scale))).toEqual(["sqrt"]);
  expect(acceptsFused(scale)).toBe(false);
});

test.each(Object.entries(functions))("%s of all pairs", (fn, expected) => {
  const target = new Uint8Array(65536);
  for (const known of binaryFunctions)
    if (known === fn) binaryElements(known, scale, left, right, target);
  const wanted = left.map((code, index) => expected(code, right[index] ?? 0));
  expect(Buffer.compare(target, wanted)).toBe(0);
});

test.each(comparePredicates)("%s of all pairs", (predicate) => {
  const target = new Uint8Array(65536);
  compareElements(predicate, scale, left, right, target);
  const holds = predicates[predicate];
  const wanted = left.map((code, index) => Number(holds(code, right[index] ?? 0)));
  expect(Buffer.compare(target, wanted)).toBe(0);
});

test("roots and tests of all", () => {
  const roots = new Uint8Array(256);
  unaryElements("sqrt", scale, codes, roots);
  // √2 is nearer to 1 than to 2.
  expect([...roots]).toEqual(
    [...codes].map((code) => (code === nan ? nan : Math.floor((code - 127) / 2) + 127)),
  );
  const flags = new Uint8Array(256);
  classifyElements("is_nan", scale, codes, flags);
  expect([...flags]).toEqual([...codes].map((code) => Number(code === nan)));
  classifyElements("is_finite", scale, codes, flags);
  expect([...flags]).toEqual([...codes].map((code) => Number(code !== nan)));
});
