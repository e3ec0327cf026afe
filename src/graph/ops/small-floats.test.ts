import { describe, expect, test } from "vitest";
import { decodeFloat } from "../../formats/floats.ts";
import { decodeElement, encodeElement } from "./small-floats.ts";

const codes = (count: number): readonly number[] =>
  Array.from({ length: count }, (_, code) => code);

describe("small floats", () => {
  test("agree with the formats of kernels on every code", () => {
    for (const [element, format, count] of [
      ["f8E4M3FN", "f8e4m3fn", 256],
      ["f8E5M2", "f8e5m2", 256],
      ["f4E2M1FN", "f4e2m1fn", 16],
    ] as const)
      for (const code of codes(count))
        expect(decodeElement(element, code)).toBe(decodeFloat(format, code));
  });

  test("encode what they decode", () => {
    for (const element of [
      "f8E3M4",
      "f8E4M3",
      "f8E4M3FNUZ",
      "f8E4M3B11FNUZ",
      "f8E5M2FNUZ",
    ] as const)
      for (const code of codes(256)) {
        const value = decodeElement(element, code);
        if (!Number.isNaN(value)) expect(encodeElement(element, value)).toBe(code);
      }
    for (const element of ["f6E2M3FN", "f6E3M2FN"] as const)
      for (const code of codes(64))
        expect(encodeElement(element, decodeElement(element, code))).toBe(code);
  });

  test("have the largest numbers that their definitions give", () => {
    expect(decodeElement("f8E3M4", 0x6f)).toBe(15.5);
    expect(decodeElement("f8E4M3", 0x77)).toBe(240);
    expect(decodeElement("f8E4M3FNUZ", 0x7f)).toBe(240);
    expect(decodeElement("f8E4M3B11FNUZ", 0x7f)).toBe(30);
    expect(decodeElement("f8E5M2FNUZ", 0x7f)).toBe(57344);
    expect(decodeElement("f6E2M3FN", 0x1f)).toBe(7.5);
    expect(decodeElement("f6E3M2FN", 0x1f)).toBe(28);
  });

  test("go to infinity, to NaN or to the largest number beyond it", () => {
    expect(decodeElement("f8E5M2", encodeElement("f8E5M2", 61440))).toBe(Infinity);
    expect(decodeElement("f8E5M2", encodeElement("f8E5M2", 61439))).toBe(57344);
    expect(encodeElement("f8E4M3FN", 464)).toBe(0x7e);
    expect(decodeElement("f8E4M3FN", encodeElement("f8E4M3FN", -465))).toBeNaN();
    expect(encodeElement("f8E4M3FNUZ", -1e9)).toBe(0x80);
    expect(encodeElement("f8E4M3FNUZ", -0)).toBe(0);
    expect(decodeElement("f4E2M1FN", encodeElement("f4E2M1FN", -Infinity))).toBe(-6);
  });
});
