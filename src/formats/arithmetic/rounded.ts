/**
 * Arithmetic with the rounding that was asked for, and with subnormal numbers flushed to zeros of their sign.
 *
 *   1 / 3 in f32, rounded up          0.33333334
 *   2^-100 · 2^-30, flushed           0, where it is 2^-130 otherwise
 *
 * Flushed results are rounded as if exponents had no end, and become zero where they are then below the normal numbers: the product
 * (1 - 2^-24) · 2^-126 is zero, though the nearest f32 is 2^-126.
 */
import type { DType, Elements } from "../dtype.ts";
import {
  addRounded,
  divideRounded,
  fuseRounded,
  multiplyRounded,
  precisions,
  squareRootRounded,
  subtractRounded,
} from "./exact.ts";
import type { Precision, Rounding } from "./exact.ts";
import { acceptsFlush, acceptsRounding } from "./functions.ts";
import type { RoundedFunction, RoundingManner } from "./functions.ts";
import {
  floatRegisters,
  forEachPiece,
  loadFloats,
  registerElements,
  storeFloats,
} from "./registers.ts";

const elements = floatRegisters;
const length = registerElements;
const places = [0, 1, 2] as const;

const modes = { nearest: "rn", zero: "rz", down: "rm", up: "rp" } as const;

/** What a format is flushed by: its least normal number, and its precision below that. */
const flushed: {
  readonly [name: string]: { readonly leastNormal: number; readonly precision: Precision };
} = {
  f32: { leastNormal: 2 ** -126, precision: precisions.endless },
  f16: { leastNormal: 2 ** -14, precision: precisions.endlessHalf },
};

type Operands = readonly [number, number, number];
type Compute = (operands: Operands, precision: Precision, mode: Rounding) => number;

const functions: { readonly [F in RoundedFunction]: Compute } = {
  add: ([a, b], precision, mode) => addRounded(a, b, precision, mode),
  sub: ([a, b], precision, mode) => subtractRounded(a, b, precision, mode),
  mul: ([a, b], precision, mode) => multiplyRounded(a, b, precision, mode),
  div: ([a, b], precision, mode) => divideRounded(a, b, precision, mode),
  sqrt: ([a], precision, mode) => squareRootRounded(a, precision, mode),
  fma: ([a, b, c], precision, mode) => fuseRounded(a, b, c, precision, mode),
};

function flushBelow(value: number, leastNormal: number): number {
  return value < leastNormal && value > -leastNormal ? value * 0 : value;
}

/** Whether arithmetic has anything but its usual manner. */
export function isMannered({ rounding, flushToZero }: RoundingManner): boolean {
  return rounding !== undefined || flushToZero === true;
}

/** `fn` of each element of the operands, of which there are as many as it takes; `target` may be one of them. */
export function roundedElements(
  fn: RoundedFunction,
  dtype: DType,
  operands: readonly Elements[],
  target: Elements,
  { rounding, flushToZero = false }: RoundingManner,
): void {
  const accepted =
    (rounding === undefined || acceptsRounding(fn, dtype)) &&
    (!flushToZero || acceptsFlush(fn, dtype));
  if (!accepted) throw new Error(`${fn} of ${dtype.name} is not rounded so`);
  const compute = functions[fn];
  const mode = modes[rounding ?? "nearest"];
  const { leastNormal, precision } = (flushToZero ? flushed[dtype.name] : undefined) ?? {
    leastNormal: 0,
    precision: dtype.name === "f64" ? precisions.f64 : precisions.f32,
  };
  const read = (index: number): number => flushBelow(elements[index] ?? 0, leastNormal);
  forEachPiece(target.length, (start, count) => {
    for (const place of places) {
      const operand = operands[place];
      if (operand !== undefined) loadFloats(dtype, operand, start, count, place);
    }
    for (let i = 0; i < count; i++) {
      const result = compute([read(i), read(length + i), read(2 * length + i)], precision, mode);
      elements[i] = flushBelow(result, leastNormal);
    }
    storeFloats(dtype, target, start, count);
  });
}
