/** Products: dot by every instruction, wgmma with operands in every place and order, for every pair of formats. */
import { acceptsDot } from "../../src/formats/arithmetic/index.ts";
import { dtypes, f32, isFloat, tf32 } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { wgmmaAccumulators } from "../../src/ir/infer/matrix.ts";
import {
  accumulator,
  tensor,
  commitShared,
  dot,
  kernel,
  smem,
  wgmma,
} from "../../src/lang/index.ts";
import { exact, ulpOf } from "./case.ts";
import type { MatrixCase, Tolerance } from "./case.ts";
import { ordinaryNumbers } from "./inputs.ts";

const formats: readonly DType[] = Object.values(dtypes);

export interface Product {
  readonly a: DType;
  readonly b: DType;
  readonly sum: DType;
}

export const pairs: readonly Product[] = formats.flatMap((a) =>
  formats.flatMap((b) =>
    formats.filter((sum) => acceptsDot(a, b, sum)).map((sum) => ({ a, b, sum })),
  ),
);

/**
 * How far a product may lie from the exact sum. Tensor cores keep 13 fraction bits of the largest term for
 * FP8 and at least 23 for the others, and cut instead of rounding; lanes round once a step.
 */
export function productTolerance(
  { a, sum }: Product,
  left: HostArray,
  right: HostArray,
  [, n, k]: readonly [number, number, number],
): Tolerance {
  // Products of f64 are multiply-adds with one rounding, k after k, whichever instruction makes them.
  if (!isFloat(sum) || sum.name === "f64") return exact;
  const [x, y] = [toNumbers(left), toNumbers(right)];
  const kept = a.bits === 8 ? 2 ** -12 : 2 ** -22;
  return {
    kind: "reference",
    of: (_, index) => {
      const [row, column] = [Math.floor(index / n), index % n];
      let value = 0;
      let magnitude = 0;
      for (let inner = 0; inner < k; inner += 1) {
        const term = (x[row * k + inner] ?? NaN) * (y[inner * n + column] ?? NaN);
        value += term;
        magnitude += Math.abs(term);
      }
      const precision = a.name === "f32" || sum.name !== "f16" ? kept : Math.max(kept, 2 ** -10);
      const error = magnitude * Math.ceil(k / 4 + 1) * precision;
      return { value, bound: error + ulpOf(sum, Math.abs(value) + error) };
    },
  };
}

/** f32 says how it is multiplied. */
const precisionOf = ({ name }: DType): object => (name === "f32" ? { precision: "ieee" } : {});

function dotCase(
  product: Product,
  shape: readonly [number, number, number],
  seed: number,
): MatrixCase {
  const { a, b, sum } = product;
  const [m, n, k] = shape;
  return {
    name: `dot ${a.name} ${b.name} ${sum.name} ${m}x${n}x${k}`,
    prepare: () => {
      const x = ordinaryNumbers(a, [m, k], seed);
      const y = ordinaryNumbers(b, [k, n], seed + 1);
      return {
        definition: kernel(
          {
            name: "dots",
            inputs: { x: tensor(a, [m, k]), y: tensor(b, [k, n]) },
            outputs: { out: tensor(sum, [m, n]) },
          },
          ({ x: left, y: right, out }) => {
            out.store(
              dot(left.load() as never, right.load() as never, {
                dtype: sum,
                ...precisionOf(a),
              }),
            );
          },
        ),
        inputs: { x, y },
        tolerance: productTolerance(product, x, y, shape),
      };
    },
  };
}

function sharedDotCase(product: Product, seed: number): MatrixCase {
  const { a, b, sum } = product;
  const shape = [64, 32, 128] as const;
  const [m, n, k] = shape;
  return {
    name: `dot of shared memory ${a.name} ${b.name} ${sum.name}`,
    prepare: () => {
      const x = ordinaryNumbers(a, [m, k], seed);
      const y = ordinaryNumbers(b, [k, n], seed + 1);
      return {
        definition: kernel(
          {
            name: "shared_dots",
            inputs: { x: tensor(a, [m, k]), y: tensor(b, [k, n]) },
            outputs: { out: tensor(sum, [m, n]) },
            scratch: { left: smem(a, [m, k]), right: smem(b, [k, n]) },
          },
          ({ x: one, y: other, out, left, right }) => {
            left.store(one.load());
            right.store(other.load());
            out.store(
              dot(left.load() as never, right.load() as never, {
                dtype: sum,
                ...precisionOf(a),
              }),
            );
          },
        ),
        inputs: { x, y },
        tolerance: productTolerance(product, x, y, shape),
      };
    },
  };
}

export interface Form {
  readonly name: string;
  readonly registers: boolean;
  /** Whether an operand is stored with its axes exchanged. */
  readonly turnedA: boolean;
  readonly turnedB: boolean;
}

