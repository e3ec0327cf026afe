/** Functions of arrays at their edges: infinities, zeros, empty axes and narrow floats, on the evaluator and on a device. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../device/device.ts";
import { f32 } from "../formats/dtype.ts";
import { open } from "../runtime/open.ts";
import {
  add,
  array,
  argmax,
  argsort,
  argmin,
  astype,
  cumsum,
  einsum,
  full,
  grad,
  jit,
  less,
  logicalNot,
  logsumexp,
  mean,
  mul,
  nn,
  pad,
  pow,
  prod,
  scan,
  shiftRight,
  sum,
  topK,
  useDevice,
  variance,
  whileLoop,
  zeros,
} from "./index.ts";
import type { NDArray } from "./index.ts";

type F32 = NDArray<"f32">;

let device: Device;
beforeAll(async () => {
  device = await open("simulator");
});
afterAll(() => {
  device.dispose();
});

/** What a function gives by the evaluator, and compiled for a device, to which its arguments are no constants. */
async function expectBoth<A extends NDArray>(
  f: (x: A) => NDArray,
  x: A,
  wanted: unknown,
): Promise<void> {
  await useDevice("evaluator");
  expect(await f(x).values(), "evaluator").toEqual(wanted);
  await useDevice(device);
  try {
    const result = jit(f)(x);
    expect(await result.values(), "device").toEqual(wanted);
    result.dispose();
  } finally {
    await useDevice();
  }
}

describe("sums of narrow floats", () => {
  test.each([[1000], [1000, 3], [3, 1000]])("are rounded once: ones of %j", async (...shape) => {
    const axis = shape.indexOf(1000);
    const wanted = shape.length === 1 ? 1000 : [1000, 1000, 1000];
    await expectBoth((x) => sum(x, { axis }), full(shape, 1, "bf16"), wanted);
  });

  test("products, windows and means, too", async () => {
    // Factors of 1 + 2^-7, the next above 1: each step would round to a number of bf16.
    const rounded = Math.round((1 + 2 ** -7) ** 32 * 2 ** 7) / 2 ** 7;
    const factors = full([32], 1 + 2 ** -7, "bf16");
    await expectBoth((x) => prod(x), factors, rounded);
    await expectBoth((x) => nn.avgPool(x, [600]), full([1, 600, 1], 1, "bf16"), [[[1]]]);
    await expectBoth((x) => mean(x), full([100], 6e4, "f16"), 60000);
    await expectBoth((x) => variance(x), array([-300, 300], "f16"), Infinity);
    await expectBoth((x) => variance(x), array([-100, 100, -100, 100], "f16"), 10000);
  });
});

test("running sums of bf16 go on beyond 256", async () => {
  const wanted = Array.from({ length: 300 }, (_, i) =>
    i < 256 ? i + 1 : 2 * roundHalf((i + 1) / 2),
  );
  await expectBoth((x) => cumsum(x), full([300], 1, "bf16"), wanted);
});

/** The nearest whole number, halves to even: bf16 has every other number from 256 on. */
function roundHalf(x: number): number {
  const below = Math.floor(x);
  return x - below === 0.5 ? below + (below % 2) : Math.round(x);
}

test("a scan over no rows gives its start, and no results", async () => {
  const f = (xs: F32) => scan((total: F32, x: F32) => [add(total, x), total] as const, sum(xs), xs);
  await expectBoth((xs: F32) => add(f(xs)[0], 5), zeros([0]), 5);
  await expectBoth((xs: F32) => f(xs)[1], zeros([0]), []);
});

