/** Products of parts of larger arrays, in forms as programs have them and at random, over whole numbers whose sums are exact. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { takesAll } from "../../../test/support/sample.ts";
import { bf16, f16, f32, f64, i8 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import type { Device } from "../../device/device.ts";
import { tensor } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import type { MatmulConfiguration } from "./configuration.ts";
import { matmul } from "./matmul.ts";

type Formats = {
  readonly dtype: DType;
  readonly precision?: "tf32" | "tf32x3" | "bf16x6" | "ieee";
};

const devices = new Map<string, Device>();
beforeAll(async () => {
  for (const kind of ["simulator", "emulator"] as const)
    devices.set(kind, await open(kind, { onNotes: () => undefined }));
});
afterAll(() => {
  for (const device of devices.values()) device.dispose();
});

/** A part of an array: extents of batch, rows and columns, and how far apart each lies. */
interface Part {
  readonly shape: readonly number[];
  readonly strides: readonly number[];
}

interface Product extends Formats {
  readonly a: Part;
  readonly b: Part;
  readonly out?: Part | undefined;
  readonly configuration?: MatmulConfiguration;
}

function spanOf({ shape, strides }: Part): number {
  return shape.reduce((reach, extent, axis) => reach + (extent - 1) * (strides[axis] ?? 0), 1);
}

/** The element of a part at a place of the batch, in which an axis of 1 is for all. */
function placeIn(
  { shape, strides }: Part,
  batch: readonly number[],
  row: number,
  column: number,
): number {
  const place = [...batch.slice(batch.length - (shape.length - 2)), row, column];
  return place.reduce(
    (sum, at, axis) => sum + (shape[axis] === 1 ? 0 : at) * (strides[axis] ?? 0),
    0,
  );
}

async function isRight(kind: string, product: Product, random: Random): Promise<void> {
  const device = devices.get(kind);
  if (device === undefined) throw new Error(`no ${kind}`);
  const { a, b, out, dtype, precision, configuration } = product;
  const [m, n] = [a.shape.at(-2) ?? 1, b.shape.at(-1) ?? 1];
  const rank = Math.max(a.shape.length, b.shape.length) - 2;
  const batch = Array.from({ length: rank }, (_, axis) =>
    Math.max(...[a, b].map(({ shape }) => shape[axis - rank + shape.length - 2] ?? 1)),
  );
  const result = dtype === i8 ? undefined : dtype;
  const spec = (part: Part) => tensor(dtype, part.shape, { strides: part.strides });
  const operation = matmul({
    a: spec(a),
    b: spec(b),
    ...(out !== undefined &&
      result !== undefined && { out: tensor(result, out.shape, { strides: out.strides }) }),
    ...(precision !== undefined && { precision }),
    ...(configuration !== undefined && { configuration }),
  } as never);
  const numbers = (part: Part) => Array.from({ length: spanOf(part) }, () => random.below(7) - 3);
  const [left, right] = [numbers(a), numbers(b)];
  const count = batch.reduce((all, each) => all * each, m * n);
  const length = out === undefined ? count : spanOf(out);
  const format = operation.outputs["out"].dtype;
  const marks = Array.from({ length }, () => 77);
  const arrays = {
    a: await device.upload(fromNumbers(dtype, [left.length], left)),
    b: await device.upload(fromNumbers(dtype, [right.length], right)),
    out: await device.upload(
      fromNumbers(
        format,
        operation.outputs["out"].strides === undefined
          ? [...(batch.length === 0 ? [] : [count / m / n]), m, n]
          : [length],
        marks,
      ),
    ),
  };
  try {
    device.launch(operation as never, arrays as never);
    expect([...toNumbers(await device.download(arrays.out))]).toEqual([
      ...expectedOf(product, [left, right], marks, batch),
    ]);
  } finally {
    for (const array of Object.values(arrays)) array.dispose();
  }
}

