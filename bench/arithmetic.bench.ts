/**
 * How fast the simulator's arithmetic is: `npx vitest bench bench/arithmetic.bench.ts`. The matrix
 * product of a 512³ problem in tiles of 128 × 128 × 64 is meant to take less than 150 ms.
 */
import { bench, describe } from "vitest";
import {
  binaryElements,
  dotElements,
  fusedMultiplyAddElements,
  reduceElements,
  unaryElements,
} from "../src/formats/arithmetic/index.ts";
import { allocateElements, bf16, dtypes, f32 } from "../src/formats/dtype.ts";
import type { DType, Elements } from "../src/formats/dtype.ts";
import { encodeFloat } from "../src/formats/floats.ts";
import { Random } from "../src/support/random.ts";

const random = new Random(1);

function normals(dtype: DType, count: number): Elements {
  const lanes = allocateElements(dtype, count) as Float32Array;
  const isCoded = dtype.name === "f16" || dtype.name === "bf16";
  for (let i = 0; i < count; i++) {
    const value = random.normal();
    lanes[i] = isCoded ? encodeFloat(dtype.name, value) : value;
  }
  return lanes;
}

const few = { iterations: 5, time: 0, warmupIterations: 1, warmupTime: 0 };

describe("dot", () => {
  const shape = { m: 128, n: 128, k: 64, operand: bf16, accumulator: f32 };
  const a = normals(bf16, shape.m * shape.k);
  const b = normals(bf16, shape.k * shape.n);
  const c = new Float32Array(shape.m * shape.n);
  bench(
    "bf16, 512³ in 128 tiles",
    () => {
      for (let tile = 0; tile < 128; tile++) dotElements(shape, a, b, c);
    },
    few,
  );
});

describe("reduction", () => {
  const source = normals(f32, 4096 * 1024);
  const target = new Float32Array(4096);
  bench(
    "f32, 4096 sums of 1024",
    () => {
      reduceElements("sum", f32, source, { outer: 4096, length: 1024, inner: 1 }, target);
    },
    few,
  );
});

describe.each(["f32", "bf16"] as const)("a tile of 128 × 128 in %s", (name) => {
  const dtype = dtypes[name];
  const left = normals(dtype, 128 * 128);
  const right = normals(dtype, 128 * 128);
  const target = allocateElements(dtype, 128 * 128);
  bench("add", () => binaryElements("add", dtype, left, right, target));
  bench("fma", () => fusedMultiplyAddElements(dtype, left, right, left, target));
  bench("exp", () => unaryElements("exp", dtype, left, target));
});
