/** Functions of arrays at their edges: infinities, zeros, empty axes and narrow floats, on the evaluator and on a device. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../device/device.ts";
import { open } from "../runtime/open.ts";
import {
  add,
  array,
  argmax,
  argmin,
  cumsum,
  einsum,
  full,
  grad,
  jit,
  logsumexp,
  mean,
  mul,
  nn,
  pow,
  prod,
  scan,
  sum,
  useDevice,
  variance,
  zeros,
} from "./index.ts";
import type { LazyArray } from "./index.ts";

type F32 = LazyArray<"f32">;

let device: Device;
beforeAll(async () => {
  device = await open("simulator");
});
afterAll(() => {
  device.dispose();
});

/** What a function gives by the evaluator, and compiled for a device, to which its arguments are no constants. */
async function expectBoth<A extends LazyArray>(
  f: (x: A) => LazyArray,
  x: A,
  wanted: unknown,
): Promise<void> {
  expect(await f(x).values(), "evaluator").toEqual(wanted);
  await useDevice(device);
  try {
    const result = jit(f)(x);
    expect(await result.values(), "device").toEqual(wanted);
    result.dispose();
    x.dispose();
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
    expect(() => argmax(zeros([2, 0]), 1)).toThrow("TW9320");
    expect(() => argmin(zeros([0]), 0)).toThrow("TW9320");
    expect(await argmax(zeros([0, 0]), 1).values()).toEqual([]);
    expect(await mul(argmax(zeros([2, 0]), 0), 1).values()).toEqual([]);
  });
});