/** The result, or the larger array that it is a part of, among whose elements the others stay. */
function expectedOf(
  { a, b, out }: Product,
  [left, right]: readonly [readonly number[], readonly number[]],
  marks: readonly number[],
  batch: readonly number[],
): Float64Array {
  const [m = 1, k = 1] = a.shape.slice(-2);
  const n = b.shape.at(-1) ?? 1;
  const expected = Float64Array.from(marks);
  const places = batch.reduce<readonly (readonly number[])[]>(
    (all, extent) =>
      all.flatMap((before) => Array.from({ length: extent }, (_, at) => [...before, at])),
    [[]],
  );
  for (const [layer, at] of places.entries())
    for (let row = 0; row < m; row++)
      for (let column = 0; column < n; column++) {
        let sum = 0;
        for (let step = 0; step < k; step++)
          sum +=
            (left[placeIn(a, at, row, step)] ?? 0) * (right[placeIn(b, at, step, column)] ?? 0);
        const place =
          out === undefined ? (layer * m + row) * n + column : placeIn(out, at, row, column);
        expected[place] = sum;
      }
  return expected;
}

/** A part whose axes lie in an order, the last of them the innermost, with room beside some. */
function partOf(
  shape: readonly number[],
  order: readonly number[],
  room: (axis: number) => number,
): Part {
  const strides = new Array<number>(shape.length).fill(0);
  let stride = 1;
  for (const axis of order.toReversed()) {
    strides[axis] = stride;
    stride *= (shape[axis] ?? 1) + room(axis);
  }
  return { shape, strides };
}

const none = (): number => 0;

