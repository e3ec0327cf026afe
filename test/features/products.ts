/** Products of narrow floats, and how they are summed. */
import {
  bf16,
  commitShared,
  dot,
  f32,
  f4e2m1fn,
  f8e4m3fn,
  f8e8m0fnu,
  kernel,
  scaledDot,
  smem,
  tensor,
} from "tilewright";
import type { KernelDefinition } from "tilewright";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import { anyBound } from "../support/fp8-sums.ts";
import type { Accumulation } from "../support/fp8-sums.ts";
import type { Feature, FeatureCase } from "./feature.ts";

type Shape = readonly [m: number, n: number, k: number];

/** Numbers of e4m3 of several magnitudes, and 256 · 256 + 2 · 2 in the first row and column. */
function factor(rows: number, k: number, seed: number): readonly number[] {
  return Array.from({ length: rows * k }, (_, at) => {
    if (at < k) return at === 0 ? 256 : at === k - 1 ? 2 : 0;
    return (((at * seed) % 15) - 7) * 2 ** (((at * 7) % 9) - 6);
  });
}

function arguments_([m, n, k]: Shape) {
  return {
    inputs: { a: tensor(f8e4m3fn, [m, k]), b: tensor(f8e4m3fn, [n, k]) },
    outputs: { out: tensor(f32, [m, n]) },
  };
}

/** In registers by mma.sync, or by threads where there are few rows. */
function inRegisters(shape: Shape, accumulation: Accumulation): KernelDefinition {
  return kernel({ name: "fp8_registers", ...arguments_(shape) }, ({ a, b, out }) => {
    out.store(dot(a.load(), b.load().transpose(), { accumulation }));
  });
}

/** Of shared memory, by wgmma where there is one. */
function inShared(shape: Shape, accumulation: Accumulation): KernelDefinition {
  const [m, n, k] = shape;
  const scratch = { left: smem(f8e4m3fn, [m, k]), right: smem(f8e4m3fn, [n, k]) };
  return kernel({ name: "fp8_shared", ...arguments_(shape), scratch }, ({ a, b, out, ...held }) => {
    held.left.store(a.load());
    held.right.store(b.load());
    commitShared();
    out.store(dot(held.left.load(), held.right.transpose().load(), { accumulation }));
  });
}

interface Form {
  readonly name: string;
  readonly shape: Shape;
  readonly accumulation: Accumulation;
  readonly make: typeof inRegisters;
}

/** Numbers within the bound of the word, and the greatest sum, which tells the words apart. */
function sumsOf({ name, shape, accumulation, make }: Form): FeatureCase {
  const [m, n, k] = shape;
  const [left, right] = [factor(m, k, 11), factor(n, k, 13)];
  let greatest = 0;
  const expected = Array.from({ length: m * n }, (_, at) => {
    const [row, column] = [Math.floor(at / n), at % n];
    let value = 0;
    let magnitude = 0;
    for (let inner = 0; inner < k; inner += 1) {
      const term = (left[row * k + inner] ?? NaN) * (right[column * k + inner] ?? NaN);
      value += term;
      magnitude += Math.abs(term);
    }
    greatest = Math.max(greatest, magnitude);
    return value;
  });
  return {
    name: `${accumulation}, ${name}`,
    kernel: () => make(shape, accumulation),
    inputs: { a: fromNumbers(f8e4m3fn, [m, k], left), b: fromNumbers(f8e4m3fn, [n, k], right) },
    expected: { out: expected },
    within: greatest * anyBound(k, accumulation),
    targets: ["sm_80", "sm_89", "sm_90a", "sm_120a"],
  };
}

/** One sum: exactly 65540 where it is promoted. */
const exactly: FeatureCase = {
  name: "65536 + 4, promoted",
  kernel: () => inShared([64, 8, 256], "promoted"),
  inputs: {
    a: fromNumbers(f8e4m3fn, [64, 256], [...factor(1, 256, 0), ...new Float32Array(63 * 256)]),
    b: fromNumbers(f8e4m3fn, [8, 256], [...factor(1, 256, 0), ...new Float32Array(7 * 256)]),
  },
  expected: { out: [65540, ...new Float32Array(64 * 8 - 1)] },
};

/** Rows of whole numbers times powers of two, four of each operand's scales a row: every sum is exact. */
const scaledRows = {
  left: Array.from({ length: 16 * 128 }, (_, at) => ((at * 5) % 9) - 4),
  right: Array.from(
    { length: 8 * 128 },
    (_, at) => [0, 0.5, -1, 1.5, 2, -3, 4, 6][(at * 3) % 8] ?? 0,
  ),
  leftScale: Array.from({ length: 16 * 4 }, (_, at) => 2 ** ((at % 5) - 2)),
  rightScale: Array.from({ length: 8 * 8 }, (_, at) => 1 + (at % 4) / 4),
};