describe("infinities", () => {
  const slope = grad((x: F32) => logsumexp(x));
  test.each<[string, (x: F32) => F32, readonly number[], unknown]>([
    ["of -∞ alone", (x) => logsumexp(x), [-Infinity, -Infinity], -Infinity],
    ["with ∞", (x) => logsumexp(x), [Infinity, 1], Infinity],
    ["with NaN", (x) => logsumexp(x), [NaN, 1], NaN],
    ["its slope beside -∞", slope, [-Infinity, 0, 0], [0, 0.5, 0.5]],
  ])("the logarithm of a sum of exponentials, %s", async (_, f, numbers, wanted) => {
    await expectBoth(f, array([...numbers]), wanted);
  });

  test("logits of classes that cannot be are no NaN", async () => {
    const logits = array([
      [0, -Infinity, 0],
      [-Infinity, 5, -Infinity],
    ]);
    const labels = array([2, 1], "i32");
    const loss = (x: F32): F32 => nn.crossEntropy(x, labels);
    await expectBoth(loss, logits, Math.fround(Math.fround(Math.log(2)) / 2));
    const slopes = [
      [0.25, 0, -0.25],
      [0, 0, 0],
    ];
    await expectBoth(grad(loss), logits, slopes);
  });
});

describe("derivatives at zero", () => {
  test("powers: of exponent 0 they are 0, of exponent 1 they are 1, and so again", async () => {
    const slope = (exponent: number) => grad((x: F32) => sum(pow(x, exponent)));
    await expectBoth(slope(0), array([0, 3, Infinity]), [0, 0, 0]);
    await expectBoth(slope(1), array([0, 3]), [1, 1]);
    await expectBoth(slope(2), array([0, 3]), [0, 6]);
    const twice = grad((x: F32) => sum(slope(1)(x)));
    await expectBoth(twice, array([0, 3]), [0, 0]);
    const each = grad((x: F32) => sum(pow(x, array([0, 1, 2]))));
    await expectBoth(each, zeros([3]), [0, 1, 0]);
  });

  test("relu has none at 0, and keeps NaN", async () => {
    const slope = grad((x: F32) => sum(nn.relu(x)));
    await expectBoth(slope, array([-1, 0, 1]), [0, 0, 1]);
    await expectBoth((x) => nn.relu(x), array([-1, 0, 2, NaN, -Infinity]), [0, 0, 2, NaN, 0]);
  });
});

describe("mistakes", () => {
  const square = array([
    [1, 2],
    [3, 4],
  ]);
  test.each(["ij,jj->i", "ii,jk->jk", "ii,ij->ij", "ij,jk->ii"])(
    "a letter for two axes of one array: %s",
    (formula) => {
      expect(() => einsum(formula, square, square)).toThrow("TW9308");
    },
  );

  test("the place of an extreme of nothing", async () => {
    expect(() => argmax(zeros([2, 0]), { axis: 1 })).toThrow("TW9320");
    expect(() => argmin(zeros([0]), { axis: 0 })).toThrow("TW9320");
    expect(() => argmin(zeros([2, 0]))).toThrow("TW9320: argmin of an array that has no elements");
    expect(() => argmax(zeros([2, 0]), { axis: -1 })).toThrow(
      "TW9320: argmax along axis -1, which",
    );
    expect(await argmax(zeros([0, 0]), { axis: 1 }).values()).toEqual([]);
    expect(await mul(argmax(zeros([2, 0]), { axis: 0 }), 1).values()).toEqual([]);
  });

  test.each([
    ["i32", 0.5],
    ["i32", NaN],
    ["i32", 2 ** 31],
    ["i8", 128],
    ["i4", 8],
    ["u8", -1],
    ["u8", 256],
    ["i64", 1.5],
    ["i64", Infinity],
    ["u64", 2 ** 64],
    ["bool", 2],
  ] as const)("an array of %s beside %f", (dtype, number) => {
    expect(() => mul(zeros([2], dtype), number)).toThrow("TW9321");
    expect(() => full([2], number, dtype)).toThrow("TW9321");
    expect(() => array([[0, 1, number]], dtype)).toThrow("TW9321");
    expect(() => pad(zeros([2], dtype), [[1, 1]], number)).toThrow("TW9321");
  });
});