describe.each(["simulator", "emulator"])("on the %s", (kind) => {
  const random = new Random(3);

  test("heads cut out of one array, whose results lie side by side again", async () => {
    const [batch, heads, tokens, depth] = [2, 3, 24, 16];
    const cut = (columns: boolean): Part => {
      const strides = [tokens * 3 * heads * depth, depth, 3 * heads * depth, 1];
      return columns
        ? {
            shape: [batch, heads, depth, tokens],
            strides: [strides[0] ?? 0, strides[1] ?? 0, 1, strides[2] ?? 0],
          }
        : { shape: [batch, heads, tokens, depth], strides };
    };
    await isRight(kind, { dtype: bf16, a: cut(false), b: cut(true) }, random);
    const scores = partOf([batch, heads, tokens, tokens], [0, 1, 2, 3], none);
    const out = {
      shape: [batch, heads, tokens, depth],
      strides: [tokens * heads * depth, depth, heads * depth, 1],
    };
    await isRight(kind, { dtype: bf16, a: scores, b: cut(false), out }, random);
  });

  test("heads that share keys of a cache", async () => {
    const [groups, each, tokens, depth] = [2, 4, 16, 32];
    const keys = { shape: [groups, 1, depth, tokens], strides: [depth, depth, 1, groups * depth] };
    const queries = {
      shape: [groups, each, 5, depth],
      strides: [each * depth, depth, groups * each * depth, 1],
    };
    await isRight(kind, { dtype: f16, a: queries, b: keys }, random);
  });

  test("some columns of a matrix, in parts of k as well", async () => {
    const part = { shape: [64, 256], strides: [320, 1] };
    const weights = { shape: [256, 40], strides: [1, 264] };
    await isRight(
      kind,
      { dtype: bf16, a: part, b: weights, out: { shape: [64, 40], strides: [48, 1] } },
      random,
    );
    const configuration = {
      kernel: "persistent",
      consumers: 1,
      columns: 64,
      stages: 4,
      schedule: "split-k",
      swapAB: false,
      cluster: 1,
    } as const;
    if (kind === "emulator")
      await isRight(
        kind,
        {
          dtype: bf16,
          a: part,
          b: weights,
          out: { shape: [64, 40], strides: [48, 1] },
          configuration,
        },
        random,
      );
  });

  test("random parts", async () => {
    const count = takesAll ? 200 : kind === "emulator" ? 3 : 6;
    for (let seed = 1; seed <= count; seed++) {
      const draws = new Random(seed);
      const extent = (most: number): number => (draws.below(4) === 0 ? 1 : 1 + draws.below(most));
      const rank = draws.below(3);
      const batch = Array.from({ length: rank }, () => 1 + draws.below(3));
      const [m, n, k] = [extent(40), extent(40), 1 + draws.below(70)];
      const shared = (): readonly number[] =>
        rank === 2 ? batch.map((each) => (draws.below(3) === 0 ? 1 : each)) : batch;
      const drawn = (shape: readonly number[], swaps: boolean): Part => {
        const axes = shape.map((_, axis) => axis);
        const last = axes.slice(-2);
        const lying = swaps && draws.below(2) === 0 ? last.toReversed() : last;
        const inner = lying[1] ?? 0;
        const rest = [...axes.slice(0, -2), lying[0] ?? 0];
        const order = [
          ...rest
            .map((axis) => ({ axis, key: draws.uniform() }))
            .sort((one, other) => one.key - other.key)
            .map(({ axis }) => axis),
          inner,
        ];
        const step = draws.pick([0, 1, 8]);
        // Neighbours lie together; what else there is of the larger array lies beside.
        return partOf(shape, order, (axis) =>
          axis === inner || draws.below(2) === 0 ? step : draws.below(3),
        );
      };
      const formats = draws.pick<Formats>([
        { dtype: bf16 },
        { dtype: f16 },
        { dtype: f64 },
        { dtype: i8 },
        { dtype: f32, precision: "tf32" },
        { dtype: f32, precision: "tf32x3" },
        { dtype: f32, precision: "bf16x6" },
        { dtype: f32, precision: "ieee" },
      ]);
      const product = {
        ...formats,
        a: drawn([...shared(), m, k], true),
        b: drawn([...shared(), k, n], true),
      };
      const [one, other] = [product.a, product.b].map(({ shape }) => shape.slice(0, -2));
      const all = one?.map((each, axis) => Math.max(each, other?.[axis] ?? 1)) ?? [];
      const out =
        formats.dtype === i8 || draws.below(2) === 0 ? undefined : drawn([...all, m, n], false);
      try {
        await isRight(kind, { ...product, out }, draws);
      } catch (error) {
        throw new Error(
          `seed ${seed}: ${JSON.stringify({ ...product, out, dtype: formats.dtype.name })}`,
          { cause: error },
        );
      }
    }
  });
});

test("what cannot be read is refused", () => {
  const plain = tensor(bf16, [16, 16]);
  const code = (spec: object): string => {
    try {
      matmul(spec as never);
      return "none";
    } catch (error) {
      return (error as { readonly code: string }).code;
    }
  };
  // Neighbours along neither, rows that overlap, batches that differ, a result by columns, operands that are computed.
  expect(code({ a: tensor(bf16, [16, 16], { strides: [64, 2] }), b: plain })).toBe("TW9902");
  expect(code({ a: tensor(bf16, [16, 16], { strides: [8, 1] }), b: plain })).toBe("TW9902");
  expect(code({ a: tensor(bf16, [2, 3, 16, 16]), b: tensor(bf16, [3, 2, 16, 16]) })).toBe("TW9902");
  expect(code({ a: plain, b: plain, out: tensor(bf16, [16, 16], { strides: [1, 32] }) })).toBe(
    "TW9902",
  );
  expect(code({ a: plain, b: plain, out: tensor(bf16, [16, 24]) })).toBe("TW9902");
  const prologue = { a: { as: bf16, compute: ({ a }: { readonly a: unknown }) => a } };
  expect(code({ a: tensor(bf16, [16, 16], { strides: [32, 1] }), b: plain, prologue })).toBe(
    "TW9902",
  );
});
