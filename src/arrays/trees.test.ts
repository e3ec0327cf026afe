/** Trees that functions of arrays take: what tells two of them apart, what is no tree, and whose data is whose. */
import { describe, expect, test } from "vitest";
import { f32, f64 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import {
  add,
  addAt,
  arange,
  array,
  broadcastTo,
  cos,
  einsum,
  full,
  grad,
  jit,
  jvp,
  matmul,
  mul,
  nn,
  ones,
  random,
  reshape,
  scan,
  setAt,
  sin,
  slice,
  sort,
  squeeze,
  sub,
  sum,
  take,
  vjp,
  vmap,
  zeros,
} from "./index.ts";
import type { NDArray } from "./index.ts";

type F32 = NDArray<"f32">;

describe("a compiled function is recorded again for", () => {
  test("lists that are nested otherwise", async () => {
    const [x, y] = [array([5]), array([3])];
    const difference = jit(([[a, b], c]: readonly [readonly F32[], F32?]): F32 =>
      sub(a as F32, (c ?? b) as F32),
    );
    expect(await difference([[x], y]).values()).toEqual([2]);
    expect(await difference([[x, y]]).values()).toEqual([2]);
    expect(difference.compilations.length).toBe(2);
  });

  test("names that contain what stands between names", async () => {
    type Named = { readonly [name: string]: unknown };
    const count = jit((tree: Named): F32 => full([], Object.keys(tree).length, "f32"));
    const x = array([1]);
    expect(await count({ a: x, b: 1 }).values()).toBe(2);
    expect(await count({ 'a":*,"b': 1, x }).values()).toBe(2);
    expect(await count({ "a:*,b": 1 }).values()).toBe(1);
  });

  test("every number that differs, as -0 does from 0 and NaN from null", async () => {
    const seen = jit((x: F32, value: number | null | undefined | string): F32 =>
      value === null || value === undefined || typeof value === "string" ? x : mul(x, value),
    );
    const one = array([1]);
    const all = [NaN, Infinity, -Infinity, null, undefined, "NaN", "null", 0, -0, 1] as const;
    for (const _ of [1, 2])
      for (const value of all) {
        const [found] = (await seen(one, value).values()) as number[];
        expect(found).toBe(typeof value === "number" ? value : 1);
      }
    expect(seen.compilations.length).toBe(all.length);
  });

  test("functions that are written alike and close over other values", async () => {
    const apply = jit((x: F32, f: (x: F32) => F32): F32 => f(x));
    const times = (factor: number) => (x: F32) => mul(x, factor);
    const [twice, thrice] = [times(2), times(3)];
    expect(await apply(array([1]), twice).values()).toEqual([2]);
    expect(await apply(array([1]), thrice).values()).toEqual([3]);
    expect(await apply(array([4]), twice).values()).toEqual([8]);
    expect(apply.compilations.length).toBe(2);
  });

  test("typed arrays by their contents, also when they change", async () => {
    const weigh = jit((x: F32, weights: Float64Array): F32 => mul(x, weights[0] ?? 0));
    const weights = Float64Array.of(2);
    expect(await weigh(array([1]), weights).values()).toEqual([2]);
    weights[0] = 5;
    expect(await weigh(array([1]), weights).values()).toEqual([5]);
    expect(await weigh(array([1]), Float64Array.of(2)).values()).toEqual([2]);
    expect(weigh.compilations.length).toBe(2);
  });
});

test("objects into which nobody can see are no trees, nor is what contains itself", () => {
  class Model {
    readonly w = array([1]);
  }
  const round: { self?: unknown } = {};
  round.self = [round];
  for (const wrong of [
    new Map([["w", array([1])]]),
    new Model(),
    new Date(0),
    Symbol("x"),
    round,
  ]) {
    expect(() => jit((_: unknown) => array([1]))(wrong)).toThrow("TW9323");
    expect(() => grad((_: unknown) => array(1))(wrong)).toThrow("TW9323");
  }
  expect(() => jit(() => new Model())()).toThrow("an object of class Model is no part of a tree");
  const shared = [array([1])];
  expect(() => jit((x: unknown) => x)([shared, shared])).not.toThrow();
});

describe("data belongs to one holder", () => {
  test("who changes a host array later does not change the array made of it", async () => {
    const data = Float32Array.of(1, 2);
    const x = array({ dtype: f32, shape: [2], data });
    data[0] = 9;
    expect(await x.values()).toEqual([1, 2]);
  });

  test("who changes what was read changes neither the array nor a program's constant", async () => {
    const x = add(array([1, 2]), 1);
    (await x.read()).data[0] = 9;
    expect(await x.values()).toEqual([2, 3]);
    const constant = jit(() => full([1], 4, "f32"));
    (await constant().read()).data[0] = 9;
    expect(await constant().values()).toEqual([4]);
  });

  test("lists of values make the array that they were read from", async () => {
    for (const x of [
      array([[2 ** 53, -1]], "i64"),
      array([2 ** 64 - 2048], "u64"),
      array([1, 0], "bool"),
      array([0.5, -0], "f32"),
    ]) {
      const values = await x.values();
      expect(await array(values, x.dtype).values()).toEqual(values);
    }
    expect(await array([9007199254740993n], "i64").values()).toEqual([9007199254740993n]);
    expect(await array(true, "bool").values()).toBe(true);
    expect(() => array([1n])).toThrow("TW9321");
    expect(() => array([2n ** 63n], "i64")).toThrow("TW9321");
    expect(() => array([-1n], "u8")).toThrow("TW9321");
    expect(() => array([true], "i32")).toThrow("TW9321");
    expect(() => array(new Array<number>(3))).toThrow("TW4023");
  });

  test("a dtype beside a host array is its own or refused", () => {
    const host = fromNumbers(f64, [1], [0.1]);
    expect(array(host, "f64").dtype).toBe("f64");
    expect(() => array<"f32" | "f64">(host, "f32")).toThrow("TW9305");
    expect(() => array({ ...host, dtype: "f64" } as never)).toThrow("TW0007");
  });
});

test("options that no function has are refused, and values that they cannot have", () => {
  const x = ones([2, 3]);
  const f = (y: F32): F32 => sum(y);
  const wrong: readonly (() => unknown)[] = [
    () => sum(x, { axes: 1 } as never),
    () => sum(x, { keepDims: "yes" } as never),
    () => sort(x, { desc: true } as never),
    () => jit(f, { donated: [0] } as never),
    () => grad(f, { arg: 1 } as never),
    () => grad(f, { argument: -1 as 0 }),
    () => vmap(f, { arguments: [1] } as never),
    () => scan((c: F32, y: F32) => [c, y] as const, array(0), x, { length: -1 }),
    () => nn.avgPool(ones([1, 4, 1]), [2], { stride: 2 } as never),
    () => random.uniform(random.key(1), [2], { lo: 0 } as never),
  ];
  for (const each of wrong) expect(each).toThrow("TW4023");
  expect(wrong[0]).toThrow("found:    { axes }");
  expect(() => grad(f, { argument: 1 as 0 })(x)).toThrow("TW9310");
});

test("tangents, cotangents and moments are like their arrays", async () => {
  const x = array([1, 2]);
  const integers = array([0], "i32");
  const [, tangent] = jvp((a: F32, i: NDArray<"i32">) => take(a, i), [x, integers], [x, integers]);
  expect(await tangent.values()).toEqual([1]);
  const [, pullback] = vjp((y: F32): readonly F32[] => [sin(y), cos(y)], x);
  const f64s = zeros([2], "f64") as unknown as F32;
  for (const wrong of [
    () => jvp(sin<"f32">, [x], [ones([1])]),
    () => jvp(sin<"f32">, [x], [f64s]),
    () => pullback([x]),
    () => pullback([x, ones([3])]),
    () => pullback([x, f64s]),
  ])
    expect(wrong).toThrow("TW9324");
  expect(() => nn.sgd([x], [ones([2, 2])], { learningRate: 0.1 })).toThrow("TW4023");
  const state = { step: zeros([]), first: [x], second: [x] };
  expect(() => nn.adamw([x], [x], { ...state, second: [ones([1])] })).toThrow("TW4023");
  expect(nn.adamw([x], [x], state)[0][0]?.shape).toEqual([2]);
});

test("products of two dtypes are refused, and updates that are no rows", async () => {
  const [x, y] = [ones([2, 2]), ones([2, 2], "f64") as unknown as F32];
  expect(() => matmul(x, y)).toThrow("TW9305");
  expect(() => einsum("ij,jk->ik", x, y)).toThrow("TW9305");
  expect(() => nn.conv(ones([1, 4, 1]), ones([2, 1, 1], "f64") as unknown as F32)).toThrow(
    "TW9305",
  );
  const rows = array([0, 1], "i32");
  expect(() => setAt(x, rows, ones([2, 1]))).toThrow("TW9304");
  expect(() => addAt(x, rows, ones([2, 3]))).toThrow("TW9304");
  expect(() => addAt(x, rows, y)).toThrow("TW9305");
  expect(await setAt(x, reshape(rows, [2, 1]), zeros([2, 1, 2])).values()).toEqual([
    [0, 0],
    [0, 0],
  ]);
});

test("shapes and ranges that an array does not have are refused by their own names", () => {
  expect(() => slice(arange(5), [[3] as never])).toThrow("TW4023");
  expect(() => slice(arange(5), [null, [0, 1]])).toThrow("TW9307");
  expect(() => reshape(zeros([4]), [-1, -1])).toThrow("TW9307");
  expect(() => reshape(zeros([4]), [-1, 3])).toThrow("TW9307");
  expect(() => reshape(zeros([0, 3]), [-1, 0])).toThrow("TW9307");
  expect(() => squeeze(ones([1, 2]), { axis: 1 })).toThrow("TW9307");
  expect(() => sum(array(1), { axis: 0 })).toThrow("an array with axes");
});

test("arrays that no process can hold say so", async () => {
  await expect(sum(zeros([2 ** 20, 2 ** 20])).values()).rejects.toThrow("TW9506");
  await expect(broadcastTo(array(1), [2 ** 31, 2 ** 31]).values()).rejects.toThrow("TW9506");
  await expect(arange(2 ** 40, "f32").values()).rejects.toThrow("TW9506");
});
