/** Products of narrow floats, and how they are summed. */
import { commitShared, dot, f32, f8e4m3fn, kernel, smem, tensor } from "tilewright";
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

export const productFeatures: readonly Feature[] = [
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
