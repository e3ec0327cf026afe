/**
 * Scans: running sums, products, minima and maxima along an axis, in the order of the index or, where
 * `reverse`, in the opposite one.
 *
 *   sum of 1 2 3 4           1  3  6 10
 *   sum of 1 2 3 4, reverse 10  9  7  4
 *
 * Steps are taken one after the other. f32 and f64 round each to the format; tf32, f16 and bf16 keep
 * the running value in f32 and round only what they write. Integers wrap.
 */
import { isWide } from "../dtype.ts";
import type { DType, Elements } from "../dtype.ts";
import type { Axis } from "./axis.ts";
import { acceptsScan } from "./functions.ts";
import type { ScanFunction } from "./functions.ts";
import { narrowElements, widenElements } from "./registers.ts";
import type { NumberElements } from "./registers.ts";

type Step<T> = (running: T, next: T) => T;

const float64Steps: { readonly [F in ScanFunction]: Step<number> } = {
  sum: (running, next) => running + next,
  prod: (running, next) => running * next,
  min: (running, next) => Math.min(running, next),
  max: (running, next) => Math.max(running, next),
};

const float32Steps: { readonly [F in ScanFunction]: Step<number> } = {
  ...float64Steps,
  sum: (running, next) => Math.fround(running + next),
  prod: (running, next) => Math.fround(running * next),
};

/** Modulo 2^32; what the format has fewer bits is cut off when it is written. */
const integerSteps: { readonly [F in ScanFunction]: Step<number> } = {
  ...float64Steps,
  sum: (running, next) => (running + next) | 0,
  prod: (running, next) => Math.imul(running, next),
};

const wideSteps: { readonly [F in ScanFunction]: Step<bigint> } = {
  sum: (running, next) => BigInt.asIntN(64, running + next),
  prod: (running, next) => BigInt.asIntN(64, running * next),
  min: (running, next) => (next < running ? next : running),
  max: (running, next) => (next > running ? next : running),
};

/** Arrays of one element type; `T` is number or bigint. */
interface Values<T> {
  [index: number]: T;
}

function scanAxis<T>(
  step: Step<T>,
  source: Values<T>,
  { outer, length, inner }: Axis,
  target: Values<T>,
  reverse: boolean,
): void {
  const stride = reverse ? -inner : inner;
  const first = reverse ? (length - 1) * inner : 0;
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      let position = o * length * inner + first + i;
      let running = source[position] as T;
      target[position] = running;
      for (let k = 1; k < length; k++) {
        position += stride;
        running = step(running, source[position] as T);
        target[position] = running;
      }
    }
  }
}

/** Scans `source`, seen around `axis`; `target` may be the same array. */
export function scanElements(
  fn: ScanFunction,
  dtype: DType,
  source: Elements,
  axis: Axis,
  target: Elements,
  reverse: boolean,
): void {
  if (!acceptsScan(fn, dtype)) throw new Error(`${fn} is not defined for ${dtype.name}`);
  if (dtype.kind === "float") {
    const values = new Float64Array(source.length);
    widenElements(dtype, source, 0, source.length, values);
    const steps = dtype.name === "f64" ? float64Steps : float32Steps;
    scanAxis(steps[fn], values, axis, values, reverse);
    narrowElements(dtype, values, target);
  } else if (isWide(dtype)) {
    const elements = source as BigInt64Array;
    scanAxis(wideSteps[fn], elements, axis, target as BigInt64Array, reverse);
  } else {
    const elements = source as NumberElements;
    scanAxis(integerSteps[fn], elements, axis, target as NumberElements, reverse);
    if (dtype.bits === 4) wrapTo4Bits(dtype, target as NumberElements);
  }
}

/** Typed arrays wrap by themselves to the widths that they have; 4 bits is not one of them. */
function wrapTo4Bits(dtype: DType, elements: NumberElements): void {
  for (let i = 0; i < elements.length; i++) {
    const value = elements[i] as number;
    elements[i] = dtype.kind === "signed" ? (value << 28) >> 28 : value & 15;
  }
}
