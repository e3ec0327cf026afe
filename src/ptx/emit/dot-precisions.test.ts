/** Every way of making a product has the precision that was asked for: threads' multiply-adds, mma.sync and wgmma. */
import { describe, expect, test } from "vitest";
import { bf16, f16, f32, f8e4m3fn, f8e5m2, tf32 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { commitShared, dot, kernel, smem, tensor } from "../../lang/index.ts";
import type { DotOptions, KernelDefinition, Tile } from "../../lang/index.ts";
import { compileAhead } from "../../lower/compile-ahead.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { targets } from "../../targets/target.ts";
import { isTaken } from "../../../test/support/sample.ts";

type Precision = NonNullable<DotOptions<"f32">["precision"]>;

/** Half to even to so many bits, by the definition. */
function rounded(value: number, bits: number): number {
  if (value === 0) return value;
  const unit = 2 ** (Math.floor(Math.log2(Math.abs(value))) - bits + 1);
  const units = value / unit;
  const below = Math.floor(units);
  const isUp = units - below > 0.5 || (units - below === 0.5 && below % 2 !== 0);
  return (isUp ? below + 1 : below) * unit;
}

/** What a number is as the sum of parts of so many bits each. */
function parts(value: number, bits: number, count: number): number {
  let sum = 0;
  for (let part = 0; part < count; part += 1) sum += rounded(value - sum, bits);
  return sum;
}

const asked: { readonly [P in Precision]: (value: number) => number } = {
  ieee: (value) => value,
  tf32: (value) => parts(value, 11, 1),
  tf32x3: (value) => parts(value, 11, 2),
  bf16x3: (value) => parts(value, 8, 2),
  bf16x6: (value) => parts(value, 8, 3),
  bf16x9: (value) => parts(value, 8, 3),
};

type Shape = readonly [m: number, n: number, k: number];

/** Shapes that each way takes of operands in registers. */
const waysOf = {
  fma: [
    [1, 8, 8],
    [4, 8, 16],
    [16, 4, 16],
    [8, 16, 32],
    [16, 16, 4],
  ],
  "mma.sync": [
    [16, 8, 16],
    [16, 24, 48],
    [64, 32, 32],
    [128, 8, 16],
  ],
} as const;

function productOf([m, n, k]: Shape, precision: Precision): KernelDefinition {
  return kernel(
    {
      name: "product",
      inputs: { a: tensor(f32, [m, k]), b: tensor(f32, [k, n]) },
      outputs: { out: tensor(f32, [m, n]) },
    },
    ({ a, b, out }) => out.store(dot(a.load(), b.load(), { precision })),
  );
}

/** By wgmma, of blocks of shared memory; tf32 lies along k on both sides. */
function sharedProduct(dtype: DType, [m, n, k]: Shape): KernelDefinition {
  const isAlong = dtype.bits !== 16;
  return kernel(
    {
      name: "product",
      inputs: { a: tensor(dtype, [m, k]), b: tensor(dtype, [k, n]) },
      outputs: { out: tensor(f32, [m, n]) },
      scratch: { left: smem(dtype, [m, k]), right: smem(dtype, isAlong ? [n, k] : [k, n]) },
    },
    ({ a, b, out, left, right }) => {
      left.store(a.load());
      const loaded: Tile = b.load();
      right.store((isAlong ? loaded.transpose() : loaded) as never);
      commitShared();
      const factor = isAlong ? right.transpose() : right;
      out.store(dot(left.load(), factor.load(), { dtype: f32 }) as Tile<"f32">);
    },
  );
}

/** Numbers of 24 bits, the first half way between two of 11 and of 8 bits. */
function draw(count: number, random: Random): Float32Array {
  const drawn = Float32Array.from(
    { length: count },
    () => (random.uniform() - 0.5) * 2 ** random.below(9),
  );
  drawn.set([1 + 2 ** -12, 1 + 3 * 2 ** -11, 1 + 2 ** -8, -1 - 3 * 2 ** -8].slice(0, count));
  return drawn;
}

function unit(rows: number, columns: number): Float32Array {
  return Float32Array.from({ length: rows * columns }, (_, at) =>
    Number(Math.floor(at / columns) === at % columns),
  );
}

/** What a way makes of each number, by the unit matrix on either side. */
async function expectRounded(
  definition: KernelDefinition,
  dtype: DType,
  [m, n, k]: Shape,
  expected: (value: number) => number,
): Promise<void> {
  const random = new Random(m + n + k);
  for (const name of ["simulator", "emulator"] as const) {
    const device = await open(name, { target: "sm_90a", onNotes: () => undefined });
    const run = async (a: Float32Array, b: Float32Array): Promise<readonly number[]> => {
      const inputs = { a: fromNumbers(dtype, [m, k], a), b: fromNumbers(dtype, [k, n], b) };
      const { out } = await device.run(definition, inputs);
      if (out === undefined) throw new Error("the kernel has this output");
      return [...toNumbers(out)].map((value) => value + 0);
    };
    const [rows, columns] = [draw(m * k, random), draw(k * n, random)];
    const at = (list: Float32Array, index: number): number => expected(list[index] ?? NaN) + 0;
    const ofLeft = Array.from({ length: m * n }, (_, index) => {
      const [row, column] = [Math.floor(index / n), index % n];
      return column < k ? at(rows, row * k + column) : 0;
    });
    expect(await run(rows, unit(k, n)), `${name}, left`).toEqual(ofLeft);
    const ofRight = Array.from({ length: m * n }, (_, index) =>
      Math.floor(index / n) < k ? at(columns, index) : 0,
    );
    expect(await run(unit(m, k), columns), `${name}, right`).toEqual(ofRight);
    device.dispose();
  }
}

describe.each(Object.keys(asked) as Precision[])("f32 as %s", (precision) => {
  // No tensor core multiplies f32 as it is.
  const ways = precision === "ieee" ? (["fma"] as const) : (["fma", "mma.sync"] as const);
  const cases = ways.flatMap((way) =>
    waysOf[way]
      .filter((_, place) => isTaken(place, 2))
      .map((shape) => [way, shape.join(" × "), shape] as const),
  );
  test.each(cases)("by %s of %s", async (way, _, shape) => {
    const definition = productOf(shape, precision);
    const { ptx } = compileAhead(definition, targets.sm_90a);
    expect(ptx.includes("mma.sync")).toBe(way === "mma.sync");
    await expectRounded(definition, f32, shape, asked[precision]);
  });
});

describe.each([tf32, bf16, f16, f8e4m3fn, f8e5m2])("$name by wgmma", (dtype) => {
  test.each([
    [64, 8, 32],
    [64, 48, 64],
    [128, 32, 32],
  ] as const)("of %i × %i × %i", async (...shape) => {
    const definition = sharedProduct(dtype, shape);
    expect(compileAhead(definition, targets.sm_90a).ptx).toContain("wgmma.mma_async");
    const scaled = (value: number): number => toNumbers(fromNumbers(dtype, [1], [value]))[0] ?? NaN;
    await expectRounded(definition, dtype, shape, scaled);
  });
});
