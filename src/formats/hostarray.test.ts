import { describe, expect, expectTypeOf, test } from "vitest";
import { TilewrightError } from "../support/diagnostics.ts";
import * as formats from "./dtype.ts";
import { bf16, f16, f32, f4e2m1fn, f64, f8e4m3fn, i4, i64, i8, u4, u64, u8 } from "./dtype.ts";
import type { DType, Elements } from "./dtype.ts";
import {
  formatArray,
  fromElements,
  fromNumbers,
  hostArray,
  toBigInts,
  toFloat32,
  toElements,
  toNested,
  toNumbers,
} from "./hostarray.ts";
import { elementCount } from "./shape.ts";
import type { HostArray, Storage } from "./hostarray.ts";

function errorOf(action: () => unknown): TilewrightError {
  try {
    action();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

describe("hostArray", () => {
  test("keeps the data it is given", () => {
    const data = new Float32Array(6);
    const array = hostArray(f32, [2, 3], data);
    expect(array.data).toBe(data);
    expect(array.shape).toEqual([2, 3]);
    expect(array.dtype).toBe(f32);
  });

  test("is zero without data, in the array of its format", () => {
    expect(hostArray(bf16, [2, 2]).data).toEqual(new Uint16Array(4));
    expect(hostArray(i64, []).data).toEqual(new BigInt64Array(1));
    expect(hostArray(f32, [3, 0]).data).toHaveLength(0);
    expect(hostArray(i4, [3]).data).toEqual(new Uint8Array(2));
  });

  test("does not follow later changes of the shape's list", () => {
    const shape = [2, 3];
    const array = hostArray(f32, shape);
    shape[0] = 9;
    expect(array.shape).toEqual([2, 3]);
    expect(Object.isFrozen(array)).toBe(true);
  });

  test.each([f32, i4])("says so where the process has no room for %o", (dtype) => {
    expect(errorOf(() => hostArray(dtype, [2 ** 25, 2 ** 25])).code).toBe("TW0009");
  });

  test("takes a subclass of its typed array", () => {
    class Bytes extends Uint8Array {}
    expect(hostArray(u8, [2], new Bytes([1, 2])).data).toHaveLength(2);
  });

  test("types its data by the format", () => {
    expectTypeOf(hostArray(f16, [1]).data).toEqualTypeOf<Uint16Array>();
    expectTypeOf(hostArray(i4, [1]).data).toEqualTypeOf<Uint8Array>();
    expectTypeOf(hostArray(i64, [1]).data).toEqualTypeOf<BigInt64Array>();
    expectTypeOf(hostArray(f16, [1])).toExtend<HostArray>();
  });

  test("refuses data of another length", () => {
    const error = errorOf(() => hostArray(f32, [4, 4], new Float32Array(15)));
    expect(error).toMatchObject({ code: "TW0001", expected: "Float32Array of 16", found: "15" });
    expect(error.summary).toBe("data does not fit f32[4, 4]");
    expect(error.position?.file).toMatch(/hostarray\.test\.ts$/);
    expect(errorOf(() => hostArray(u4, [3], new Uint8Array(3)))).toMatchObject({
      code: "TW0001",
      expected: "Uint8Array of 2",
    });
  });

  test("refuses another kind of array", () => {
    const data: unknown = new Float32Array([1, 2]);
    const error = errorOf(() => hostArray(bf16, [2], data as Uint16Array));
    expect(error).toMatchObject({ code: "TW0002", expected: "Uint16Array", found: "Float32Array" });
    const list: unknown = [1, 2];
    expect(errorOf(() => hostArray(f32, [2], list as Float32Array))).toMatchObject({
      code: "TW0002",
      found: "[1, 2]",
    });
    // Elements of i4 are not its storage.
    const elements: unknown = new Int8Array(2);
    expect(errorOf(() => hostArray(i4, [2], elements as Uint8Array)).code).toBe("TW0002");
  });

  test.each([[[2, -1]], [[1.5]], [[NaN]], [[Infinity]]])("refuses the shape %j", (shape) => {
    expect(errorOf(() => hostArray(f32, shape)).code).toBe("TW0003");
  });
});

test("elementCount multiplies the extents", () => {
  expect([
    elementCount([]),
    elementCount([4]),
    elementCount([2, 0, 3]),
    elementCount([2, 3]),
  ]).toEqual([1, 4, 0, 6]);
});

describe("fromNumbers", () => {
  test("converts a list of numbers as f64", () => {
    expect(fromNumbers(bf16, [2, 2], [1, 2, 3, 4]).data).toEqual(
      new Uint16Array([0x3f80, 0x4000, 0x4040, 0x4080]),
    );
    expect([...fromNumbers(i8, [3], [200, -1.9, NaN]).data]).toEqual([127, -1, 0]);
  });

  test("converts a typed array by what it holds", () => {
    expect([...fromNumbers(i8, [2], new Int32Array([200, -300])).data]).toEqual([-56, -44]);
    expect([...fromNumbers(i8, [2], new Float32Array([200, -300])).data]).toEqual([127, -128]);
    expect([...fromNumbers(f32, [1], new BigUint64Array([2n ** 63n])).data]).toEqual([2 ** 63]);
    expect([...fromNumbers(f64, [1], new Uint8ClampedArray([255])).data]).toEqual([255]);
  });

  test("takes BigInts and booleans, also mixed", () => {
    const values = [2n ** 64n - 1n, -1n, true, 7.9];
    expect([...fromNumbers(u64, [4], values).data]).toEqual([
      2n ** 64n - 1n,
      2n ** 64n - 1n,
      1n,
      7n,
    ]);
    expect([...fromNumbers(f32, [2], [2n ** 60n + 2n ** 36n + 1n, false]).data]).toEqual([
      2 ** 60 + 2 ** 37,
      0,
    ]);
  });

  test("packs 4-bit formats, the first element in the low half", () => {
    expect([...fromNumbers(i4, [3], [1, -2, 7]).data]).toEqual([0xe1, 0x07]);
    expect([...fromNumbers(f4e2m1fn, [2], [6, -0.5]).data]).toEqual([0x97]);
  });

  test("passes on what overflow shall give", () => {
    expect([...fromNumbers(f8e4m3fn, [1], [1e6]).data]).toEqual([0x7e]);
    expect([...fromNumbers(f8e4m3fn, [1], [1e6], { overflow: "nan" }).data]).toEqual([0x7f]);
  });

  test("does not keep the given array", () => {
    const values = new Float32Array([1, 2]);
    expect(fromNumbers(f32, [2], values).data).not.toBe(values);
  });

  test("refuses the wrong number of values", () => {
    expect(errorOf(() => fromNumbers(f32, [2], [1, 2, 3]))).toMatchObject({
      code: "TW0001",
      expected: "2 values",
      found: "3",
    });
  });

  test("refuses what is no number", () => {
    expect(errorOf(() => fromNumbers(u64, [2], [1n, 2n ** 64n]))).toMatchObject({
      code: "TW0004",
      found: "18446744073709551616n",
    });
    expect(errorOf(() => fromNumbers(i64, [1], [-(2n ** 63n) - 1n])).code).toBe("TW0004");
    const words: unknown = [1, "2"];
    expect(errorOf(() => fromNumbers(f32, [2], words as number[]))).toMatchObject({
      code: "TW0004",
      found: 'the text "2"',
    });
    const sparse: unknown = [1, , 3];
    expect(errorOf(() => fromNumbers(f32, [3], sparse as number[])).code).toBe("TW0004");
  });
});

describe("elements", () => {
  test("unpack and pack 4-bit formats", () => {
    const array = fromNumbers(i4, [5], [-8, 7, 0, -1, 3]);
    expect(toElements(array)).toEqual(new Int8Array([-8, 7, 0, -1, 3]));
    expect(fromElements(i4, [5], toElements(array))).toEqual(array);
  });

  test("of other formats are the data", () => {
    const array = fromNumbers(f16, [2], [1, 2]);
    expect(toElements(array)).toBe(array.data);
    expect(fromElements(f16, [2], array.data).data).toBe(array.data);
  });

  test("must fit the shape", () => {
    expect(errorOf(() => fromElements(u4, [4], new Uint8Array(3)))).toMatchObject({
      code: "TW0001",
      expected: "4 elements",
      found: "3",
    });
  });
});

describe("reading", () => {
  const all: readonly DType[] = Object.values(formats.dtypes);

  test.each(all.map(({ name }) => name))("%s gives back small numbers", (name) => {
    const values = name === "bool" ? [1, 0, 1] : [1, 2, 4];
    const array = fromNumbers<formats.DTypeName>(formats.dtypes[name], [3], values);
    expect([...toNumbers(array)]).toEqual(values);
    expect([...toFloat32(array)]).toEqual(values);
    const nested = toNested(array) as readonly (number | bigint | boolean)[];
    expect(nested.map(Number)).toEqual(values);
  });

  test("64-bit integers are rounded by toNumbers and exact by toBigInts", () => {
    const array = fromNumbers(i64, [2], [2n ** 53n + 1n, -(2n ** 63n)]);
    expect([...toNumbers(array)]).toEqual([2 ** 53, -(2 ** 63)]);
    expect([...toBigInts(array)]).toEqual([2n ** 53n + 1n, -(2n ** 63n)]);
    expect([...toBigInts(fromNumbers(u64, [1], [2n ** 64n - 1n]))]).toEqual([2n ** 64n - 1n]);
    expect([...toBigInts(fromNumbers(i4, [2], [-8, 7]))]).toEqual([-8n, 7n]);
  });

  test("nests by rows", () => {
    expect(toNested(fromNumbers(f16, [2, 1, 2], [1, 2, 3, 4.5]))).toEqual([[[1, 2]], [[3, 4.5]]]);
    expect(toNested(fromNumbers(formats.bool, [2], [true, false]))).toEqual([true, false]);
    expect(toNested(fromNumbers(i64, [], [7n]))).toBe(7n);
    expect(toNested(hostArray(f32, [2, 0]))).toEqual([[], []]);
  });
});

describe("formatArray", () => {
  test("prints small arrays whole", () => {
    expect(formatArray(fromNumbers(f16, [2, 3], [1, 2, 3, -0, 0.1, NaN]))).toBe(
      "f16[2, 3]\n[[1, 2, 3],\n [-0, 0.0999756, NaN]]",
    );
    expect(formatArray(fromNumbers(i64, [], [-3n]))).toBe("i64[]\n-3");
    expect(formatArray(hostArray(f32, [0]))).toBe("f32[0]\n[]");
  });

  test("leaves out the middle of long dimensions", () => {
    const values = Float32Array.from({ length: 80 }, (_, i) => i);
    expect(formatArray(fromNumbers(f32, [80], values))).toBe("f32[80]\n[0, 1, 2, …, 77, 78, 79]");
    expect(formatArray(fromNumbers(f32, [10, 8], values)).split("\n")).toEqual([
      "f32[10, 8]",
      "[[0, 1, 2, …, 5, 6, 7],",
      " [8, 9, 10, …, 13, 14, 15],",
      " [16, 17, 18, …, 21, 22, 23],",
      " …,",
      " [56, 57, 58, …, 61, 62, 63],",
      " [64, 65, 66, …, 69, 70, 71],",
      " [72, 73, 74, …, 77, 78, 79]]",
    ]);
    expect(formatArray(fromNumbers(u8, [7], [1, 2, 3, 4, 5, 6, 7]))).toBe(
      "u8[7]\n[1, 2, 3, 4, 5, 6, 7]",
    );
  });
});

test("storage is elements but for 4-bit formats", () => {
  expectTypeOf<Storage<"f16">>().toEqualTypeOf<Elements<"f16">>();
  expectTypeOf<Storage<"i4">>().toEqualTypeOf<Uint8Array>();
});
