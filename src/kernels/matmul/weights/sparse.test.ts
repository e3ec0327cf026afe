/** Sparse weights: what is held of them, and their products, against float64. */
import { describe, expect, test } from "vitest";
import { bf16, dtypes, f16, f32, f8e4m3fn, f8e5m2, i32, i8 } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import type { HostArray } from "../../../formats/hostarray.ts";
import { tensor, dim } from "../../../lang/index.ts";
import { Random } from "../../../support/random.ts";
import { open } from "../../../runtime/open.ts";
import { targets } from "../../../targets/target.ts";
import { compress24, expand24 } from "./compress-weights.ts";
import { matmul } from "../matmul.ts";
import { sparse24 } from "./sparse-weights.ts";
import type { SparseFormat } from "./sparse-weights.ts";

function draw(dtype: DType, shape: readonly number[], random: Random): HostArray {
  const count = shape.reduce((all, extent) => all * extent, 1);
  const number = (): number =>
    dtype.kind === "float"
      ? random.normal()
      : random.below(200) - (dtype.kind === "signed" ? 100 : 0);
  return fromNumbers(dtype, shape, Array.from({ length: count }, number));
}

/** Two of every four along k, by sorting: the greatest magnitudes, of equal ones the first. */
function pruned(weights: HostArray): Float64Array {
  const [k = 0, n = 0] = weights.shape;
  const numbers = toNumbers(weights);
  const kept = new Float64Array(k * n);
  for (let column = 0; column < n; column += 1)
    for (let start = 0; start < k; start += 4) {
      const places = [0, 1, 2, 3].map((at) => start + at).filter((at) => at < k);
      const size = (at: number): number => {
        const value = numbers[at * n + column] ?? 0;
        return Number.isNaN(value) ? Infinity : Math.abs(value);
      };
      places.sort((left, right) => size(right) - size(left) || left - right);
      for (const at of places.slice(0, 2)) kept[at * n + column] = numbers[at * n + column] ?? 0;
    }
  return kept;
}

const weightsOf = (dtype: DType) => sparse24(dtype as DType<SparseFormat>, [dim("k"), dim("n")]);

type Kind = "simulator" | "emulator";

async function compressed(weights: HostArray, kind: Kind = "simulator") {
  const device = await open(kind);
  try {
    return await device.run(compress24(weightsOf(weights.dtype)), { x: weights as never });
  } finally {
    device.dispose();
  }
}

/** The weights that compressed ones stand for. */
async function expanded(weights: HostArray, kind: Kind = "simulator") {
  const stored = await compressed(weights, kind);
  const device = await open(kind);
  try {
    const [k = 0] = weights.shape;
    const spec = weightsOf(weights.dtype);
    const { x } = await device.run(expand24(spec), stored as never, { dimensions: { k } });
    return { stored, back: x as HostArray };
  } finally {
    device.dispose();
  }
}

describe("weights that hold two of every four along k", () => {
  test.each([
    ["bf16", 70, 130, "emulator"],
    ["f16", 64, 64, "simulator"],
    ["f8e4m3fn", 128, 65, "simulator"],
    ["f8e5m2", 65, 64, "simulator"],
    ["i8", 68, 70, "emulator"],
    ["u8", 1, 1, "simulator"],
  ] as const)("%s of %i by %i on the %s: the greatest ones", async (name, k, n, kind) => {
    const seed = 24;
    const weights = draw(dtypes[name], [k, n], new Random(seed));
    const { stored, back } = await expanded(weights, kind);
    expect([...toNumbers(back)], `seed ${seed}`).toEqual([...pruned(weights)]);
    expect(stored.b.shape).toEqual([n, 32 * Math.ceil(k / 64)]);
    expect(stored.bMetadata.shape).toEqual([Math.ceil(n / 64), Math.ceil(k / 64), 256]);
  });

  test("of equal magnitudes the first, and NaN before all numbers", async () => {
    const weights = fromNumbers(bf16, [8, 1], [1, -1, 1, 1, 3, NaN, 2, 9]);
    const { back } = await expanded(weights);
    expect([...toNumbers(back)]).toEqual([1, -1, 0, 0, 0, NaN, 0, 9]);
  });

  test("what is stored of zeros is zero", async () => {
    const stored = await compressed(fromNumbers(bf16, [64, 64], new Float64Array(4096)));
    expect(
      [...toNumbers(stored.b), ...toNumbers(stored.bMetadata)].every((each) => each === 0),
    ).toBe(true);
  });
});

interface Product {
  readonly dtype: DType;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly more?: object;
}

