/**
 * FP8 whose blocks have scales of f32, against sums in float64: elements are small whole numbers and scales powers of two, so that
 * every sum is exact.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { codeOf } from "../../../test/support/library-checks.ts";
import { dealtTo } from "../../../test/support/sample.ts";
import type { Device } from "../../device/device.ts";
import { bf16, f32, f8e4m3fn, f8e5m2, i32 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { multiplySizes } from "../../ir/size.ts";
import { dim, tensor } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { raggedDot } from "../ragged/ragged-dot.ts";
import type { MatmulConfiguration, TiledConfiguration } from "./configuration.ts";
import { matmul } from "./matmul.ts";

const devices = new Map<string, Device>();
beforeAll(async () => {
  for (const kind of ["simulator", "emulator"] as const)
    devices.set(kind, await open(kind, { onNotes: () => undefined }));
});
afterAll(() => {
  for (const device of devices.values()) device.dispose();
});

function deviceOf(kind: string): Device {
  const found = devices.get(kind);
  if (found === undefined) throw new Error(`${kind} is not open`);
  return found;
}

const persistent: MatmulConfiguration = {
  ...{ kernel: "persistent", consumers: 1, columns: 64, stages: 2 },
  ...{ schedule: "tiles", swapAB: false, cluster: 1 },
};
const swapped: MatmulConfiguration = { ...persistent, columns: 16, swapAB: true };
const paired: MatmulConfiguration = { ...persistent, consumers: 2, columns: 128, cluster: 2 };
const acrossBlocks: MatmulConfiguration = { ...persistent, columns: 192 };
const pairedAcross: MatmulConfiguration = { ...paired, columns: 192 };
const parted: MatmulConfiguration = { ...persistent, schedule: "stream-k" };
const plain: MatmulConfiguration = { kernel: "plain", rows: 64, columns: 64, depth: 64, splitK: 2 };

interface Sizes {
  readonly batch?: number;
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/** Operands, their scales and what they come to: a scale of a for so many rows, and one of b for so many columns. */
function drawn({ batch = 1, m, n, k }: Sizes, spans: readonly [a: number, b: number], seed = 1) {
  const random = new Random(seed);
  const whole = (count: number) => Float64Array.from({ length: count }, () => random.below(5) - 2);
  const powers = (count: number) =>
    Float64Array.from({ length: count }, () => 2 ** (random.below(5) - 2));
  const blocks = Math.ceil(k / 128);
  const [rows, columns] = [Math.ceil(m / spans[0]), Math.ceil(n / spans[1])];
  const [a, b] = [whole(batch * m * k), whole(batch * n * k)];
  const [aScale, bScale] = [powers(batch * rows * blocks), powers(batch * columns * blocks)];
  const out = new Float64Array(batch * m * n);
  const at = (of: Float64Array, index: number): number => of[index] as number;
  for (let each = 0; each < batch; each++)
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++)
        for (let l = 0; l < k; l++) {
          const block = Math.floor(l / 128);
          const left = at(aScale, (each * rows + Math.floor(i / spans[0])) * blocks + block);
          const right = at(bScale, (each * columns + Math.floor(j / spans[1])) * blocks + block);
          const term = at(a, (each * m + i) * k + l) * at(b, (each * n + j) * k + l);
          out[(each * m + i) * n + j] = at(out, (each * m + i) * n + j) + left * right * term;
        }
  return { a, b, aScale, bScale, out, blocks, rows, columns };
}

const [m, n, k] = [dim("m"), dim("n"), dim("k")];
const stride = multiplySizes(k, n);
const byColumns = tensor(f8e4m3fn, [k, n], { strides: [1, k] });

const products: readonly (readonly [string, Sizes, readonly [1, 1 | 128], MatmulConfiguration])[] =
  [
    ["1 × 128 and 128 × 128", { m: 70, n: 200, k: 256 }, [1, 128], persistent],
    ["rows of a along columns of tiles", { m: 5, n: 130, k: 384 }, [1, 128], swapped],
    ["1 × 128 of both", { m: 66, n: 80, k: 200 }, [1, 1], persistent],
    ["pairs of blocks", { m: 130, n: 136, k: 256 }, [1, 128], paired],
    ["tiles that are split", { m: 64, n: 64, k: 1024 }, [1, 128], parted],
    ["columns of two blocks in pairs", { m: 130, n: 300, k: 256 }, [1, 128], pairedAcross],
    ["columns of two blocks", { m: 40, n: 300, k: 256 }, [1, 128], acrossBlocks],
    ["scales that travel", { m: 70, n: 200, k: 512 }, [1, 128], persistent],
    ["… with rows of a along columns", { m: 5, n: 130, k: 512 }, [1, 128], swapped],
    ["… with columns of two blocks", { m: 40, n: 300, k: 512 }, [1, 128], acrossBlocks],
    ["… to pairs of blocks", { m: 130, n: 136, k: 512 }, [1, 128], paired],
    ["the plain kernel", { m: 65, n: 100, k: 300 }, [1, 128], plain],
  ];
