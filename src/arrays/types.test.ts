/** What the types of arrays promise; the compiler checks them, and the bodies run, so that they cannot drift apart. */
import { expect, expectTypeOf, test } from "vitest";
import { f64 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import type { DTypeName } from "../formats/dtype.ts";
import * as arrays from "./index.ts";
import type { NDArray } from "./index.ts";

test("a dtype that is not given is not taken from what is expected", () => {
  // @ts-expect-error numbers are f32
  const z: NDArray<"i32"> = arrays.array([1.5]);
  // @ts-expect-error zeros are f32
  const zero: NDArray<"i32"> = arrays.zeros([2]);
  // @ts-expect-error ones are f32
  const one: NDArray<"bf16"> = arrays.ones([2]);
  // @ts-expect-error counts are i32
  const count: NDArray<"f32"> = arrays.arange(4);
  // @ts-expect-error ones of a class are f32
  const hot: NDArray<"i32"> = arrays.oneHot(arrays.arange(4), 4);
  expect([z, zero, one, count, hot].map(({ dtype }) => dtype)).toEqual(
    ["f32", "f32", "f32", "i32", "f32"], // prettier-ignore
  );
});

test("a dtype that is given is that of the array", () => {
  expectTypeOf(arrays.array([1, 2])).toEqualTypeOf<NDArray<"f32">>();
  expectTypeOf(arrays.array([1, 2], "i32")).toEqualTypeOf<NDArray<"i32">>();
  expectTypeOf(arrays.zeros([2], "bool")).toEqualTypeOf<NDArray<"bool">>();
  expectTypeOf(arrays.ones([2], "u8")).toEqualTypeOf<NDArray<"u8">>();
  expectTypeOf(arrays.arange(4)).toEqualTypeOf<NDArray<"i32">>();
  expectTypeOf(arrays.arange(4, "f32")).toEqualTypeOf<NDArray<"f32">>();
  expectTypeOf(arrays.full([2], 1, "bf16")).toEqualTypeOf<NDArray<"bf16">>();
  expectTypeOf(arrays.iota([2], "u32", { axis: 0 })).toEqualTypeOf<NDArray<"u32">>();
  const host = fromNumbers(f64, [1], [1]);
  expectTypeOf(arrays.array(host)).toEqualTypeOf<NDArray<"f64">>();
  const unknown: HostArray = host;
  expectTypeOf(arrays.array(unknown)).toEqualTypeOf<NDArray>();
  // @ts-expect-error full takes its dtype from its argument
  const wrong: NDArray<"i32"> = arrays.full([2], 1, "f32");
  // @ts-expect-error and so does a host array
  const other: NDArray<"i32"> = arrays.array(host);
  expect([wrong.dtype, other.dtype]).toEqual(["f32", "f64"]);
});

test("random numbers have a dtype of their own", () => {
  const key = arrays.random.key(1);
  expectTypeOf(arrays.random.normal(key, [2])).toEqualTypeOf<NDArray<"f32">>();
  expectTypeOf(arrays.random.bits(key, [2])).toEqualTypeOf<NDArray<"u32">>();
  expectTypeOf(arrays.random.bernoulli(key, 0.5, [2])).toEqualTypeOf<NDArray<"bool">>();
  expectTypeOf(arrays.random.randint(key, [2], 0, 9)).toEqualTypeOf<NDArray<"i32">>();
  // @ts-expect-error uniform numbers are f32
  const uniform: NDArray<"f64"> = arrays.random.uniform(key, [2]);
  expect(uniform.dtype).toBe("f32");
});

test("functions are of the dtypes that have them", () => {
  const [floats, counts] = [arrays.array([1, 2]), arrays.array([1, 2], "i32")];
  const truths = arrays.less(floats, 2);
  expectTypeOf(arrays.exp(floats)).toEqualTypeOf<NDArray<"f32">>();
  expectTypeOf(arrays.bitwiseAnd(counts, 1)).toEqualTypeOf<NDArray<"i32">>();
  expectTypeOf(arrays.bitwiseOr(truths, truths)).toEqualTypeOf<NDArray<"bool">>();
  expectTypeOf(arrays.shiftLeft(counts, counts)).toEqualTypeOf<NDArray<"i32">>();
  expectTypeOf(arrays.mean(floats, { axis: 0 })).toEqualTypeOf<NDArray<"f32">>();
  // @ts-expect-error integers have no exponential
  expect(() => arrays.exp(counts)).toThrow("TW9102");
  // @ts-expect-error floats are no sets of bits
  expect(() => arrays.bitwiseAnd(floats, floats)).toThrow("TW9102");
  // @ts-expect-error bools are not shifted
  expect(() => arrays.shiftLeft(truths, truths)).toThrow("TW9102");
  // @ts-expect-error integers are not true or false
  expect(() => arrays.logicalNot(counts)).toThrow("TW9322");
  // @ts-expect-error a softmax of integers would be 0 or 1
  expect(() => arrays.softmax(counts)).toThrow("TW9102");
  // @ts-expect-error nor have they a gelu
  expect(() => arrays.nn.gelu(counts)).toThrow("TW9321");
});

test("what may have a function has it", () => {
  const soft = <D extends "f32" | "bf16">(x: NDArray<D>): NDArray<D> => arrays.exp(x);
  const any = (x: NDArray): NDArray<DTypeName> => arrays.exp(x);
  expect([soft(arrays.ones([2])), any(arrays.ones([2]))].map(({ shape }) => shape)).toEqual([
    [2],
    [2],
  ]);
});
