/** Attention of arrays against sums in plain numbers, on the evaluator and, of bf16, by the library on the simulator. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../device/device.ts";
import { open } from "../runtime/open.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import {
  array,
  astype,
  grad,
  jit,
  lower,
  mul,
  nn,
  random,
  reshape,
  sum,
  useDevice,
  vmap,
} from "./index.ts";
import type { NDArray } from "./index.ts";

interface Sizes {
  readonly b: number;
  readonly s: number;
  readonly t: number;
  readonly h: number;
  readonly kv: number;
  readonly d: number;
  readonly e: number;
}

const sizes: Sizes = { b: 2, s: 5, t: 6, h: 4, kv: 2, d: 8, e: 16 };

/** What numbers of four axes mean: row after row. */
type Numbers = readonly number[];

/** The formula, one element after another. */
function reference(
  [q, k, v]: readonly [Numbers, Numbers, Numbers],
  { b, s, t, h, kv, d, e }: Sizes,
  causal: boolean,
  scale: number,
): Numbers {
  const out: number[] = [];
  for (let batch = 0; batch < b; batch++)
    for (let row = 0; row < s; row++)
      for (let head = 0; head < h; head++) {
        const shared = Math.floor(head / (h / kv));
        const seen = causal ? Math.min(row + 1, t) : t;
        const scores = Array.from({ length: seen }, (_, column) => {
          let total = 0;
          for (let i = 0; i < d; i++)
            total +=
              (q[((batch * s + row) * h + head) * d + i] ?? NaN) *
              (k[((batch * t + column) * kv + shared) * d + i] ?? NaN);
          return total * scale;
        });
        const most = Math.max(...scores);
        const weights = scores.map((score) => Math.exp(score - most));
        const whole = weights.reduce((total, weight) => total + weight, 0);
        for (let i = 0; i < e; i++)
          out.push(
            weights.reduce(
              (total, weight, column) =>
                total + (weight / whole) * (v[((batch * t + column) * kv + shared) * e + i] ?? NaN),
              0,
            ),
          );
      }
  return out;
}

function shapesOf({ b, s, t, h, kv, d, e }: Sizes) {
  return [
    [b, s, h, d],
    [b, t, kv, d],
    [b, t, kv, e],
  ] as const;
}

/** Operands of f32 that bf16 has, too. */
function operands(of: Sizes): readonly NDArray<"bf16">[] {
  const keys = random.split(random.key(7), 3);
  return shapesOf(of).map((shape, i) =>
    astype(random.normal(keys[i] as NDArray<"u32">, shape), "bf16"),
  );
}

async function numbersOf(x: NDArray): Promise<Numbers> {
  return ((await x.values()) as unknown as readonly unknown[]).flat(Infinity) as Numbers;
}

type Wide = readonly [NDArray<"f64">, NDArray<"f64">, NDArray<"f64">];
type Half = readonly [NDArray<"bf16">, NDArray<"bf16">, NDArray<"bf16">];

function wide(of: Sizes): Wide {
  return operands(of).map((x) => astype(x, "f64")) as unknown as Wide;
}

async function expectNear(found: NDArray, expected: Numbers, bound: number): Promise<void> {
  const numbers = await numbersOf(found);
  expect(numbers.length).toBe(expected.length);
  const most = Math.max(...expected.map(Math.abs));
  const worst = Math.max(...numbers.map((x, i) => Math.abs(x - (expected[i] ?? NaN))));
  expect(worst).toBeLessThanOrEqual(bound * most);
}

describe.each([true, false])("causal: %s", (causal) => {
  test("f64 is the formula", async () => {
    const [q, k, v] = wide(sizes);
    const given = [await numbersOf(q), await numbersOf(k), await numbersOf(v)] as const;
    const found = nn.attention(q, k, v, { causal, scale: 0.4 });
    expect(found.shape).toEqual([2, 5, 4, 16]);
    await expectNear(found, reference(given, sizes, causal, 0.4), 1e-14);
  });

  test("bf16 on the evaluator is rounded once", async () => {
    await useDevice("evaluator");
    const [q, k, v] = operands(sizes) as unknown as Half;
    const given = [await numbersOf(q), await numbersOf(k), await numbersOf(v)] as const;
    const scale = 1 / Math.sqrt(8);
    await expectNear(
      nn.attention(q, k, v, { causal }),
      reference(given, sizes, causal, scale),
      2 ** -8,
    );
    await useDevice();
  });
});

test("the gradient of f64 is that of central differences", async () => {
  const small = { b: 1, s: 3, t: 3, h: 2, kv: 1, d: 2, e: 2 };
  const [q, k, v] = wide(small);
  const loss = (x: NDArray<"f64">): NDArray<"f64"> => {
    const out = nn.attention(q, x, v, { causal: true });
    return sum(mul(out, out));
  };
  const slopes = await numbersOf(grad(loss)(k));
  const at = await numbersOf(k);
  const step = 1e-5;
  for (const [i, slope] of slopes.entries()) {
    const moved = async (by: number): Promise<number> => {
      const numbers = array(
        at.map((x, j) => (i === j ? x + by : x)),
        "f64",
      );
      return Number(await loss(reshape(numbers, k.shape)).values());
    };
    const expected = ((await moved(step)) - (await moved(-step))) / (2 * step);
    expect(slope).toBeCloseTo(expected, 8);
  }
});

describe("on the simulator", () => {
  let device: Device;
  beforeAll(async () => {
    device = await open("simulator");
  });
  afterAll(async () => {
    await useDevice();
    device.dispose();
  });

  const gradients = grad(([q, k, v]: Half) => {
    const out = astype(nn.attention(q, k, v, { causal: true }), "f32");
    return sum(mul(out, out));
  });

  test("forward and backward are the library's, and near the evaluator", async () => {
    const given = operands(sizes) as unknown as Half;
    const text = lower(gradients, given);
    expect(text).toMatch(/kernel\.\d+\.attention\(/);
    expect(text).toMatch(/kernel\.\d+\.attention_backward\(/);
    await useDevice("evaluator");
    const expected = await Promise.all(gradients(given).map(numbersOf));
    await useDevice(device);
    const found = jit(gradients)(given);
    for (const [i, each] of found.entries()) {
      await expectNear(each, expected[i] ?? [], 2 ** -5);
      each.dispose();
    }
    await useDevice();
  });

  test("over a batch of examples", async () => {
    const [q, k, v] = operands(sizes) as unknown as Half;
    const each = (x: NDArray<"bf16">, y: NDArray<"bf16">, z: NDArray<"bf16">) =>
      nn.attention(reshape(x, [1, 5, 4, 8]), reshape(y, [1, 6, 2, 8]), reshape(z, [1, 6, 2, 16]));
    const expected = await numbersOf(nn.attention(q, k, v));
    await useDevice(device);
    const found = jit(vmap(each))(q, k, v);
    await expectNear(found, expected, 2 ** -7);
    found.dispose();
    await useDevice();
  });
});

test("TW9319: operands that do not go together", () => {
  const [q, k, v] = operands(sizes) as unknown as Half;
  const code = (call: () => unknown): string => {
    try {
      call();
      return "no error";
    } catch (error) {
      return error instanceof TilewrightError ? error.code : String(error);
    }
  };
  expect(code(() => nn.attention(q, v, k))).toBe("TW9319");
  expect(code(() => nn.attention(k, q, v))).toBe("TW9319");
  expect(code(() => nn.attention(q, k, astype(v, "f32") as unknown as NDArray<"bf16">))).toBe(
    "TW9319",
  );
});
