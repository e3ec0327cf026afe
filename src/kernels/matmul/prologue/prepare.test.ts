/** How operands are brought into a form that products read. */
import { expect, test } from "vitest";
import { codeOf } from "../../../../test/support/library-checks.ts";
import { f32 } from "../../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import { tensor, dim } from "../../../lang/index.ts";
import { lower } from "../../../lower/stages.ts";
import { printPtx } from "../../../ptx/printer.ts";
import { open } from "../../../runtime/open.ts";
import { Random } from "../../../support/random.ts";
import { targets } from "../../../targets/target.ts";
import type { MatmulConfiguration } from "../configuration.ts";
import { matmul } from "../matmul.ts";

const [m, n, k] = [dim("m"), dim("n"), dim("k")];

test.each(["tf32", "bf16x3"] as const)(
  "operands of %s are prepared in one launch, by wide accesses alone",
  (precision) => {
    const a = tensor(f32, [m, k], { strides: [1, m] });
    const op = matmul({ a, b: f32, precision });
    const [prepare, ...others] = op.kernels({ m: 4096, n: 4096, k: 4096 });
    expect(others).toHaveLength(1);
    if (prepare === undefined) throw new Error("nothing is prepared");
    const text = printPtx(lower(prepare.kernel, targets.sm_90a).module);
    const moves = text.match(/(?:ld|st)\.global\S*/g) ?? [];
    expect(moves.length).toBeGreaterThan(0);
    expect(moves.filter((move) => !/\.v[24]\.b32$/.test(move))).toEqual([]);
  },
);

test.each([
  ["bf16x3", 2],
  ["tf32x3", 2],
  ["bf16x6", 3],
  ["bf16x9", 3],
] as const)("a step of %s fetches each of the %d parts of an operand once", (precision, parts) => {
  const b = tensor(f32, [k, n], { strides: [1, k] });
  const [, product] = matmul({ a: f32, b, precision }).kernels({ m: 4096, n: 4096, k: 4096 });
  if (product === undefined) throw new Error("nothing is multiplied");
  const text = printPtx(lower(product.kernel, targets.sm_90a).module);
  expect(text.match(/cp\.async\.bulk\.tensor\S*shared::cluster\.global/g)).toHaveLength(2 * parts);
});

test("rings have a stage for each part at least, since a step reads all of them", () => {
  const configuration: MatmulConfiguration = {
    ...{ kernel: "persistent", consumers: 1, columns: 64, stages: 2 },
    ...{ schedule: "tiles", swapAB: false, cluster: 1 },
  };
  const planOf = (precision: "bf16x3" | "bf16x6") =>
    matmul({ a: f32, b: f32, precision, configuration }).plan({ m: 64, n: 64, k: 256 });
  expect(planOf("bf16x3").configuration).toEqual(configuration);
  expect(codeOf(() => planOf("bf16x6"))).toBe("TW9904");
});

test("f32 as tf32 is rounded by TMA, and transposed only where both operands lie across k", () => {
  const sizes = { m: 4096, n: 4096, k: 4096 };
  const [rows, columns] = [
    tensor(f32, [m, k], { strides: [1, m] }),
    tensor(f32, [k, n], { strides: [1, k] }),
  ];
  const planOf = (
    a: typeof rows | typeof f32,
    b: typeof columns | typeof f32,
    precision: "tf32" | "tf32x3" = "tf32",
  ) => matmul({ a, b, precision }).plan(sizes);
  expect(planOf(f32, columns).notes).toEqual([]);
  expect(planOf(rows, columns).notes).toEqual([]);
  expect(planOf(f32, f32).notes).toEqual([]);
  expect(planOf(f32, f32).configuration).toMatchObject({ swapAB: true });
  expect(planOf(rows, f32).notes).toEqual([expect.stringContaining("is transposed")]);
  expect(planOf(f32, columns, "tf32x3").notes).toHaveLength(2);
});

