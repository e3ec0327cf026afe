/** Convolutions, windows, order, running combinations and indexing against loops over plain numbers. */
import { describe, expect, test } from "vitest";
import { Random } from "../support/random.ts";
import {
  add,
  addAt,
  all,
  any,
  argmax,
  argmin,
  argsort,
  array,
  associativeScan,
  clip,
  cummax,
  cummin,
  cumprod,
  cumsum,
  dynamicSlice,
  dynamicUpdateSlice,
  grad,
  greater,
  matmul,
  max,
  min,
  mul,
  nn,
  pad,
  reshape,
  setAt,
  sort,
  squeeze,
  sub,
  sum,
  takeAlongAxis,
  topK,
  zeros,
} from "./index.ts";
import type { NDArray } from "./index.ts";

type F64 = NDArray<"f64">;
type Numbers = readonly (number | Numbers)[];

const random = new Random(5);
const draw = (count: number): number[] =>
  Array.from({ length: count }, () => 2 * random.uniform() - 1);

async function flat(x: NDArray): Promise<number[]> {
  return ((await x.values()) as unknown as Numbers).flat(9) as unknown as number[];
}

function near(found: readonly number[], expected: readonly number[], digits = 10): void {
  expect(found.length).toBe(expected.length);
  for (const [i, number] of expected.entries()) expect(found[i]).toBeCloseTo(number, digits);
}

interface Plane {
  readonly n: number;
  readonly h: number;
  readonly w: number;
  readonly c: number;
}

interface Direct {
  readonly stride: number;
  readonly low: number;
  readonly dilation: number;
  readonly apart: number;
  readonly groups: number;
  readonly out: readonly [number, number];
}

/** Every index within extents, the last axis fastest. */
function indicesOf(extents: readonly number[]): readonly (readonly number[])[] {
  return extents.reduce<readonly (readonly number[])[]>(
    (found, extent) =>
      found.flatMap((each) => Array.from({ length: extent }, (_, i) => [...each, i])),
    [[]],
  );
}

/** A convolution of [n, h, w, c] with [3, 2, c / groups, o], one product after another. */
function direct(x: readonly number[], w: readonly number[], plane: Plane, o: number, how: Direct) {
  const { stride, low, dilation, apart, groups, out } = how;
  const per = plane.c / groups;
  const taps = indicesOf([3, 2, per]) as readonly (readonly [number, number, number])[];
  const places = indicesOf([plane.n, ...out, o]) as readonly (readonly [
    number,
    number,
    number,
    number,
  ])[];
  const within = (place: number, extent: number): boolean =>
    place >= 0 && place % apart === 0 && place / apart < extent;
  return places.map(([n, i, j, k]) => {
    const group = Math.floor(k / (o / groups));
    return taps.reduce((total, [a, b, c]) => {
      const [y, z] = [i * stride + a * dilation - low, j * stride + b * dilation - low];
      if (!within(y, plane.h) || !within(z, plane.w)) return total;
      const row = (n * plane.h + y / apart) * plane.w + z / apart;
      const element = x[row * plane.c + group * per + c] as number;
      return total + element * (w[((a * 2 + b) * per + c) * o + k] as number);
    }, 0);
  });
}

