/** Further outputs of the epilogue against float64, exactly: operands are small whole numbers. */
import { expect, test } from "vitest";
import { codeOf } from "../../../../test/support/library-checks.ts";
import type { Device } from "../../../device/device.ts";
import { bf16, f16, f32, i4 } from "../../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import { tensor, dim } from "../../../lang/index.ts";
import { place } from "../../../lower/stages.ts";
import { open } from "../../../runtime/open.ts";
import { Random } from "../../../support/random.ts";
import { targets } from "../../../targets/target.ts";
import type { MatmulConfiguration } from "../configuration.ts";
import { matmul } from "../matmul.ts";
import { quantizeWeights } from "../weights/quantize-weights.ts";
import { quantized } from "../weights/quantized.ts";

const [m, n, k, batch] = [dim("m"), dim("n"), dim("k"), dim("batch")];

const persistent: MatmulConfiguration = {
  ...{ kernel: "persistent", consumers: 1, columns: 128, stages: 2 },
  ...{ schedule: "tiles", swapAB: false, cluster: 1 },
};
const plain: MatmulConfiguration = {
  ...{ kernel: "plain", rows: 64, columns: 64, depth: 32, splitK: 1 },
};
const configurations: { readonly [name: string]: MatmulConfiguration } = {
  persistent,
  swapAB: { ...persistent, columns: 16, swapAB: true },
  plain,
  "plain, split": { ...plain, splitK: 2 },
};
const inParts: MatmulConfiguration = {
  ...{ ...persistent, columns: 16, swapAB: true, schedule: "split-k" },
};

const outputs = {
  before: tensor(bf16, [m, n]),
  largest: { array: tensor(f32, [m]), combine: "max" },
  least: { array: tensor(f32, [n]), combine: "min" },
  total: { array: tensor(f32, [n]), combine: "sum" },
} as const;

function whole(count: number, seed: number): Float64Array {
  const random = new Random(seed);
  return Float64Array.from({ length: count }, () => random.below(5) - 2);
}

/** Sums less 200, so that a piece that overhangs would show: what is outside is 0. */
async function agrees(device: Device, configuration: MatmulConfiguration | undefined, depth = 64) {
  const [rows, columns] = [70, 136];
  const op = matmul({
    ...{ a: bf16, b: bf16, out: f32, outputs },
    inputs: { shift: tensor(f32, [n]) },
    epilogue: ({ sums, shift }) => {
      const moved = sums.sub(shift);
      return {
        out: moved.abs(),
        before: sums.cast(bf16),
        largest: moved,
        least: moved,
        total: sums,
      };
    },
    ...(configuration && { configuration }),
  });
  const [a, b] = [whole(rows * depth, 1), whole(depth * columns, 2)];
  const shift = Float64Array.from({ length: columns }, (_, column) => 200 + column);
  const result = await device.run(op, {
    a: fromNumbers(bf16, [rows, depth], a),
    b: fromNumbers(bf16, [depth, columns], b),
    shift: fromNumbers(f32, [columns], shift),
  });
  const sums = Array.from({ length: rows }, (_, i) =>
    Array.from({ length: columns }, (__, j) => {
      let sum = 0;
      for (let l = 0; l < depth; l += 1)
        sum += (a[i * depth + l] ?? NaN) * (b[l * columns + j] ?? NaN);
      return sum + 0;
    }),
  );
  const moved = sums.map((row) => row.map((sum, j) => sum - (shift[j] ?? NaN)));
  const column = (matrix: readonly number[][], j: number): number[] =>
    matrix.map((row) => row[j] ?? NaN);
  const listed = (given: Parameters<typeof toNumbers>[0]) =>
    [...toNumbers(given)].map((value) => value + 0);
  expect(listed(result.out)).toEqual(moved.flat().map(Math.abs));
  expect(listed(result.before)).toEqual(sums.flat());
  expect(listed(result.largest)).toEqual(moved.map((row) => Math.max(...row)));
  expect(listed(result.least)).toEqual(
    shiftIndices(columns).map((j) => Math.min(...column(moved, j))),
  );
  expect(listed(result.total)).toEqual(
    shiftIndices(columns).map((j) => column(sums, j).reduce((all, sum) => all + sum, 0) + 0),
  );
}

function shiftIndices(count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => index);
}

test.each([
  ["parts of k", 520],
  ["one part of k", 64],
])("%s", async (_, depth) => {
  const device = await open("simulator");
  await agrees(device, inParts, depth);
  device.dispose();
});

test.each(Object.entries(configurations))("%s", async (_, configuration) => {
  const device = await open("simulator", { onNotes: () => undefined });
  await agrees(device, configuration);
  device.dispose();
});