const grouped: readonly (readonly [string, TiledConfiguration])[] = [
  ["plain", { ...plain, splitK: 1 } as TiledConfiguration],
  ["persistent", persistent as TiledConfiguration],
  ["swapped", swapped as TiledConfiguration],
];

describe.each(["simulator", "emulator"] as const)("blocks with scales on the %s", (kind) => {
  test.each(dealtTo(kind, products))("%s", async (_, sizes, spans, configuration) => {
    const given = drawn(sizes, spans);
    const operation = matmul({
      ...{ a: f8e4m3fn, b: byColumns, out: f32, accumulation: "promoted", configuration },
      blockScales: { a: [spans[0], 128], b: [128, spans[1]] },
    });
    const { out } = await deviceOf(kind).run(
      operation,
      {
        a: fromNumbers(f8e4m3fn, [sizes.m, sizes.k], given.a),
        b: fromNumbers(f8e4m3fn, [sizes.n, sizes.k], given.b),
        aScale: fromNumbers(f32, [given.rows, given.blocks], given.aScale),
        bScale: fromNumbers(f32, [given.columns, given.blocks], given.bScale),
      } as never,
      { dimensions: { ...sizes } },
    );
    expect(Array.from(toNumbers(out))).toEqual(Array.from(given.out));
  });

  test("a batch, an epilogue, and FP8 of two kinds", async () => {
    const sizes = { batch: 2, m: 17, n: 128, k: 256 };
    const given = drawn(sizes, [1, 128], 3);
    const batch = dim("batch");
    const operation = matmul({
      a: tensor(f8e4m3fn, [batch, m, k]),
      b: tensor(f8e5m2, [batch, k, n], { strides: [stride, 1, k] }),
      ...{ out: f32, accumulation: "promoted", blockScales: { a: [1, 128], b: [128, 128] } },
      inputs: { bias: tensor(f32, [n]), globalScale: tensor(f32, [1]) },
      epilogue: ({ sums, bias, globalScale }) => sums.mul(globalScale).add(bias),
    });
    const bias = Float64Array.from({ length: sizes.n }, (_, j) => j - 60);
    const { out } = await deviceOf(kind).run(
      operation,
      {
        a: fromNumbers(f8e4m3fn, [2, sizes.m, sizes.k], given.a),
        b: fromNumbers(f8e5m2, [2, sizes.n, sizes.k], given.b),
        aScale: fromNumbers(f32, [2, given.rows, given.blocks], given.aScale),
        bScale: fromNumbers(f32, [2, given.columns, given.blocks], given.bScale),
        bias: fromNumbers(f32, [sizes.n], bias),
        globalScale: fromNumbers(f32, [1], [0.25]),
      } as never,
      { dimensions: sizes },
    );
    const wanted = given.out.map((sum, index) => sum * 0.25 + (bias[index % sizes.n] ?? NaN));
    expect(Array.from(toNumbers(out))).toEqual(Array.from(wanted));
  });

  test.each(dealtTo(kind, grouped))(
    "groups of rows with matrices of their own, %s",
    async (_, configuration) => {
      const [rows, groups] = [[5, 0, 70], 3];
      const sizes = { batch: groups, m: 75, n: 130, k: 512 };
      // As a batch each group has all rows; its own are taken from there.
      const given = drawn(sizes, [1, 128], 5);
      const bounds = [0, 5, 5, 75];
      const g = dim("g");
      const operation = raggedDot({
        a: f8e4m3fn,
        b: tensor(f8e4m3fn, [g, k, n], { strides: [stride, 1, k] }),
        ...{ out: f32, accumulation: "promoted", configuration },
        blockScales: { a: [1, 128], b: [128, 128] },
      });
      const pick = (from: Float64Array, width: number): Float64Array =>
        Float64Array.from({ length: sizes.m * width }, (_, index) => {
          const row = Math.floor(index / width);
          const group = bounds.findLastIndex((start, at) => at < groups && row >= start);
          return from[group * sizes.m * width + index] as number;
        });
      const { out } = await deviceOf(kind).run(
        operation,
        {
          a: fromNumbers(f8e4m3fn, [sizes.m, sizes.k], pick(given.a, sizes.k)),
          b: fromNumbers(f8e4m3fn, [groups, sizes.n, sizes.k], given.b),
          aScale: fromNumbers(f32, [sizes.m, given.blocks], pick(given.aScale, given.blocks)),
          bScale: fromNumbers(f32, [groups, given.columns, given.blocks], given.bScale),
          groupSizes: fromNumbers(i32, [groups], Float64Array.from(rows)),
        } as never,
        { dimensions: { g: groups, m: sizes.m, n: sizes.n, k: sizes.k } },
      );
      expect(Array.from(toNumbers(out))).toEqual(Array.from(pick(given.out, sizes.n)));
    },
  );
});

