import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { allocateElements, bool, dtypes, f32, f64, isWide } from "../dtype.ts";
import type { DType, IntegerName, Elements } from "../dtype.ts";
import { binaryElements, compareElements, selectElements, unaryElements } from "./elementwise.ts";
import { comparePredicates } from "./functions.ts";
import type { ComparePredicate } from "./functions.ts";
import type { IntegerBinaryFunction, IntegerUnaryFunction } from "./integer-loops.ts";

const integerNames = [
  "i4",
  "i8",
  "i16",
  "i32",
  "i64",
  "u4",
  "u8",
  "u16",
  "u32",
  "u64",
] as const satisfies readonly IntegerName[];
const integers = integerNames.map((name): DType<IntegerName> => dtypes[name]);

function wrap(dtype: DType, value: bigint): bigint {
  return dtype.kind === "signed"
    ? BigInt.asIntN(dtype.bits, value)
    : BigInt.asUintN(dtype.bits, value);
}

function elementsOf(dtype: DType, values: readonly bigint[]): Elements {
  const elements = allocateElements(dtype, values.length);
  values.forEach((value, i) => {
    if (isWide(dtype)) (elements as BigInt64Array)[i] = value;
    else (elements as Int32Array)[i] = Number(value);
  });
  return elements;
}

function valuesOf(elements: Elements): bigint[] {
  return Array.from(elements as Int32Array, (element) => BigInt(element));
}

/** All values of a 4-bit format; else ends, small numbers, powers of two, and random ones. */
function operandsOf(dtype: DType, count: number, random: Random): bigint[] {
  const bits = BigInt(dtype.bits);
  if (dtype.bits === 4) return Array.from({ length: 16 }, (_, i) => wrap(dtype, BigInt(i)));
  const values = [0n, 1n, 2n, 3n, 7n, bits - 1n, bits, bits + 1n];
  for (let n = 0n; n < bits; n += 3n) values.push(1n << n, (1n << n) - 1n);
  values.push(1n << (bits - 1n), (1n << (bits - 1n)) - 1n);
  values.push(...values.map((value) => -value));
  for (let i = 0; i < count; i++) {
    const word = (BigInt(random.bits()) << 32n) | BigInt(random.bits());
    values.push(word >> BigInt(random.below(64)));
  }
  return values.map((value) => wrap(dtype, value));
}

const unaryReference: {
  readonly [F in IntegerUnaryFunction]: (value: bigint, dtype: DType) => bigint;
} = {
  neg: (value) => -value,
  abs: (value) => (value < 0n ? -value : value),
  sign: (value) => (value > 0n ? 1n : value < 0n ? -1n : 0n),
  not: (value) => -1n - value,
  clz: (value, dtype) => {
    const digits = BigInt.asUintN(dtype.bits, value).toString(2).padStart(dtype.bits, "0");
    const first = digits.indexOf("1");
    return BigInt(first < 0 ? dtype.bits : first);
  },
  popcount: (value, dtype) => {
    const digits = BigInt.asUintN(dtype.bits, value).toString(2);
    return BigInt(digits.replaceAll("0", "").length);
  },
  bit_reverse: (value, dtype) => {
    const digits = BigInt.asUintN(dtype.bits, value).toString(2).padStart(dtype.bits, "0");
    return BigInt(`0b${[...digits].reverse().join("")}`);
  },
};

const binaryReference: {
  readonly [F in IntegerBinaryFunction]: (left: bigint, right: bigint, dtype: DType) => bigint;
} = {
  add: (left, right) => left + right,
  sub: (left, right) => left - right,
  mul: (left, right) => left * right,
  div: (left, right) => (right === 0n ? -1n : left / right),
  rem: (left, right) => (right === 0n ? left : left % right),
  min: (left, right) => (left < right ? left : right),
  max: (left, right) => (left > right ? left : right),
  pow: (left, right, dtype) => {
    if (right < 0n) return left === 1n ? 1n : left === -1n ? (right % 2n === 0n ? 1n : -1n) : 0n;
    const modulus = 1n << BigInt(dtype.bits);
    let result = 1n;
    let base = ((left % modulus) + modulus) % modulus;
    for (const digit of [...right.toString(2)].reverse()) {
      if (digit === "1") result = (result * base) % modulus;
      base = (base * base) % modulus;
    }
    return result;
  },
  and: (left, right) => left & right,
  or: (left, right) => left | right,
  xor: (left, right) => left ^ right,
  shl: (left, right, dtype) => {
    const amount = BigInt.asUintN(dtype.bits, right);
    return amount < BigInt(dtype.bits) ? left << amount : 0n;
  },
  shr: (left, right, dtype) => {
    const amount = BigInt.asUintN(dtype.bits, right);
    return amount < BigInt(dtype.bits) ? left >> amount : left < 0n ? -1n : 0n;
  },
  mul_high: (left, right, dtype) => (left * right) >> BigInt(dtype.bits),
};