test("on the emulator", { timeout: 600_000 }, async () => {
  const device = await open("emulator", { onNotes: () => undefined });
  await agrees(device, configurations["swapAB"]);
  device.dispose();
});

test("few rows with weights in few bits, and nothing to multiply", async () => {
  const device = await open("simulator", { onNotes: () => undefined });
  const weights = quantized(i4, [k, n], { scale: bf16 });
  const numbers = Float64Array.from({ length: 128 * 40 }, (_, index) => (index % 15) - 7);
  const x = fromNumbers(f32, [128, 40], numbers);
  const packed = await device.run(quantizeWeights({ x: f32, b: weights }), { x });
  const op = matmul({
    ...{ a: bf16, b: weights, out: f32 },
    outputs: { largest: { array: tensor(f32, [m]), combine: "max" } },
    epilogue: ({ sums }) => ({ out: sums, largest: sums }),
    configuration: { kernel: "skinny", rows: 8, columns: 64, sliceK: 4, stages: 4, splitK: 1 },
  });
  const a = fromNumbers(bf16, [3, 128], whole(3 * 128, 5));
  const { out, largest } = await device.run(op, { a, ...packed });
  const sums = [...toNumbers(out)];
  const rows = [0, 1, 2].map((row) => Math.max(...sums.slice(row * 40, row * 40 + 40)));
  expect([...toNumbers(largest)]).toEqual(rows);
  const empty = matmul({
    ...{ a: bf16, b: bf16, out: f32 },
    outputs: { largest: { array: tensor(f32, [m]), combine: "max" } },
    epilogue: ({ sums: tile }) => ({ out: tile, largest: tile }),
  });
  const none = await device.run(empty, {
    a: fromNumbers(bf16, [2, 8], whole(16, 1)),
    b: fromNumbers(bf16, [8, 0], []),
  });
  expect([...toNumbers(none.largest)]).toEqual([-Infinity, -Infinity]);
  device.dispose();
});

test("mistakes are reported", () => {
  const never = (value: unknown): never => value as never;
  const given = { a: bf16, b: bf16, out: f32 } as const;
  const epilogue = never(({ sums }: { readonly sums: unknown }) => ({ out: sums, x: sums }));
  const made = (x: unknown, more: object = {}) =>
    matmul({ ...given, epilogue, ...more, outputs: never({ x }) });
  const fits = { m: 64, n: 64, k: 64 };
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9902", () => made(5)],
    ["TW9902", () => made(tensor(f32, [m]))],
    ["TW9902", () => made({ array: tensor(f32, [m]), combine: "mean" })],
    ["TW9902", () => made({ array: tensor(f32, [k]), combine: "sum" })],
    ["TW9902", () => made({ array: tensor(f16, [m]), combine: "sum" })],
    ["TW9902", () => matmul({ ...given, epilogue, outputs: never({ out: tensor(f32, [m, n]) }) })],
    [
      "TW9902",
      () => made({ array: tensor(f32, [m]), combine: "sum" }, { a: tensor(bf16, [batch, m, k]) }),
    ],
    ["TW9905", () => matmul({ ...given, outputs: { x: tensor(f32, [m, n]) } })],
    ["TW9905", () => made(tensor(f32, [m, n]), { inputs: { x: tensor(f32, [n]) } })],
    ["TW9905", () => made(tensor(bf16, [m, n])).kernels(fits)],
    [
      "TW9905",
      () =>
        matmul({
          ...given,
          outputs: { x: tensor(f32, [m, n]) },
          epilogue: never(({ sums }: { readonly sums: unknown }) => sums),
        }).kernels(fits),
    ],
  ];
  for (const [code, make] of refused) expect(codeOf(make)).toBe(code);
});

test.each([
  ["bf16", bf16],
  ["bf16, with weights in 4 bits", quantized(i4, [k, n], { scale: bf16 })],
] as const)(
  "%s: large tiles leave room for columns that are combined, and for what is added to tiles of swapped operands",
  (_, b) => {
    const op = matmul({
      ...{ a: bf16, b: b as typeof bf16, out: f32 },
      inputs: { residual: tensor(f32, [m, n]) },
      outputs: {
        largest: { array: tensor(f32, [m]), combine: "max" },
        total: { array: tensor(f32, [n]), combine: "sum" },
      },
      epilogue: ({ sums, residual }) => {
        const out = sums.add(residual);
        return { out, largest: out, total: sums };
      },
    });
    const { configuration, launches } = op.plan({ m: 4096, n: 4096, k: 4096 }, "sm_90a");
    expect(configuration).toMatchObject({ kernel: "persistent" });
    for (const { kernel } of launches)
      expect(place(kernel.kernel, targets.sm_90a).kernel.placed?.sharedBytes).toBeLessThanOrEqual(
        targets.sm_90a.sharedMemoryPerBlock,
      );
  },
);