const scaledSums: FeatureCase = {
  name: "mxfp8 by nvfp4",
  kernel: () =>
    kernel(
      {
        name: "scaled_products",
        inputs: {
          ...{ a: tensor(f8e4m3fn, [16, 128]), aScale: tensor(f8e8m0fnu, [16, 4]) },
          ...{ b: tensor(f4e2m1fn, [8, 128]), bScale: tensor(f8e4m3fn, [8, 8]) },
        },
        outputs: { out: tensor(f32, [16, 8]) },
      },
      ({ a, aScale, b, bScale, out }) => {
        out.store(scaledDot([a.load(), aScale.load()], [b.load().transpose(), bScale.load()]));
      },
    ),
  inputs: {
    a: fromNumbers(f8e4m3fn, [16, 128], scaledRows.left),
    aScale: fromNumbers(f8e8m0fnu, [16, 4], scaledRows.leftScale),
    b: fromNumbers(f4e2m1fn, [8, 128], scaledRows.right),
    bScale: fromNumbers(f8e4m3fn, [8, 8], scaledRows.rightScale),
  },
  expected: {
    out: Array.from({ length: 16 * 8 }, (_, at) => {
      const [row, column] = [Math.floor(at / 8), at % 8];
      let sum = 0;
      for (let k = 0; k < 128; k += 1) {
        const left =
          (scaledRows.left[row * 128 + k] ?? NaN) *
          (scaledRows.leftScale[row * 4 + (k >> 5)] ?? NaN);
        const right =
          (scaledRows.right[column * 128 + k] ?? NaN) *
          (scaledRows.rightScale[column * 8 + (k >> 4)] ?? NaN);
        sum += left * right;
      }
      return sum;
    }),
  },
  targets: ["sm_80", "sm_89", "sm_90a", "sm_120a"],
};

/** Both operands with scales of one format, as tensor cores of sm_120a take them. */
const nativeSums: FeatureCase = {
  name: "mxfp8 by mxfp4",
  kernel: () =>
    kernel(
      {
        name: "native_products",
        inputs: {
          ...{ a: tensor(f8e4m3fn, [16, 128]), aScale: tensor(f8e8m0fnu, [16, 4]) },
          ...{ b: tensor(f4e2m1fn, [8, 128]), bScale: tensor(f8e8m0fnu, [8, 4]) },
        },
        outputs: { out: tensor(f32, [16, 8]) },
      },
      ({ a, aScale, b, bScale, out }) => {
        out.store(scaledDot([a.load(), aScale.load()], [b.load().transpose(), bScale.load()]));
      },
    ),
  inputs: {
    a: fromNumbers(f8e4m3fn, [16, 128], scaledRows.left),
    aScale: fromNumbers(f8e8m0fnu, [16, 4], scaledRows.leftScale),
    b: fromNumbers(f4e2m1fn, [8, 128], scaledRows.right),
    bScale: fromNumbers(f8e8m0fnu, [8, 4], scaledRows.leftScale.slice(0, 32)),
  },
  expected: {
    out: Array.from({ length: 16 * 8 }, (_, at) => {
      const [row, column] = [Math.floor(at / 8), at % 8];
      let sum = 0;
      for (let k = 0; k < 128; k += 1)
        sum +=
          (scaledRows.left[row * 128 + k] ?? NaN) *
          (scaledRows.leftScale[row * 4 + (k >> 5)] ?? NaN) *
          (scaledRows.right[column * 128 + k] ?? NaN) *
          (scaledRows.leftScale[column * 4 + (k >> 5)] ?? NaN);
      return sum;
    }),
  },
  targets: ["sm_90a", "sm_120a"],
};

/** A product that is refused for one of its operands. */
function refusedScales(dtype: typeof f32 | typeof f8e8m0fnu, blocks: number) {
  return () =>
    kernel(
      {
        name: "scaled_products",
        inputs: {
          a: tensor(f8e4m3fn, [16, 64]),
          s: tensor(dtype, [16, blocks]),
          b: tensor(bf16, [64, 8]),
        },
        outputs: { out: tensor(f32, [16, 8]) },
      },
      ({ a, s, b, out }) => {
        out.store(scaledDot([a.load(), s.load()], b.load()));
      },
    );
}

export const productFeatures: readonly Feature[] = [
  {
    name: "Products of tiles whose elements share scales in blocks",
    written: ["scaledDot([a, aScale], [b, bScale])"],
    page: "language.md#asynchronous-copies-and-products",
    cases: () => [scaledSums, nativeSums],
    refused: [
      { code: "TW2003", by: refusedScales(f32, 2) },
      { code: "TW2004", by: refusedScales(f8e8m0fnu, 3) },
    ],
  },
  {
    name: "Sums of FP8, promoted to f32 or the instruction's own",
    written: ["dot(a, b, { accumulator: sums })", 'accumulation: "fast"'],
    page: "tensor-cores.md#how-products-of-fp8-are-summed",
    cases: () => [
      ...(["promoted", "fast"] as const).flatMap((accumulation) => [
        sumsOf({ name: "in registers", shape: [16, 8, 64], accumulation, make: inRegisters }),
        sumsOf({ name: "by threads", shape: [4, 8, 64], accumulation, make: inRegisters }),
        sumsOf({ name: "of shared memory", shape: [64, 8, 160], accumulation, make: inShared }),
      ]),
      exactly,
    ],
    refused: [
      {
        code: "TW2001",
        by: () =>
          kernel({ name: "precise", ...arguments_([16, 8, 32]) }, ({ a, b, out }) => {
            const accumulation = "precise" as Accumulation;
            out.store(dot(a.load(), b.load().transpose(), { accumulation }));
          }),
      },
    ],
  },
];
