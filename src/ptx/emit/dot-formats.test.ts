/** Products of FP8, FP4 and integers of 4 bits outside of shared memory: by mma.sync, in formats that have all their numbers. */
import { describe, expect, test } from "vitest";
import { hasPtxas } from "../../../test/ptxas.ts";
import { assemble } from "../../../test/support/accepted-assembly.ts";
import { f16, f32, f4e2m1fn, f8e4m3fn, f8e5m2, i32, i4, u4 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { decodeFloat } from "../../formats/floats.ts";
import { fromNumbers, hostArray, toNumbers } from "../../formats/hostarray.ts";
import { dot, kernel, loop, tensor, zeros } from "../../lang/index.ts";
import type { KernelDefinition, Tile } from "../../lang/index.ts";
import { compileAhead } from "../../lower/compile-ahead.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { targets } from "../../targets/target.ts";
import { takesAll } from "../../../test/support/sample.ts";

const [m, n, k] = [32, 24, 64];

interface Formats {
  readonly a: DType;
  readonly b: DType;
  readonly sum: DType;
}

function productOf({ a, b, sum }: Formats, accumulates: boolean): KernelDefinition {
  return kernel(
    {
      name: "product",
      inputs: { a: tensor(a, [m, k]), b: tensor(b, [k, n]), c: tensor(sum, [m, n]) },
      outputs: { out: tensor(sum, [m, n]) },
    },
    ({ a: left, b: right, c, out }) => {
      const more = accumulates ? { accumulator: c.load() } : {};
      const product = dot(left.load() as Tile, right.load() as Tile, { dtype: sum, ...more });
      out.store(product as never);
    },
  );
}

const cases: readonly (readonly [string, Formats])[] = (
  [
    [f8e4m3fn, f8e4m3fn, f32],
    [f8e5m2, f8e5m2, f32],
    [f8e4m3fn, f8e5m2, f32],
    [f8e5m2, f8e4m3fn, f16],
    [f4e2m1fn, f4e2m1fn, f32],
    [i4, i4, i32],
    [i4, u4, i32],
    [u4, i4, i32],
    [u4, u4, i32],
  ] as const
).map(([a, b, sum]) => [`${a.name} by ${b.name} in ${sum.name}`, { a, b, sum }]);

/** Numbers of a format whose sums of products are exact in f32, those of f16 even there. */
function draw(dtype: DType, sum: DType, count: number, random: Random): number[] {
  const most = sum === f16 ? 1 : 6;
  const drawn = Array.from({ length: count }, () => {
    const scale = dtype.kind === "float" ? 2 ** -random.below(sum === f16 ? 1 : 3) : 1;
    const float = (random.below(2 * most + 1) - most) * scale;
    return dtype.kind === "float" ? float : random.below(16) - (dtype === i4 ? 8 : 0);
  });
  return [...toNumbers(fromNumbers(dtype, [count], drawn))];
}

function exactly(a: readonly number[], b: readonly number[], c: readonly number[]): number[] {
  return c.map((start, at) => {
    const [row, column] = [Math.floor(at / n), at % n];
    let sum = start;
    for (let inner = 0; inner < k; inner += 1)
      sum += (a[row * k + inner] ?? NaN) * (b[inner * n + column] ?? NaN);
    return sum + 0;
  });
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("the kernel has this output");
  return value;
}

/** By default sm_90a is left out: instructions are those of sm_80. */
const assembled = takesAll
  ? [targets.sm_80, targets.sm_90a, targets.sm_100a]
  : [targets.sm_80, targets.sm_100a];

describe.each(cases)("%s", (_, formats) => {
  test.each(assembled)("is mma.sync for $name", (target) => {
    for (const accumulates of [false, true]) {
      const { ptx } = compileAhead(productOf(formats, accumulates), target);
      expect(ptx).toMatch(/mma\.sync\.aligned\.m16n8k(16|32)/);
      expect(ptx).not.toMatch(/fma\.rn\.f32|mad\.lo/);
      if (hasPtxas) expect(assemble(ptx, target.name)).toBe("");
    }
  });

  test.each(["sm_80", "sm_90a"] as const)("is exact where its sums are: %s", async (target) => {
    const random = new Random(7);
    const { a: left, b: right, sum } = formats;
    const [a, b] = [draw(left, sum, m * k, random), draw(right, sum, k * n, random)];
    for (const accumulates of [false, true]) {
      const c = Array.from({ length: m * n }, () => (accumulates ? random.below(64) - 32 : 0));
      for (const name of ["simulator", "emulator"] as const) {
        const device = await open(name, { target, onNotes: () => undefined });
        const { out } = await device.run(productOf(formats, accumulates), {
          a: fromNumbers(left, [m, k], a),
          b: fromNumbers(right, [k, n], b),
          c: fromNumbers(sum, [m, n], c),
        });
        expect([...toNumbers(present(out))], name).toEqual(exactly(a, b, c));
        device.dispose();
      }
    }
  });
});

test("each number of FP8 and FP4 is that of f16, and NaN and infinities stay what they are", async () => {
  for (const [dtype, codes] of [
    [f8e4m3fn, 256],
    [f8e5m2, 256],
    [f4e2m1fn, 16],
  ] as const) {
    // A number a row: what is not finite reaches no other row.
    const rows = Math.max(16, codes);
    const definition = kernel(
      {
        name: "numbers",
        inputs: { a: tensor(dtype, [rows, 16]), b: tensor(dtype, [16, 8]) },
        outputs: { out: tensor(f32, [rows, 8]) },
      },
      ({ a, b, out }) => out.store(dot(a.load(), b.load())),
    );
    const data = Uint8Array.from({ length: rows * 16 }, (__, at) => (at % 16 === 0 ? at / 16 : 0));
    const numbers = Array.from({ length: rows * 16 }, (__, at) =>
      at % 16 === 0 && at / 16 < codes ? decodeFloat(dtype.name, at / 16) : 0,
    );
    for (const target of ["sm_80", "sm_90a"] as const) {
      const device = await open("emulator", { target, onNotes: () => undefined });
      const ones = Array.from({ length: 128 }, () => 1);
      const { out } = await device.run(definition, {
        a:
          dtype === f4e2m1fn
            ? fromNumbers(dtype, [rows, 16], numbers)
            : hostArray(dtype, [rows, 16], data),
        b: fromNumbers(dtype, [16, 8], ones),
      });
      const found = toNumbers(out);
      for (let row = 0; row < rows; row += 1)
        expect((found[row * 8] ?? 0) + 0, `${dtype.name} ${row}`).toBe(
          (numbers[row * 16] ?? 0) + 0,
        );
      device.dispose();
    }
  }
});

test("a factor that several products take is converted once", () => {
  const definition = kernel(
    {
      name: "shared",
      inputs: { a: tensor(f8e4m3fn, [16, 16]), b: tensor(f8e4m3fn, [16, 8]) },
      outputs: { out: tensor(f32, [16, 8]) },
    },
    ({ a, b, out }) => {
      const [left, right] = [a.load(), b.load()];
      const first = dot(left, right);
      const sums = loop({ to: 3, carry: zeros(f32, [16, 8]) }, (_, sum) =>
        dot(left, right, { accumulator: sum }),
      );
      out.store(first.add(sums));
    },
  );
  const { ptx } = compileAhead(definition, targets.sm_90a);
  // Four words of the left factor and two of the right one.
  expect(ptx.match(/cvt\.rn\.f16x2\.e4m3x2/g)).toHaveLength(6);
});