test("scales of other blocks are noticed", async () => {
  const sizes = { m: 8, n: 16, k: 256 };
  const given = drawn(sizes, [1, 128]);
  const operation = matmul({
    ...{ a: f8e4m3fn, b: byColumns, out: f32, accumulation: "promoted" },
    blockScales: { a: [1, 128], b: [128, 128] },
  });
  const inputs = (aScale: Float64Array) =>
    ({
      a: fromNumbers(f8e4m3fn, [sizes.m, sizes.k], given.a),
      b: fromNumbers(f8e4m3fn, [sizes.n, sizes.k], given.b),
      aScale: fromNumbers(f32, [given.rows, given.blocks], aScale),
      bScale: fromNumbers(f32, [given.columns, given.blocks], given.bScale),
    }) as never;
  const { out } = await deviceOf("simulator").run(operation, inputs(given.aScale), {
    dimensions: sizes,
  });
  expect(Array.from(toNumbers(out))).toEqual(Array.from(given.out));
  const mutated = await deviceOf("simulator").run(operation, inputs(given.aScale.toReversed()), {
    dimensions: sizes,
  });
  expect(Array.from(toNumbers(mutated.out))).not.toEqual(Array.from(given.out));
});

test("blocks that there are none of are refused", () => {
  const given = { a: f8e4m3fn, b: byColumns, accumulation: "promoted" } as const;
  const withBlocks = (blockScales: unknown, more: object = {}) =>
    codeOf(() => matmul({ ...given, blockScales, ...more } as never));
  expect(withBlocks({ a: [1, 64], b: [128, 128] })).toBe("TW9902");
  expect(withBlocks({ a: [1, 128], b: [128, 100] })).toBe("TW9902");
  expect(withBlocks({ a: [1, 128] })).toBe("TW9902");
  expect(withBlocks({ a: [1, 128], b: [128, 128] }, { accumulation: "fast" })).toBe("TW9903");
  expect(
    codeOf(() =>
      matmul({ a: bf16, b: bf16, blockScales: { a: [1, 128], b: [128, 128] } } as never),
    ),
  ).toBe("TW9903");
  const wide = { ...persistent, columns: 96 + 64 };
  const operation = matmul({
    ...given,
    blockScales: { a: [1, 128], b: [128, 128] },
    configuration: wide as never,
  });
  expect(codeOf(() => operation.plan({ m: 256, n: 256, k: 256 }))).toBe("TW9904");
  const b: DType = f8e4m3fn;
  expect(
    codeOf(() =>
      raggedDot({
        a: f8e4m3fn,
        b,
        accumulation: "promoted",
        blockScales: { a: [128, 128], b: [128, 128] },
      } as never),
    ),
  ).toBe("TW9902");
});

test("operands that are more than the cache holds are multiplied in pairs of blocks", () => {
  const b = tensor(f8e4m3fn, [dim("k"), dim("n")], { strides: [1, dim("k")] });
  const spec = { a: f8e4m3fn, b, accumulation: "promoted" } as const;
  const scaled = matmul({ ...spec, blockScales: { a: [1, 128], b: [128, 128] } });
  const chosen = (op: typeof scaled, m: number, n: number, k: number): unknown =>
    op.plan({ m, n, k }, "sm_90a").configuration;
  const pair = { columns: 192, stages: 4, schedule: "tiles", cluster: 2 };
  expect(chosen(scaled, 4096, 7168, 16384)).toMatchObject(pair);
  expect(chosen(scaled, 4096, 4096, 7168)).toMatchObject(pair);
  expect(chosen(scaled, 4096, 2112, 7168)).toMatchObject({ cluster: 1 });
  expect(chosen(matmul(spec), 4096, 7168, 16384)).toMatchObject({ cluster: 1 });
});