test.each([
  ["f32", 1e39, Infinity],
  ["bf16", -1e39, -Infinity],
  ["f16", 65519, 65504],
  ["f16", 65520, Infinity],
  ["f8e5m2", 1e6, Infinity],
  ["f8e4m3fn", 1000, NaN],
  ["f8e8m0fnu", -1, NaN],
  ["f4e2m1fn", 100, 6],
] as const)("%s has no %f: it is converted as JAX does", async (dtype, number, expected) => {
  expect(await array([1, number], dtype).values()).toEqual([1, expected]);
  expect(await full([1], number, dtype).values()).toEqual([expected]);
  expect(await mul(full([1], 1, dtype), number).values()).toEqual([expected]);
  expect(await astype(array([number], "f64"), dtype).values()).toEqual([expected]);
});

test("what would be something else than its name says is refused", () => {
  const mask = array([1, 1, 0], "bool");
  const counts = array([255, 255, 255], "u8");
  for (const wrong of [
    // @ts-expect-error the mean of integers is no integer
    () => mean(counts),
    // @ts-expect-error nor is the variance
    () => variance(counts),
    // @ts-expect-error bools have no mean
    () => mean(mask),
    // @ts-expect-error bools are counted by any and all, or as integers
    () => sum(mask),
    () => cumsum(mask),
    // @ts-expect-error integers are not true or false
    () => logicalNot(counts),
  ])
    expect(wrong).toThrow("TW9322");
  for (const ragged of [
    [1, [2]],
    [
      [1, 2],
      [3, [4]],
    ],
    [[1], []],
    [[], [1]],
  ])
    expect(() => array(ragged as number[])).toThrow("TW9306");
});

describe("plain numbers", () => {
  test.each([
    ["i8", -128],
    ["u8", 255],
    ["i64", -(2 ** 63)],
    ["u64", 2 ** 53],
    ["bool", 1],
    ["f32", 0.1],
    ["bf16", Infinity],
  ] as const)("an array of %s has %f", async (dtype, number) => {
    const both = [await full([], number, dtype).values(), await array(number, dtype).values()];
    expect(both[0]).toEqual(both[1]);
  });

  test("a single one in a recorded function is a constant, from which trips of a loop are counted", async () => {
    const power = (x: F32): F32 =>
      whileLoop(
        ([turn]) => less(turn, array(3, "i32")),
        ([turn, y]) => [add(turn, 1), mul(y, x)] as const,
        [array(0, "i32"), x] as const,
      )[1];
    await expectBoth(grad(power), array(2), 32);
  });
});

test("signed integers keep their sign where they are shifted to the right", async () => {
  await expectBoth((x) => shiftRight(x, 1), array([-8, 7, -1], "i32"), [-4, 3, -1]);
  await expectBoth((x) => shiftRight(x, 4), array([240, 15], "u8"), [15, 0]);
});

describe("the largest elements", () => {
  const special = [0, -0, NaN, 3, -0, 0, -5, Infinity, NaN, -Infinity, 3];
  // A NaN with a sign, which some comparisons put below all numbers.
  const signed = Float32Array.from([...special, ...special, 1]);
  new Uint32Array(signed.buffer)[5] = 0xffc00000;

  test.each([5, 23])(
    "are the first %i of a descending sort, zeros and NaN of any sign too",
    async (k) => {
      for (const dtype of ["f32", "bf16", "f8e5m2"] as const) {
        const x = () => astype(array({ dtype: f32, shape: [signed.length], data: signed }), dtype);
        const wanted = await argsort(x(), { descending: true }).values();
        const indices = (wanted as number[]).slice(0, k);
        await expectBoth((y: NDArray) => topK(y, k)[1], x(), indices);
        const values = indices.map((place) => signed[place]);
        await expectBoth((y: NDArray) => topK(y, k)[0], x(), values);
      }
    },
  );

  test("have the derivatives of what they were taken from", async () => {
    const largest = (x: F32): F32 => sum(mul(topK(x, 2)[0], array([2, 5])));
    expect(await grad(largest)(array([1, 9, -0, 4])).values()).toEqual([0, 2, 0, 5]);
  });
});