export const forms: readonly Form[] = [false, true].flatMap((registers) =>
  [false, true].flatMap((turnedA) =>
    [false, true].map((turnedB) => ({
      name: `${registers ? "registers" : turnedA ? "m-major" : "k-major"} by ${turnedB ? "k-major" : "n-major"}`,
      registers,
      turnedA,
      turnedB,
    })),
  ),
);

/** Operands of other widths than 16 bits must be contiguous along k. */
export function isLegal({ a, b }: Product, { registers, turnedA, turnedB }: Form): boolean {
  if (registers && turnedA) return false;
  const wide = a.bits !== 16;
  return !(wide && turnedA) && !(wide && b.bits !== 16 && !turnedB);
}

function wgmmaCase(product: Product, form: Form, n: number, seed: number): MatrixCase {
  const { a, b, sum } = product;
  const [m, k] = [n === 256 ? 64 : 128, 64];
  const shapeA = form.turnedA ? [k, m] : [m, k];
  const shapeB = form.turnedB ? [n, k] : [k, n];
  return {
    name: `wgmma ${a.name} ${b.name} ${sum.name} ${form.name} n ${n}`,
    prepare: () => {
      const x = ordinaryNumbers(a, [m, k], seed);
      const y = ordinaryNumbers(b, [k, n], seed + 1);
      return {
        definition: kernel(
          {
            name: "multiplied",
            inputs: { x: tensor(a, [m, k]), y: tensor(b, [k, n]) },
            outputs: { out: tensor(sum, [m, n]) },
            scratch: { left: smem(a, shapeA), right: smem(b, shapeB) },
          },
          ({ x: one, y: other, out, left, right }) => {
            const tile = one.load();
            if (!form.registers) left.store(form.turnedA ? tile.transpose() : tile);
            const second = other.load();
            right.store(form.turnedB ? second.transpose() : second);
            commitShared();
            const factor = form.registers ? tile : form.turnedA ? left.transpose() : left;
            const turned = form.turnedB ? right.transpose() : right;
            const started = wgmma(
              accumulator(sum as never, [m, n]),
              factor as never,
              turned as never,
            );
            out.store(started.wait());
          },
        ),
        inputs: { x, y },
        tolerance: productTolerance(product, x, y, [m, n, k]),
      };
    },
  };
}

/** f32 with its operands rounded to tf32. */
function roundedDot(): MatrixCase {
  const shape = [32, 16, 24] as const;
  const [m, n, k] = shape;
  return {
    name: "dot f32 as tf32",
    prepare: () => {
      const x = ordinaryNumbers(tf32, [m, k], 3);
      const y = ordinaryNumbers(tf32, [k, n], 4);
      const asF32 = (from: HostArray): HostArray => ({ ...from, dtype: f32 });
      return {
        definition: kernel(
          {
            name: "rounded",
            inputs: { x: tensor(f32, [m, k]), y: tensor(f32, [k, n]) },
            outputs: { out: tensor(f32, [m, n]) },
          },
          ({ x: left, y: right, out }) => {
            out.store(dot(left.load(), right.load(), { precision: "tf32" }));
          },
        ),
        inputs: { x: asF32(x), y: asF32(y) },
        tolerance: productTolerance({ a: tf32, b: tf32, sum: f32 }, x, y, shape),
      };
    },
  };
}

/** Operands halfway between two tf32 numbers and a little above: rounded up, not cut. */
function roundedUp(): MatrixCase {
  const [m, n, k] = [32, 16, 24];
  const between = 1 + 2 ** -11 + 2 ** -13;
  return {
    name: "dot f32 rounded up to tf32",
    prepare: () => ({
      definition: kernel(
        {
          name: "rounded_up",
          inputs: { x: tensor(f32, [m, k]), y: tensor(f32, [k, n]) },
          outputs: { out: tensor(f32, [m, n]) },
        },
        ({ x, y, out }) => {
          out.store(dot(x.load(), y.load(), { precision: "tf32" }));
        },
      ),
      inputs: {
        x: fromNumbers(f32, [m, k], new Array<number>(m * k).fill(between)),
        y: fromNumbers(
          f32,
          [k, n],
          Array.from({ length: k * n }, (_, index) => (index % 7) - 3),
        ),
      },
      tolerance: exact,
    }),
  };
}

export function productCases(): readonly MatrixCase[] {
  const dots = pairs.flatMap((product, seed) => [
    dotCase(product, [16, 8, 64], seed),
    dotCase(product, [5, 7, 9], seed),
    dotCase(product, [64, 48, 64], seed),
    sharedDotCase(product, seed),
  ]);
  const products = pairs
    .filter(({ a, b, sum }) => wgmmaAccumulators(a, b).includes(sum.name))
    .flatMap((product, seed) =>
      forms
        .filter((form) => isLegal(product, form))
        .flatMap((form) => [8, 64, 256].map((n) => wgmmaCase(product, form, n, seed))),
    );
  const several = pairs
    .filter(({ a, sum }) => a.bits === 16 && sum === f32)
    .map((product, seed) => dotCase(product, [128, 16, 32], seed));
  return [...dots, ...several, ...products, roundedDot(), roundedUp()];
}
