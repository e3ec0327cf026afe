import { describe, expect, test } from "vitest";
import { Random } from "../support/random.ts";
import {
  allocateElements,
  dtypeNames,
  dtypes,
  f16,
  f32,
  i4,
  packedBytes,
  u4,
  u64,
} from "./dtype.ts";
import type { DTypeName, Elements } from "./dtype.ts";
import { packElements, unpackElements } from "./packed.ts";

describe("packed bytes", () => {
  test("are little-endian", () => {
    expect([...packElements(f16, new Uint16Array([0x3c00, 0x4000]))]).toEqual([0, 0x3c, 0, 0x40]);
    expect([...packElements(u64, new BigUint64Array([0x0102030405060708n]))]).toEqual([
      8, 7, 6, 5, 4, 3, 2, 1,
    ]);
  });

  test("hold two 4-bit elements, the first in the low half", () => {
    expect([...packElements(u4, new Uint8Array([1, 2, 3]))]).toEqual([0x21, 0x03]);
    expect([...packElements(i4, new Int8Array([-1, -8]))]).toEqual([0x8f]);
    expect(unpackElements(i4, new Uint8Array([0x8f, 0xf7]), 3)).toEqual(new Int8Array([-1, -8, 7]));
    expect(unpackElements(u4, new Uint8Array([0x8f]), 2)).toEqual(new Uint8Array([15, 8]));
  });

  test("are copies, of part of a buffer too", () => {
    const elements = new Float32Array([1, 2, 3]).subarray(1);
    const bytes = packElements(f32, elements);
    expect(bytes).toHaveLength(8);
    bytes.fill(0);
    expect([...elements]).toEqual([2, 3]);
    expect(unpackElements(f32, bytes.subarray(4), 1)).toEqual(new Float32Array([0]));
  });

  test.each(dtypeNames)("%s comes back whole", (name) => {
    const seed = 3;
    const random = new Random(seed);
    for (const count of [0, 1, 2, 7, 64]) {
      const bytes = Uint8Array.from({ length: packedBytes(dtypes[name], count) }, () =>
        random.below(256),
      );
      if (dtypes[name].bits === 4 && count % 2 === 1) bytes[bytes.length - 1] = random.below(16);
      const elements = unpackElements<DTypeName>(dtypes[name], bytes, count);
      expect(elements).toHaveLength(count);
      expect(packElements<DTypeName>(dtypes[name], elements), `seed ${seed}`).toEqual(bytes);
    }
  });

  test("must reach as far as the elements asked for", () => {
    expect(() => unpackElements(f32, new Uint8Array(15), 4)).toThrow(/^TW0006: too few bytes/);
    expect(() => unpackElements(u4, new Uint8Array(1), 3)).toThrow("2 bytes");
  });

  test("of fresh elements are zero", () => {
    const elements: Elements = allocateElements(i4, 4);
    expect(packElements<DTypeName>(i4, elements)).toEqual(new Uint8Array(2));
  });
});