describe.each(integers)("$name", (dtype) => {
  const seed = 31;
  const random = new Random(seed);

  test("functions of one operand", () => {
    const values = operandsOf(dtype, 1500, random);
    const target = allocateElements(dtype, values.length);
    for (const [fn, reference] of Object.entries(unaryReference)) {
      unaryElements(fn as IntegerUnaryFunction, dtype, elementsOf(dtype, values), target);
      const expected = values.map((value) => wrap(dtype, reference(value, dtype)));
      expect(valuesOf(target), `${fn}, seed ${seed}`).toEqual(expected);
    }
  });

  test("functions of two operands", () => {
    const some = operandsOf(dtype, 20, random);
    const operands = some.flatMap((left) => some.map((right) => [left, right] as const));
    const left = elementsOf(
      dtype,
      operands.map(([value]) => value),
    );
    const right = elementsOf(
      dtype,
      operands.map(([, value]) => value),
    );
    const target = allocateElements(dtype, operands.length);
    for (const [fn, reference] of Object.entries(binaryReference)) {
      binaryElements(fn as IntegerBinaryFunction, dtype, left, right, target);
      const wrong: string[] = [];
      for (const [i, found] of valuesOf(target).entries()) {
        const [x, y] = operands[i] ?? [0n, 0n];
        const expected = wrap(dtype, reference(x, y, dtype));
        if (found !== expected) wrong.push(`${fn}(${x}, ${y}): ${found}, not ${expected}`);
      }
      expect(wrong.slice(0, 5), `seed ${seed}`).toEqual([]);
    }
  });

  test("predicates", () => {
    const holds: { readonly [P in ComparePredicate]: (left: bigint, right: bigint) => boolean } = {
      eq: (x, y) => x === y,
      ne: (x, y) => x !== y,
      lt: (x, y) => x < y,
      le: (x, y) => x <= y,
      gt: (x, y) => x > y,
      ge: (x, y) => x >= y,
    };
    const some = operandsOf(dtype, 20, random);
    const operands = some.flatMap((left) => some.map((right) => [left, right] as const));
    const left = elementsOf(
      dtype,
      operands.map(([value]) => value),
    );
    const right = elementsOf(
      dtype,
      operands.map(([, value]) => value),
    );
    const target = new Uint8Array(operands.length);
    for (const predicate of comparePredicates) {
      compareElements(predicate, dtype, left, right, target);
      const expected = operands.map(([x, y]) => Number(holds[predicate](x, y)));
      expect(Array.from(target), `${predicate}, seed ${seed}`).toEqual(expected);
    }
  });
});

test("bool has logic and equality", () => {
  const left = Uint8Array.of(0, 0, 1, 1);
  const right = Uint8Array.of(0, 1, 0, 1);
  const target = new Uint8Array(4);
  const cases = { and: [0, 0, 0, 1], or: [0, 1, 1, 1], xor: [0, 1, 1, 0] } as const;
  for (const fn of ["and", "or", "xor"] as const) {
    binaryElements(fn, bool, left, right, target);
    expect(Array.from(target), fn).toEqual(cases[fn]);
  }
  unaryElements("not", bool, left, target);
  expect(Array.from(target)).toEqual([1, 1, 0, 0]);
  compareElements("eq", bool, left, right, target);
  expect(Array.from(target)).toEqual([1, 0, 0, 1]);
  compareElements("ne", bool, left, right, target);
  expect(Array.from(target)).toEqual([0, 1, 1, 0]);
});

test("elements of any length and place, and results in place of an operand", () => {
  const whole = Int32Array.from({ length: 5003 }, (_, i) => i);
  const part = whole.subarray(3);
  const before = Array.from(part);
  binaryElements("add", dtypes.i32, part, part, part);
  expect(Array.from(part)).toEqual(before.map((value) => 2 * value));
  expect(Array.from(whole.subarray(0, 3))).toEqual([0, 1, 2]);
  const wide = BigInt64Array.from({ length: 2051 }, (_, i) => BigInt(i) << 30n);
  const widePart = wide.subarray(2);
  const wideBefore = Array.from(widePart);
  binaryElements("mul", dtypes.i64, widePart, widePart, widePart);
  expect(Array.from(widePart)).toEqual(wideBefore.map((value) => BigInt.asIntN(64, value * value)));
});

describe("selection", () => {
  const names = ["f64", "f32", "bf16", "f8e4m3fn", "f4e2m1fn", "i4", "i16", "u32", "u64"] as const;
  test.each(names)("of %s takes bits as they are", (name) => {
    const dtype = dtypes[name];
    const seed = 32;
    const random = new Random(seed);
    const count = 2500;
    const bytes = () => {
      const elements = allocateElements(dtype, count);
      const view = new Uint8Array(elements.buffer);
      for (let i = 0; i < view.length; i++) view[i] = random.below(dtype.bits === 4 ? 8 : 256);
      return { elements, view };
    };
    const ifTrue = bytes();
    const ifFalse = bytes();
    const condition = Uint8Array.from({ length: count }, () => random.below(2));
    const target = allocateElements(dtype, count);
    selectElements(condition, ifTrue.elements, ifFalse.elements, target);
    const size = target.BYTES_PER_ELEMENT;
    const expected = Uint8Array.from({ length: count * size }, (_, i) => {
      const chosen = condition[Math.floor(i / size)] === 1 ? ifTrue.view : ifFalse.view;
      return chosen[i] ?? 0;
    });
    expect(new Uint8Array(target.buffer), `seed ${seed}`).toEqual(expected);
  });

  test.each([f32, f64])("keeps signalling NaNs of $name", (dtype) => {
    const source = allocateElements(dtype, 1);
    const words = new Uint32Array(source.buffer);
    words[words.length - 1] = dtype === f32 ? 0xff812345 : 0xfff01234;
    const target = allocateElements(dtype, 1);
    selectElements(Uint8Array.of(1), source, allocateElements(dtype, 1), target);
    expect(new Uint32Array(target.buffer)).toEqual(words);
  });
});
