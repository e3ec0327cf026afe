import { describe, expect, test } from "vitest";
import { decodeFloat, floatFormats } from "../floats.ts";
import { denseBits } from "../packed.ts";
import { dequantizeElements } from "./dequantize.ts";
import { blockExtents, mxfp4, mxfp8e4m3, nvfp4, scaledFormats } from "./formats.ts";
import type { ScaledFormat } from "./formats.ts";
import { scaleIndices, scalePlaces, scaleShape } from "./layout.ts";

const all: readonly ScaledFormat[] = Object.values(scaledFormats);

describe.each(all)("$name", (format) => {
  test("its record says what its formats say", () => {
    expect(format.largest).toBe(floatFormats[format.element.name].maxFinite);
    expect(scaledFormats[format.name]).toBe(format);
  });

  test("every pair of scale and element is their exact product", () => {
    const { element, scale } = format;
    const codes = 1 << denseBits(element);
    const f32Scales = [0, 1, 2 ** -149, 2 ** -126, 0.1, -3.7, 2 ** 120, Infinity, NaN];
    const scales = scale.name === "f32" ? f32Scales : [...Array(256).keys()];
    for (const [each, code] of scales.entries()) {
      const numbers = dequantizeElements(format, {
        shape: [1, codes],
        elements: Uint8Array.from({ length: codes }, (_, index) => index),
        scales:
          scale.name === "f32"
            ? new Float32Array(codes).fill(code)
            : new Uint8Array(codes).fill(code),
        globalScale: format.hasGlobalScale ? 0.375 : undefined,
      });
      const factor =
        scale.name === "f32"
          ? Math.fround(f32Scales[each] as number)
          : decodeFloat(scale.name, code);
      for (const [index, number] of numbers.entries()) {
        const expected =
          decodeFloat(element.name, index) * factor * (format.hasGlobalScale ? 0.375 : 1);
        if (!Object.is(number, expected))
          expect([code, index, number]).toEqual([code, index, expected]);
      }
    }
  });
});

describe("blocks", () => {
  test("extend along the scaled axis, squares along the last other one too", () => {
    const square = scaledFormats.fp8Block128x128;
    expect(blockExtents(mxfp4, 3, 2)).toEqual([1, 1, 32]);
    expect(blockExtents(mxfp4, 3, 0)).toEqual([32, 1, 1]);
    expect(blockExtents(square, 3, 2)).toEqual([1, 128, 128]);
    expect(blockExtents(square, 3, 1)).toEqual([1, 128, 128]);
    expect(blockExtents(square, 3, 0)).toEqual([128, 1, 128]);
    expect(blockExtents(square, 1, 0)).toEqual([128]);
  });

  test("may stick out over the array", () => {
    expect(scaleShape(nvfp4, [3, 17], 1)).toEqual([3, 2]);
    expect(scaleShape(mxfp4, [33, 2], 0)).toEqual([2, 2]);
    expect([...scaleIndices(nvfp4, [2, 17], 1)]).toEqual([
      ...Array<number>(16).fill(0),
      1,
      ...Array<number>(16).fill(2),
      3,
    ]);
    expect([...scaleIndices(mxfp4, [33, 2], 0)]).toEqual([
      ...Array.from({ length: 64 }, (_, index) => index % 2),
      2,
      3,
    ]);
  });
});

describe("layouts of scales", () => {
  test("padded scales have rows of whole tiles", () => {
    expect(scaleShape(mxfp8e4m3, [2, 130, 256], 2, "padded")).toEqual([2, 256, 8]);
    const places = scalePlaces(mxfp8e4m3, [2, 130, 160], 2, "padded");
    expect(places[130 * 5 + 7 * 5 + 3]).toBe(256 * 8 + 7 * 8 + 3);
  });

  test("in tiles a scale lies where tensor cores look for it", () => {
    expect(scaleShape(nvfp4, [2, 300, 16 * 9], 2, "tiled")).toEqual([2, 3, 3, 32, 4, 4]);
    const places = scalePlaces(nvfp4, [300, 16 * 9], 1, "tiled");
    for (let row = 0; row < 300; row += 1)
      for (let block = 0; block < 9; block += 1)
        expect(places[row * 9 + block]).toBe(
          ((row >> 7) * 3 + (block >> 2)) * 512 +
            (row & 31) * 16 +
            ((row >> 5) & 3) * 4 +
            (block & 3),
        );
  });

  test("of one array mean the same numbers", () => {
    const shape = [130, 100];
    const elements = Uint8Array.from({ length: 13000 }, (_, index) => (index * 7) & 15);
    const plain = Uint8Array.from({ length: 130 * 4 }, (_, index) => 100 + ((index * 31) & 63));
    const wanted = dequantizeElements(mxfp4, { shape, elements, scales: plain });
    for (const layout of ["padded", "tiled"] as const) {
      const scales = new Uint8Array(256 * 4);
      scalePlaces(mxfp4, shape, 1, layout).forEach((place, index) => {
        scales[place] = plain[index] as number;
      });
      expect(dequantizeElements(mxfp4, { shape, elements, scales, layout })).toEqual(wanted);
    }
  });
});