/** The product on the emulator, and how far each element may lie from the exact sum of the weights that are held. */
async function expectProduct({ dtype, m, n, k, more = {} }: Product): Promise<void> {
  const seed = 1 + m + n + k;
  const random = new Random(seed);
  const [a, weights] = [draw(dtype, [m, k], random), draw(dtype, [k, n], random)];
  const device = await open("emulator", { seed });
  try {
    const stored = await compressed(weights);
    const product = matmul({ a: dtype, b: weightsOf(dtype), out: f32, ...more } as never);
    const { out } = (await device.run(product, { a, ...stored } as never)) as { out: HostArray };
    const [x, y, found] = [toNumbers(a), pruned(weights), toNumbers(out)];
    for (let row = 0; row < m; row += 1)
      for (let column = 0; column < n; column += 1) {
        let [exact, magnitude] = [0, 0];
        for (let at = 0; at < k; at += 1) {
          const term = (x[row * k + at] ?? NaN) * (y[at * n + column] ?? NaN);
          exact += term;
          magnitude += Math.abs(term);
        }
        const kept = dtype.kind !== "float" ? 2 ** -24 : dtype.bits === 8 ? 2 ** -12 : 2 ** -22;
        const bound = magnitude * Math.ceil(k / 16 + 2) * kept;
        const value = found[row * n + column] ?? NaN;
        if (!(Math.abs(value - exact) <= bound))
          expect.fail(`seed ${seed}, [${row}, ${column}]: ${value}, expected ${exact} ± ${bound}`);
      }
  } finally {
    device.dispose();
  }
}

const persistent = { kernel: "persistent", schedule: "tiles", swapAB: true } as const;
const pairs = { ...persistent, consumers: 2, columns: 128, stages: 2, cluster: 2 } as const;
const single = { ...persistent, consumers: 1, columns: 32, stages: 3, cluster: 1 } as const;

describe("products of sparse weights", () => {
  test.each<[string, Product]>([
    ["bf16, odd sizes", { dtype: bf16, m: 7, n: 77, k: 67 }],
    [
      "f16, pairs of blocks",
      { dtype: f16, m: 130, n: 200, k: 128, more: { configuration: pairs } },
    ],
    [
      "bf16, split along k",
      {
        ...{ dtype: bf16, m: 24, n: 64, k: 700 },
        more: { configuration: { ...single, schedule: "stream-k" } },
      },
    ],
    ["FP8, fast", { dtype: f8e4m3fn, m: 24, n: 72, k: 192, more: { accumulation: "fast" } }],
    ["FP8, promoted", { dtype: f8e5m2, m: 9, n: 64, k: 300, more: { accumulation: "promoted" } }],
    ["integers", { dtype: i8, m: 8, n: 70, k: 130, more: { out: i32 } }],
    ["nothing to sum", { dtype: bf16, m: 3, n: 5, k: 0 }],
  ])("%s", (_, product) => expectProduct(product));

  test("with an epilogue, and a that overhangs", async () => {
    const device = await open("emulator");
    const [m, n, k] = [5, 24, 40];
    const random = new Random(5);
    const [a, x] = [draw(bf16, [m, k], random), draw(bf16, [k, n], random)];
    const bias = fromNumbers(
      f32,
      [n],
      Array.from({ length: n }, (_, at) => at),
    );
    const b = sparse24(bf16, [dim("k"), dim("n")]);
    const stored = (await compressed(x)) as { b: HostArray<"bf16">; bMetadata: HostArray<"u16"> };
    const inputs = { bias: tensor(f32, [dim("n")]) };
    const plain = matmul({ a: bf16, b, out: f32 });
    const biased = matmul({
      ...{ a: bf16, b, out: f32, inputs },
      epilogue: ({ sums, bias: added }) => sums.add(added),
    });
    const given = { a: a as HostArray<"bf16">, ...stored };
    const sums = toNumbers((await device.run(plain, given, { dimensions: { k } })).out);
    const moved = await device.run(biased, { ...given, bias }, { dimensions: { k } });
    expect([...toNumbers(moved.out)]).toEqual(
      [...sums].map((sum, at) => Math.fround(sum + (at % n))),
    );
    device.dispose();
  });

  test("mistakes", () => {
    const b = sparse24(bf16, [dim("k"), dim("n")]);
    const never = (value: unknown): never => value as never;
    const sizes = { m: 64, n: 64, k: 64 };
    const configured = (configuration: object) =>
      matmul({ a: bf16, b, configuration: never(configuration) }).plan(sizes);
    const mistakes: readonly (readonly [string, () => unknown])[] = [
      ["TW9902", () => sparse24(never(f32), [dim("k"), dim("n")])],
      ["TW9902", () => sparse24(bf16, never([dim("k")]))],
      ["TW9902", () => compress24(never(bf16))],
      ["TW9902", () => expand24(never(5))],
      ["TW9902", () => matmul({ a: tensor(bf16, [dim("m"), dim("j")]), b })],
      ["TW9901", () => matmul({ a: f16, b })],
      ["TW9905", () => matmul(never({ a: bf16, b, prologue: {} }))],
      [
        "TW9905",
        () => matmul(never({ a: bf16, b, inputs: { bMetadata: tensor(f32, [dim("n")]) } })),
      ],
      [
        "TW9904",
        () => configured({ kernel: "plain", rows: 64, columns: 64, depth: 32, splitK: 1 }),
      ],
      ["TW9904", () => configured({ ...single, swapAB: false })],
      ["TW9904", () => configured({ ...single, stages: 200 })],
      ["TW6105", () => matmul({ a: bf16, b }).plan(sizes, targets.sm_80)],
    ];
    for (const [code, make] of mistakes)
      expect(make, `${code}: ${String(make)}`).toThrowError(expect.objectContaining({ code }));
  });
});