describe("convolutions", () => {
  const plane = { n: 2, h: 6, w: 5, c: 4 };
  const plain = { stride: 1, low: 0, dilation: 1, apart: 1, groups: 1 };
  const cases = [
    [{}, { ...plain, out: [4, 4] }],
    [
      {
        strides: 2,
        padding: [
          [1, 1],
          [1, 2],
        ],
      },
      { ...plain, stride: 2, low: 1, out: [3, 4] },
    ],
    [{ dilation: [2, 2] }, { ...plain, dilation: 2, out: [2, 3] }],
    [{ groups: 2 }, { ...plain, groups: 2, out: [4, 4] }],
    [
      { groups: 4, strides: [2, 2] },
      { ...plain, groups: 4, stride: 2, out: [2, 2] },
    ],
    [
      {
        inputDilation: 2,
        padding: [
          [2, 2],
          [2, 2],
        ],
      },
      { ...plain, apart: 2, low: 2, out: [13, 12] },
    ],
  ] as const;
  test.each(cases)("%j", async (options, how) => {
    const o = 4;
    const x = draw(plane.n * plane.h * plane.w * plane.c);
    const w = draw((6 * plane.c * o) / how.groups);
    const found = nn.conv(
      reshape(array(x, "f64"), [plane.n, plane.h, plane.w, plane.c]),
      reshape(array(w, "f64"), [3, 2, plane.c / how.groups, o]),
      options,
    );
    expect(found.shape).toEqual([plane.n, ...how.out, o]);
    near(await flat(found), direct(x, w, plane, o, how));
  });

  test("same padding keeps extents, and shares what is added", async () => {
    const x = reshape(array([1, 2, 3, 4, 5], "f64"), [1, 5, 1]);
    const w = reshape(array([1, 10, 100, 1000], "f64"), [4, 1, 1]);
    near(await flat(nn.conv(x, w, { padding: "same" })), [3210, 4321, 5432, 543, 54]);
    near(await flat(nn.conv(x, w, { padding: "same", strides: 2 })), [3210, 5432, 54]);
  });

  test("gradients go along both operands", async () => {
    const x = reshape(array(draw(24), "f64"), [1, 6, 4]);
    const w = reshape(array(draw(18), "f64"), [3, 2, 3]);
    const f = (a: F64, b: F64): F64 => {
      const y = nn.conv(a, b, { strides: 2, padding: "same", groups: 2 });
      return sum(mul(y, y));
    };
    expect(() => f(x, w)).toThrow("TW9104");
    const kernel = reshape(array(draw(24), "f64"), [3, 2, 4]);
    const slopes = await flat(grad(f, { argument: 1 })(x, kernel));
    const numbers = await flat(kernel);
    for (const at of [0, 7, 23]) {
      const moved = (step: number): F64 =>
        reshape(
          array(
            numbers.map((each, i) => (i === at ? each + step : each)),
            "f64",
          ),
          [3, 2, 4],
        );
      const [above] = await flat(reshape(f(x, moved(1e-5)), [1]));
      const [below] = await flat(reshape(f(x, moved(-1e-5)), [1]));
      expect(slopes[at]).toBeCloseTo(((above as number) - (below as number)) / 2e-5, 6);
    }
  });

  test("windows", async () => {
    const x = reshape(array([1, 5, 2, 4, 3], "f64"), [1, 5, 1]);
    near(await flat(nn.maxPool(x, [2])), [5, 4]);
    near(await flat(nn.maxPool(x, [3], { strides: 2, padding: "same" })), [5, 5, 4]);
    near(await flat(nn.avgPool(x, [3], { strides: 2, padding: "same" })), [3, 11 / 3, 3.5]);
    near(await flat(grad((y: F64) => sum(nn.maxPool(y, [3], { strides: 1 })))(x)), [0, 2, 0, 1, 0]);
  });
});

describe("order", () => {
  const x = array(
    [
      [3, NaN, -1, 0],
      [2, 2, 7, -5],
    ],
    "f64",
  );
  test("sort, argsort and the largest", async () => {
    expect(await sort(x).values()).toEqual([
      [-1, 0, 3, NaN],
      [-5, 2, 2, 7],
    ]);
    expect(await sort(x, { descending: true }).values()).toEqual([
      [NaN, 3, 0, -1],
      [7, 2, 2, -5],
    ]);
    expect(await argsort(x).values()).toEqual([
      [2, 3, 0, 1],
      [3, 0, 1, 2],
    ]);
    expect(
      await sort(
        array(
          [
            [3, 1],
            [2, 5],
          ],
          "i32",
        ),
        { axis: 0 },
      ).values(),
    ).toEqual([
      [2, 1],
      [3, 5],
    ]);
    const [values, places] = topK(array([1, 9, 4, 9], "f64"), 3);
    expect(await values.values()).toEqual([9, 9, 4]);
    expect(await places.values()).toEqual([1, 3, 2]);
  });

  test("extremes, of integers and NaN too", async () => {
    expect(await argmax(x, { axis: 1 }).values()).toEqual([1, 2]);
    expect(await argmin(x, { axis: -1 }).values()).toEqual([1, 3]);
    expect(await max(array([-4, -9], "i32")).values()).toBe(-4);
    expect(await min(array([4, 9], "u8")).values()).toBe(4);
    expect(await argmin(array([4, 2, 2], "i32"), { axis: 0 }).values()).toBe(1);
    expect(await any(greater(x, 6), { axis: 1 }).values()).toEqual([false, true]);
    expect(await all(greater(array([1, 2]), 0)).values()).toBe(true);
    expect(await clip(array([-3, 0.5, 9], "f64"), -1, 2).values()).toEqual([-1, 0.5, 2]);
  });
});