test.each(["tf32x3", "bf16x3", "bf16x6", "bf16x9"] as const)(
  "infinite products of f32 as %s have their sign, whatever the smaller parts have",
  async (precision) => {
    const device = await open("simulator", { onNotes: () => undefined });
    const firstOf8 = (first: number) => [first, 0, 0, 0, 0, 0, 0, 0];
    const a = fromNumbers(
      f32,
      [3, 8],
      [...firstOf8(Infinity), ...firstOf8(3e38), ...firstOf8(-Infinity)],
    );
    // Of these, the second part is negative.
    const b = fromNumbers(f32, [8, 8], [0.1, 1e30, ...Array.from({ length: 62 }, () => 0)]);
    const configuration: MatmulConfiguration = {
      kernel: "persistent",
      consumers: 1,
      columns: 64,
      stages: 3,
      schedule: "tiles",
      swapAB: false,
      cluster: 1,
    };
    const op = matmul({ a: f32, b: f32, precision, configuration });
    const { out } = await device.run(op, { a, b });
    const found = [0, 1, 2].map((row) => [...toNumbers(out).slice(row * 8, row * 8 + 2)]);
    expect(found[0]).toEqual([Infinity, Infinity]);
    expect(found[1]?.[1]).toBe(Infinity);
    expect(found[2]).toEqual([-Infinity, -Infinity]);
    device.dispose();
  },
);

/** What f32 gives that is added up number by number. */
function singleSum(left: Float32Array, right: Float32Array): number {
  let sum = 0;
  for (const [index, factor] of left.entries())
    sum = Math.fround(sum + factor * (right[index] ?? NaN));
  return sum;
}

test.each([
  ["drawn", () => new Random(7)],
  // Their second parts have one sign, so that corrections add up.
  ["the same", () => ({ uniform: () => 0.0035 })],
] as const)(
  "of positive numbers that are %s, long sums of parts have no greater error than their terms, or than those of f32",
  async (_, from) => {
    const random = from();
    const depth = 2048;
    const draw = (): Float32Array =>
      Float32Array.from({ length: 8 * depth }, () => 1 + random.uniform());
    const [left, right] = [draw(), draw()];
    const row = (of: Float32Array, index: number): Float32Array =>
      of.subarray(index * depth, (index + 1) * depth);
    const device = await open("simulator", { onNotes: () => undefined });
    const errorsOf = (found: (i: number, j: number) => number): number[] =>
      Array.from({ length: 64 }, (__, at) => {
        const [i, j] = [Math.floor(at / 8), at % 8];
        const b = row(right, j);
        const exact = row(left, i).reduce((sum, each, index) => sum + each * (b[index] ?? NaN), 0);
        return Math.abs(found(i, j) / exact - 1);
      });
    const single = Math.max(...errorsOf((i, j) => singleSum(row(left, i), row(right, j))));
    for (const [precision, most] of [
      ["bf16x3", 2 ** -15],
      ["bf16x6", Math.min(single, 2 ** -20)],
    ] as const) {
      const configuration: MatmulConfiguration = {
        ...{ kernel: "persistent", consumers: 1, columns: 8, stages: 6 },
        ...{ schedule: "tiles", swapAB: false, cluster: 1 },
      };
      const b = tensor(f32, [k, n], { strides: [1, k] });
      const op = matmul({ a: f32, b, precision, configuration });
      const given = {
        a: fromNumbers(f32, [8, depth], left),
        b: fromNumbers(f32, [8, depth], right),
      };
      const { out } = await device.run(op, given, { dimensions: { n: 8 } });
      const found = toNumbers(out);
      const error = Math.max(...errorsOf((i, j) => found[i * 8 + j] ?? NaN));
      expect(error, precision).toBeLessThanOrEqual(most);
    }
    device.dispose();
  },
);

test("an operand by columns may be a transposed view, in batches too", async () => {
  const device = await open("simulator");
  const [batch, rows, columns, depth] = [dim("b"), dim("m"), dim("n"), dim("k")];
  const count = (shape: readonly number[]): readonly number[] =>
    Array.from({ length: shape.reduce((all, extent) => all * extent, 1) }, (_, index) => index % 3);
  const weights = await device.upload(fromNumbers(f32, [2, 5, 4], count([2, 5, 4])));
  const a = fromNumbers(f32, [2, 3, 4], count([2, 3, 4]));
  const product = matmul({
    a: tensor(f32, [batch, rows, depth]),
    b: tensor(f32, [batch, depth, columns], { strides: [depth.mul(columns), 1, depth] }),
    precision: "ieee",
  });
  const { out } = await device.run(product, { a, b: weights.transpose([0, 2, 1]) });
  const expected = count([2, 3, 5]).map((_, index) => {
    const [own, row, column] = [Math.floor(index / 15), Math.floor(index / 5) % 3, index % 5];
    const factors = [0, 1, 2, 3].map(
      (at) => ((own * 12 + row * 4 + at) % 3) * ((own * 20 + column * 4 + at) % 3),
    );
    return factors.reduce((sum, each) => sum + each, 0);
  });
  expect([...toNumbers(out)]).toEqual(expected);
  weights.dispose();
  device.dispose();
});
