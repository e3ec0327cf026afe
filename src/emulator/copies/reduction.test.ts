import { describe, expect, test } from "vitest";
import { decodeFloat, encodeFloat } from "../../formats/floats.ts";
import { Random } from "../../support/random.ts";
import {
  acceptsReduction,
  reduceBytes,
  reductionOperations,
  reductionTypeBytes,
} from "./reduction.ts";
import type { ReductionOperation, ReductionType } from "./reduction.ts";

const seed = 8;
const count = 200;

/** Bits where carries, signs and limits are. */
function draw(random: Random, bytes: number): bigint {
  const bits = BigInt(8 * bytes);
  const word = (BigInt(random.bits()) << 32n) | BigInt(random.bits());
  const edges = [0n, 1n, 2n, (1n << bits) - 1n, 1n << (bits - 1n), (1n << (bits - 1n)) - 1n];
  return BigInt.asUintN(Number(bits), random.below(2) === 0 ? random.pick(edges) : word);
}

function read(bytes: Uint8Array, index: number, size: number): bigint {
  let bits = 0n;
  for (let byte = size - 1; byte >= 0; byte--)
    bits = (bits << 8n) | BigInt(bytes[index * size + byte] ?? 0);
  return bits;
}

function write(bytes: Uint8Array, index: number, size: number, bits: bigint): void {
  for (let byte = 0; byte < size; byte++)
    bytes[index * size + byte] = Number((bits >> BigInt(8 * byte)) & 255n);
}

const integers: { readonly [O in ReductionOperation]: (old: bigint, operand: bigint) => bigint } = {
  add: (old, operand) => old + operand,
  min: (old, operand) => (old < operand ? old : operand),
  max: (old, operand) => (old > operand ? old : operand),
  inc: (old, operand) => (old >= operand ? 0n : old + 1n),
  dec: (old, operand) => (old === 0n || old > operand ? operand : old - 1n),
  and: (old, operand) => old & operand,
  or: (old, operand) => old | operand,
  xor: (old, operand) => old ^ operand,
};

const integerTypes: readonly ReductionType[] = ["u32", "s32", "u64", "s64"];

describe("reductions of integers", () => {
  test.for(
    integerTypes.flatMap((type) =>
      reductionOperations.map((operation) => [operation, type] as const),
    ),
  )("%s of %s", ([operation, type]) => {
    const defined = type === "u32" || (operation !== "inc" && operation !== "dec");
    expect(acceptsReduction(operation, type)).toBe(defined);
    if (!defined) return;
    const random = new Random(seed);
    const size = reductionTypeBytes[type];
    const bits = 8 * size;
    const target = new Uint8Array(size * count);
    const source = new Uint8Array(size * count);
    for (let index = 0; index < count; index++) {
      write(target, index, size, draw(random, size));
      write(source, index, size, draw(random, size));
    }
    const old = target.slice();
    reduceBytes(operation, type, target, source);
    const view = (value: bigint): bigint =>
      type.startsWith("s") ? BigInt.asIntN(bits, value) : value;
    for (let index = 0; index < count; index++) {
      const expected = integers[operation](
        view(read(old, index, size)),
        view(read(source, index, size)),
      );
      expect(read(target, index, size), `seed ${seed}, element ${index}`).toBe(
        BigInt.asUintN(bits, expected),
      );
    }
  });
});

function floats(type: "f16" | "bf16" | "f32", values: readonly number[]): Uint8Array {
  const bytes = reductionTypeBytes[type];
  const packed = new Uint8Array(values.length * bytes);
  for (const [index, value] of values.entries())
    write(packed, index, bytes, BigInt(encodeFloat(type, value)));
  return packed;
}

function reduced(
  operation: ReductionOperation,
  type: "f16" | "bf16" | "f32",
  old: readonly number[],
  operand: readonly number[],
): number[] {
  const target = floats(type, old);
  reduceBytes(operation, type, target, floats(type, operand));
  const bytes = reductionTypeBytes[type];
  return old.map((_, index) => decodeFloat(type, Number(read(target, index, bytes))));
}

describe("reductions of floats", () => {
  test("sums round once, to nearest even", () => {
    expect(reduced("add", "f16", [2048, 2048, 65504], [1, 3, 16])).toEqual([2048, 2052, Infinity]);
    expect(reduced("add", "bf16", [256, 256, 1], [1, 3, 2 ** -20])).toEqual([256, 260, 1]);
    expect(reduced("add", "f32", [2 ** 24, 1], [1, 2])).toEqual([2 ** 24, 3]);
  });

  test("sums keep subnormal numbers", () => {
    expect(reduced("add", "f16", [2 ** -24], [2 ** -24])).toEqual([2 ** -23]);
    expect(reduced("add", "f32", [2 ** -149, 2 ** -126], [2 ** -149, -(2 ** -127)])).toEqual([
      2 ** -148,
      2 ** -127,
    ]);
  });

  test("of a NaN and a number, the number is the extremum", () => {
    expect(reduced("min", "f16", [NaN, 3, -1, NaN], [2, NaN, 5, NaN])).toEqual([2, 3, -1, NaN]);
    expect(
      reduced("max", "bf16", [-0, -2], [0, -3]).map((value) => Object.is(value, 0) || value),
    ).toEqual([true, -2]);
  });

  test("f64 sums are those of JavaScript", () => {
    const target = new Uint8Array(Float64Array.of(0.1, Infinity).buffer);
    reduceBytes("add", "f64", target, new Uint8Array(Float64Array.of(0.2, -Infinity).buffer));
    expect([...new Float64Array(target.buffer)]).toEqual([0.1 + 0.2, NaN]);
  });

  test("other operations are not defined", () => {
    expect(acceptsReduction("min", "f32")).toBe(false);
    expect(() => reduceBytes("xor", "f16", new Uint8Array(2), new Uint8Array(2))).toThrow(
      "xor of f16",
    );
  });
});