describe("running combinations", () => {
  const x = array([3, 1, 2, 5], "f64");
  test("sums, products and extremes, both ways", async () => {
    expect(await cumsum(x).values()).toEqual([3, 4, 6, 11]);
    expect(await cumsum(x, { reverse: true }).values()).toEqual([11, 8, 7, 5]);
    expect(await cumprod(x).values()).toEqual([3, 3, 6, 30]);
    expect(await cummax(x).values()).toEqual([3, 3, 3, 5]);
    expect(await cummin(x, { reverse: true }).values()).toEqual([1, 1, 2, 5]);
    expect(
      await cummax(
        array(
          [
            [1, 4],
            [3, 2],
          ],
          "i32",
        ),
        { axis: 0 },
      ).values(),
    ).toEqual([
      [1, 4],
      [3, 4],
    ]);
    near(
      await flat(grad((y: F64) => sum(mul(cumsum(y), array([1, 2, 3, 4], "f64"))))(x)),
      [10, 9, 7, 4],
    );
  });

  test.each([1, 2, 3, 5, 8, 9])("a scan of %i pairs is the loop over them", async (length) => {
    const [a, b] = [draw(length), draw(length)];
    const pairs = { a: array(a, "f64"), b: array(b, "f64") };
    const combine = (left: typeof pairs, right: typeof pairs) => ({
      a: mul(left.a, right.a),
      b: add(mul(left.b, right.a), right.b),
    });
    const loop = (order: readonly number[]): number[] => {
      let state: number | undefined;
      const found = new Array<number>(length);
      for (const i of order) {
        const [factor, rest] = [a[i] as number, b[i] as number];
        state = state === undefined ? rest : state * factor + rest;
        found[i] = state;
      }
      return found;
    };
    const order = a.map((_, i) => i);
    near(await flat(associativeScan(combine, pairs).b), loop(order));
    near(
      await flat(associativeScan(combine, pairs, { reverse: true }).b),
      loop(order.toReversed()),
    );
  });

  test("a scan of matrices along another axis", async () => {
    const x = reshape(array(draw(12), "f64"), [3, 2, 2]);
    const found = associativeScan((left: F64, right: F64) => matmul(left, right), x);
    const whole = await flat(matmul(matmul(row(x, 0), row(x, 1)), row(x, 2)));
    near((await flat(found)).slice(8), whole);
  });
});

function row(x: F64, at: number): F64 {
  return squeeze(dynamicSlice(x, [at, 0, 0], [1, 2, 2]), { axis: 0 });
}

describe("indexing", () => {
  const x = array(
    [
      [1, 2],
      [3, 4],
      [5, 6],
    ],
    "f64",
  );
  test("slices at places known later are clamped", async () => {
    const at = array(9, "i32");
    expect(await dynamicSlice(x, [at, 0], [2, 1]).values()).toEqual([[3], [5]]);
    expect(await dynamicUpdateSlice(x, array([[7, 8]], "f64"), [at, 0]).values()).toEqual([
      [1, 2],
      [3, 4],
      [7, 8],
    ]);
    expect(await takeAlongAxis(x, array([[1], [0], [5]], "i32")).values()).toEqual([[2], [3], [6]]);
    expect(await takeAlongAxis(x, array([[2, 0]], "i32"), { axis: 0 }).values()).toEqual([[5, 2]]);
  });

  test("rows are added to and replaced", async () => {
    const places = array([1, 1, 7], "i32");
    const rows = array(
      [
        [1, 1],
        [2, 2],
        [3, 3],
      ],
      "f64",
    );
    expect(await addAt(x, places, rows).values()).toEqual([
      [1, 2],
      [6, 7],
      [5, 6],
    ]);
    expect(await setAt(x, places, rows).values()).toEqual([
      [1, 2],
      [2, 2],
      [5, 6],
    ]);
    const slope = grad((u: F64) => sum(mul(addAt(x, places, u), x)))(rows);
    expect(await slope.values()).toEqual([
      [3, 4],
      [3, 4],
      [0, 0],
    ]);
  });

  test("padding and axes of extent 1", async () => {
    expect(await pad(array([1, 2], "f64"), [[1, 2]], 9).values()).toEqual([9, 1, 2, 9, 9]);
    expect(await pad(array([1, 2, 3], "f64"), [[-1, 0]]).values()).toEqual([2, 3]);
    expect(squeeze(zeros([1, 3, 1])).shape).toEqual([3]);
    expect(squeeze(zeros([1, 3, 1]), { axis: -1 }).shape).toEqual([1, 3]);
  });
});

describe("layers", () => {
  test("silu, softplus, the logarithm of softmax and batch norm", async () => {
    const x = array(
      [
        [0, 1000],
        [1, -1000],
      ],
      "f64",
    );
    near(await flat(nn.silu(array([0, 1], "f64"))), [0, 1 / (1 + Math.exp(-1))]);
    near(await flat(nn.softplus(x)), [Math.LN2, 1000, Math.log(1 + Math.E), 0]);
    near(await flat(nn.logSoftmax(array([1, 2], "f64"))), [
      -Math.log(1 + Math.E),
      -Math.log(1 + 1 / Math.E),
    ]);
    const [normal, mean, variance] = nn.batchNorm(
      reshape(array([1, 2, 3, 6], "f64"), [2, 1, 2]),
      array([2, 1], "f64"),
      array([0, 5], "f64"),
      { epsilon: 0 },
    );
    near(await flat(mean), [2, 4]);
    near(await flat(variance), [1, 4]);
    near(await flat(normal), [-2, 4, 2, 6]);
    near(await flat(sub(normal, normal)), [0, 0, 0, 0]);
  });
});
