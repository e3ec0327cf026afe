/** How products of FP8 are summed: both words, by every instruction that makes such a product. */
import { f32, f8e4m3fn, f8e5m2 } from "../../src/formats/dtype.ts";
import { toNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { commitShared, dot, kernel, loop, slice, smem, tensor } from "../../src/lang/index.ts";
import type { KernelDefinition, Tile } from "../../src/lang/index.ts";
import { anyBound } from "../support/fp8-sums.ts";
import type { Accumulation } from "../support/fp8-sums.ts";
import { exact } from "./case.ts";
import type { MatrixCase, Tolerance } from "./case.ts";
import { ordinaryNumbers } from "./inputs.ts";

type Fp8 = typeof f8e4m3fn | typeof f8e5m2;
type Shape = readonly [m: number, n: number, k: number];

interface Form {
  readonly shape: Shape;
  readonly make: (pair: readonly [Fp8, Fp8], shape: Shape, word: Accumulation) => KernelDefinition;
}

function argumentsOf([a, b]: readonly [Fp8, Fp8], [m, n, k]: Shape) {
  return {
    inputs: { a: tensor(a, [m, k]), b: tensor(b, [n, k]), c: tensor(f32, [m, n]) },
    outputs: { out: tensor(f32, [m, n]) },
  };
}

/** By mma.sync, and by threads where there are too few rows. */
const ofRegisters: Form["make"] = (pair, shape, accumulation) =>
  kernel({ name: "in_registers", ...argumentsOf(pair, shape) }, ({ a, b, c, out }) => {
    const options = { accumulator: c.load(), accumulation };
    out.store(dot(a.load() as Tile, b.transpose().load() as Tile, options));
  });

/** By wgmma where the target has it. */
const ofShared: Form["make"] = (pair, shape, accumulation) => {
  const [m, n, k] = shape;
  const scratch = { left: smem(pair[0], [m, k]), right: smem(pair[1], [n, k]) };
  return kernel(
    { name: "in_shared_memory", ...argumentsOf(pair, shape), scratch },
    ({ a, b, c, out, left, right }) => {
      left.store(a.load() as never);
      right.store(b.load() as never);
      commitShared();
      const options = { accumulator: c.load(), accumulation };
      out.store(dot(left.load() as Tile, right.transpose().load() as Tile, options));
    },
  );
};

/** By wgmma in a loop that the compiler pipelines. */
const ofLoop: Form["make"] = (pair, shape, accumulation) => {
  const [m, n, k] = shape;
  const width = 64;
  return kernel({ name: "in_a_loop", ...argumentsOf(pair, shape) }, ({ a, b, c, out }) => {
    const sums = loop({ to: k / width, carry: c.load() }, (step, accumulator) => {
      const along = slice(step.mul(width), width);
      const [left, right] = [a.at(slice(0, m), along), b.at(slice(0, n), along)];
      const options = { accumulator, accumulation };
      return dot(left.load() as Tile, right.transpose().load() as Tile, options);
    });
    out.store(sums);
  });
};

const forms: { readonly [name: string]: Form } = {
  "in registers": { shape: [16, 8, 160], make: ofRegisters },
  "by threads": { shape: [4, 8, 96], make: ofRegisters },
  "in shared memory": { shape: [64, 16, 288], make: ofShared },
  "in a loop": { shape: [64, 16, 384], make: ofLoop },
};

const pairs: readonly (readonly [Fp8, Fp8])[] = [
  [f8e4m3fn, f8e4m3fn],
  [f8e5m2, f8e5m2],
  [f8e4m3fn, f8e5m2],
];

/** Exact sums, and how far the word lets them be off. */
function within(
  { a, b, c }: { readonly [name: string]: HostArray },
  [, n, k]: Shape,
  word: Accumulation,
): Tolerance {
  const [left = [], right = [], start = []] = [a, b, c].map((each) => each && toNumbers(each));
  return {
    kind: "reference",
    of: (_, at) => {
      const [row, column] = [Math.floor(at / n), at % n];
      let value = start[at] ?? NaN;
      let magnitude = Math.abs(value);
      for (let inner = 0; inner < k; inner += 1) {
        const term = (left[row * k + inner] ?? NaN) * (right[column * k + inner] ?? NaN);
        value += term;
        magnitude += Math.abs(term);
      }
      return { value, bound: magnitude * anyBound(k, word) };
    },
  };
}

export function accumulationCases(): readonly MatrixCase[] {
  return pairs.flatMap((pair, seed) =>
    Object.entries(forms).flatMap(([name, { shape, make }]) =>
      (["promoted", "fast"] as const).map((word): MatrixCase => ({
        name: `dot ${pair.map((dtype) => dtype.name).join(" ")} summed ${word}, ${name}`,
        prepare: () => {
          const [m, n, k] = shape;
          const inputs = {
            a: ordinaryNumbers(pair[0], [m, k], seed),
            b: ordinaryNumbers(pair[1], [n, k], seed + 1),
            c: ordinaryNumbers(f32, [m, n], seed + 2),
          };
          // What mma.sync makes of operands as f16 is the simulator's model of promoted sums, on every target.
          const isModel = word === "promoted" && name === "in registers";
          const toleranceOnCpu = within(inputs, shape, word);
          const tolerance = isModel ? exact : toleranceOnCpu;
          return { definition: make(pair, shape, word), inputs, tolerance, toleranceOnCpu };
        },
      })),
    ),
  );
}
