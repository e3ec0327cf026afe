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

/** Of the 32 words those that are not zero, by their number; as the driver of an H200 wrote them. */
type Words = { readonly [word: number]: number };

const plain: TensorMap = {
  type: "u8",
  address: 0x7f0000000000,
  extents: [256, 64],
  strides: [256],
  box: [64, 8],
  swizzle: 0,
  fill: "zero",
};
const five: TensorMap = {
  ...plain,
  extents: [256, 64, 32, 16, 8],
  strides: [512, 32768, 1048576, 16777216],
  box: [16, 8, 4, 2, 2],
};
const images: TensorMap = {
  ...plain,
  type: "f16",
  extents: [64, 32, 16],
  strides: [128, 4096],
  box: [64, 32],
  corners: { lower: [-1], upper: [1] },
};

const measured: readonly (readonly [name: string, map: TensorMap, words: Words])[] = [
  [
    "plain",
    plain,
    { 2: 0x10, 3: 0x10, 8: 0xff, 9: 0x3f, 13: 0x3f000000, 14: 7, 16: 0x200, 18: 0x10 },
  ],
  [
    "f64",
    { ...plain, type: "f64", extents: [16, 64], strides: [128], box: [16, 8] },
    { 2: 0x490, 3: 8, 8: 0xf, 9: 0x3f, 13: 0x0f000000, 14: 7, 16: 0x400, 18: 0x10 },
  ],
  [
    "tf32.ftz",
    { ...plain, type: "tf32.ftz", extents: [16, 64], strides: [128], box: [16, 8] },
    { 2: 0x10410, 3: 8, 8: 0xf, 9: 0x3f, 13: 0x0f000000, 14: 7, 16: 0x200, 18: 0x10 },
  ],
  [
    "swizzle",
    { ...plain, box: [16, 8], swizzle: 64 },
    { 2: 0x4010, 3: 0x10, 8: 0xff, 9: 0x3f, 13: 0x0f000000, 14: 7, 16: 0x80, 18: 0x200 },
  ],
  [
    "fill",
    { ...plain, type: "f32", box: [16, 8], fill: "nan" },
    { 2: 0x8390, 3: 0x10, 8: 0xff, 9: 0x3f, 13: 0x0f000000, 14: 7, 16: 0x200, 18: 0x10 },
  ],
  [
    "five axes with a long stride and element strides",
    { ...five, strides: [512, 32768, 0xabcdef1230, 16777216], elementStrides: [1, 1, 1, 7, 1] },
    {
      ...{ 2: 0x40, 3: 0x20, 4: 0x800, 5: 0xbcdef123, 6: 0x100000, 7: 0xa00 },
      ...{ 8: 0xff, 9: 0x3f, 10: 0x1f, 11: 0xf, 12: 7, 13: 0x0f000c00, 14: 0x01010307, 18: 0x10 },
    },
  ],
  [
    "pixels in a row",
    images,
    {
      ...{ 2: 0x321, 3: 8, 4: 0x100, 8: 0x3f, 9: 0x1f, 10: 0xf, 13: 0x3f000000, 14: 0x1ffff },
      ...{ 15: 0x1f, 16: 0x1000, 18: 0x10 },
    },
  ],
  [
    "pixels of planes",
    {
      ...images,
      extents: [64, 32, 16, 4],
      strides: [128, 4096, 65536],
      corners: { lower: [-8, 7], upper: [6, -5] },
    },
    {
      ...{ 2: 0x331, 3: 8, 4: 0x100, 5: 0x1000, 8: 0x3f, 9: 0x1f, 10: 0xf, 11: 3 },
      ...{ 13: 0x3f000000, 14: 0xfb0607f8, 15: 0x1f, 16: 0x1000, 18: 0x10 },
    },
  ],
  [
    "pixels of volumes",
    {
      ...images,
      extents: [64, 32, 16, 4, 2],
      strides: [128, 4096, 65536, 262144],
      corners: { lower: [-1, -2, -3], upper: [3, 2, 1] },
    },
    {
      ...{ 2: 0x341, 3: 8, 4: 0x100, 5: 0x1000, 6: 0x4000, 8: 0x3f, 9: 0x1f, 10: 0xf, 11: 3 },
      ...{ 12: 1, 13: 0x3f000000, 14: 0x044377df, 15: 0x1f, 16: 0x1000, 18: 0x10 },
    },
  ],
];

describe("the bytes of a map are the driver's", () => {
  test.for(measured)("%s", ([, map, words]) => {
    const bytes = encodeTensorMap(map);
    const found = new Uint32Array(bytes.slice().buffer);
    const expected = Array.from({ length: 32 }, (_, at) => words[at] ?? 0);
    expect([...found]).toEqual(expected.map((word, at) => (at === 1 ? 0x7f00 : word)));
    const { elementStrides: given, ...rest } = map;
    const elementStrides = given ?? map.extents.map(() => 1);
    expect(decodeTensorMap(bytes)).toEqual({ ...rest, elementStrides });
  });

  test.for<[string, Partial<TensorMap>]>([
    ["3 to 5 axes", { extents: [64, 32], strides: [128], corners: { lower: [], upper: [] } }],
    ["2 box extents", { box: [64] }],
    ["1 to 1024", { box: [64, 1025] }],
    ["corners either way", { corners: { lower: [1, 1], upper: [1] } }],
    ["-32768 to 32767", { corners: { lower: [-32769], upper: [1] } }],
    ["no pixel along axis 1", { corners: { lower: [0], upper: [-32] } }],
  ])("an im2col map is refused: %s", ([words, change]) => {
    expect(() => encodeTensorMap({ ...images, ...change })).toThrow(words);
  });
});
