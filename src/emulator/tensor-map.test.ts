import { describe, expect, test } from "vitest";
import { Random } from "../support/random.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { decodeTensorMap, encodeTensorMap, tensorMapTypes } from "./tensor-map.ts";
import type { TensorMap } from "./tensor-map.ts";

const sound: TensorMap = {
  type: "bf16",
  address: 4096,
  extents: [64, 10, 3],
  strides: [128, 1280],
  box: [64, 8, 2],
  elementStrides: [1, 2, 1],
  swizzle: 128,
  fill: "zero",
};

describe("tensor maps", () => {
  test("come back from their 128 bytes as they were", () => {
    const seed = 12;
    const random = new Random(seed);
    for (let round = 0; round < 200; round++) {
      const rank = 1 + random.below(5);
      const list = (make: () => number, count = rank): number[] =>
        Array.from({ length: count }, make);
      const map: TensorMap = {
        type: random.pick(tensorMapTypes),
        address: 16 * random.below(2 ** 40),
        extents: list(() => 1 + random.below(2 ** 32)),
        strides: list(() => 16 * (1 + random.below(2 ** 35)), rank - 1),
        box: [16, ...list(() => 1 + random.below(256), rank - 1)],
        elementStrides: list(() => 1 + random.below(8)),
        swizzle: random.pick([0, 128] as const),
        fill: "zero",
      };
      const bytes = encodeTensorMap(map);
      expect(bytes.length).toBe(128);
      expect(decodeTensorMap(bytes), `seed ${seed}, round ${round}`).toEqual(map);
    }
  });

  test("bytes that are none give nothing", () => {
    expect(decodeTensorMap(encodeTensorMap(sound).subarray(0, 64))).toBeUndefined();
    const changed = (byte: number, value: number): Uint8Array => {
      const bytes = encodeTensorMap(sound);
      bytes[byte] = value;
      return bytes;
    };
    // Eight axes, a type beyond the last, an interleaved layout.
    expect(decodeTensorMap(changed(8, 0x70))).toBeUndefined();
    expect(decodeTensorMap(changed(9, 0x07))).toBeUndefined();
    expect(decodeTensorMap(changed(9, 0x08))).toBeUndefined();
  });

  test.for<[string, Partial<TensorMap>]>([
    ["address", { address: 8 }],
    ["0 axes", { extents: [], strides: [], box: [], elementStrides: [] }],
    ["strides", { strides: [128] }],
    ["element strides", { elementStrides: [1] }],
    ["an extent is 0", { extents: [64, 0, 3] }],
    ["a stride is 100", { strides: [100, 1280] }],
    ["257", { box: [64, 257, 2] }],
    ["an element stride is 9", { elementStrides: [1, 9, 1] }],
    ["no multiple of 16", { box: [60, 8, 2], swizzle: 128 }],
    ["more than the swizzle", { box: [64, 8, 2], swizzle: 64 }],
    ["no NaN", { type: "u16", fill: "nan" }],
  ])("the driver's rules hold: %s", ([words, change]) => {
    const encode = (): Uint8Array => encodeTensorMap({ ...sound, ...change });
    expect(encode).toThrow(words);
    expect(encode).toThrow(TilewrightError);
    expect(encode).toThrow(/TW8050/);
  });
});
