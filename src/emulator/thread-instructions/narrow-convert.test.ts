/** Narrow conversions, held against tables of the formats' numbers and exact integers. */
import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { runLanes, singleBits, singleValue } from "../../../test/support/emulated-lanes.ts";
import type { SlotType } from "../../../test/support/emulated-lanes.ts";

const seed = 48;
const target = "sm_100a";

interface Format {
  readonly exponentBits: number;
  readonly mantissaBits: number;
  readonly bias: number;
  /** The code of its largest number; of a NaN. */
  readonly largest: number;
  readonly nan: number;
}

const formats: { readonly [name: string]: Format } = {
  e4m3: { exponentBits: 4, mantissaBits: 3, bias: 7, largest: 0x7e, nan: 0x7f },
  e5m2: { exponentBits: 5, mantissaBits: 2, bias: 15, largest: 0x7b, nan: 0x7f },
  e2m3: { exponentBits: 2, mantissaBits: 3, bias: 1, largest: 0x1f, nan: 0x1f },
  e3m2: { exponentBits: 3, mantissaBits: 2, bias: 3, largest: 0x1f, nan: 0x1f },
  e2m1: { exponentBits: 2, mantissaBits: 1, bias: 1, largest: 0x7, nan: 0x7 },
};

/** The number of a positive code. */
function valueOf({ mantissaBits, bias }: Format, code: number): number {
  const exponent = code >> mantissaBits;
  const mantissa = code & (2 ** mantissaBits - 1);
  if (exponent === 0) return mantissa * 2 ** (1 - bias - mantissaBits);
  return (2 ** mantissaBits + mantissa) * 2 ** (exponent - bias - mantissaBits);
}

/** The nearest code, to even where two are. */
function nearest(format: Format, value: number): number {
  if (Number.isNaN(value)) return format.nan;
  const magnitude = Math.abs(value);
  let best = 0;
  for (let code = 0; code <= format.largest; code++) {
    const [distance, least] = [code, best].map((each) =>
      Math.abs(magnitude - valueOf(format, each)),
    ) as [number, number];
    if (distance < least || (distance === least && code % 2 === 0)) best = code;
  }
  const isNegative = value < 0 || Object.is(value, -0);
  const sign = 2 ** (format.exponentBits + format.mantissaBits);
  const isBeyond = magnitude >= valueOf(format, format.largest);
  return (isBeyond ? format.largest : best) + (isNegative ? sign : 0);
}

function nearestOfPositive(format: Format, value: number): number {
  return value <= 0 ? 0 : nearest(format, value);
}

/** Numbers around all midpoints of a format, and a few at random. */
function numbers(format: Format, random: Random): readonly number[] {
  const step = format.largest > 64 ? 7 : 1;
  const codes = Array.from({ length: format.largest + 1 }, (_, code) =>
    valueOf(format, code),
  ).filter((_, code) => code < 10 || code % step === 0 || code > format.largest - 3);
  const middles = codes.slice(1).map((value, at) => (value + (codes[at] ?? 0)) / 2);
  const near = [...codes, ...middles].flatMap((value) => [
    value,
    singleValue(singleBits(value) + 1n),
    value === 0 ? 0 : singleValue(singleBits(value) - 1n),
  ]);
  const other = Array.from({ length: 40 }, () => singleValue(BigInt(random.bits())));
  const all = [...near, ...other, Infinity, NaN, valueOf(format, format.largest) * 1.01];
  return all.flatMap((value) => [value, -value]);
}

interface Conversion {
  readonly opcode: string;
  readonly inputs: readonly SlotType[];
  readonly output: SlotType;
  readonly body?: string;
}

/** All results of a conversion of pairs of f32. */
function convert(
  { opcode, inputs, output, body }: Conversion,
  rows: readonly (readonly bigint[])[],
): readonly bigint[] {
  const operands = inputs.map((_, slot) => `%i${slot}`).join(", ");
  const text = body ?? `${opcode} %o0, ${operands};`;
  return runLanes({ inputs, outputs: [output], body: text, target }, rows).map(
    ([result = -1n]) => result,
  );
}

const stride = (name: string): number => (name === "e2m1" ? 4 : 8);

/** Results of four bits come in registers of 8, which are stored through wider ones. */
function bodyOf(opcode: string, name: string, operands: string): string {
  if (name !== "e2m1") return `${opcode} %o0, ${operands};`;
  return `{ .reg .b8 %byte; ${opcode} %byte, ${operands}; cvt.u16.u8 %o0, %byte; }`;
}

describe("to nearest", () => {
  test.each(Object.entries(formats))("%s of f32 and f16", (name, format) => {
    const random = new Random(seed);
    const values = numbers(format, random);
    const pairs = values.map((first, at) => [first, values.at(at - 5) ?? 0] as const);
    for (const relu of [false, true]) {
      const encode = relu ? nearestOfPositive : nearest;
      const opcode = `cvt.rn.satfinite${relu ? ".relu" : ""}.${name}x2.f32`;
      const found = convert(
        { opcode, inputs: ["b32", "b32"], output: "b16", body: bodyOf(opcode, name, "%i0, %i1") },
        pairs.map((row) => row.map(singleBits)),
      );
      const expected = pairs.map(([first, second]) =>
        BigInt((encode(format, first) << stride(name)) | encode(format, second)),
      );
      expect(found, `${opcode} (seed ${seed})`).toEqual(expected);
    }
  });

  test.each(Object.entries(formats))("f16x2 of every %s", (name, format) => {
    const bits = 1 + format.exponentBits + format.mantissaBits;
    const codes = Array.from({ length: 2 ** bits }, (_, code) => code);
    const pairs = codes.map((code) => [code, (code * 5 + 3) % 2 ** bits] as const);
    const opcode = `cvt.rn.f16x2.${name}x2`;
    const body =
      name === "e2m1"
        ? `{ .reg .b8 %byte; cvt.u8.u16 %byte, %i0; ${opcode} %o0, %byte; }`
        : `${opcode} %o0, %i0;`;
    const halves = convert(
      { opcode, inputs: ["b16"], output: "b32", body },
      pairs.map(([high, low]) => [BigInt((high << stride(name)) | low)]),
    );
    const half = (code: number): number => {
      const isNegative = code >= 2 ** (bits - 1);
      const magnitude = isNegative ? code - 2 ** (bits - 1) : code;
      if (magnitude > format.largest) {
        const isInfinite = name === "e5m2" && magnitude === 0x7c;
        return isInfinite ? (isNegative ? 0xfc00 : 0x7c00) : 0x7fff;
      }
      const value = valueOf(format, magnitude);
      // Every number of these formats is a normal f16, or a subnormal one exactly.
      const exponent = value === 0 ? 0 : Math.floor(Math.log2(value));
      const code16 =
        exponent < -14 ? value * 2 ** 24 : (exponent + 14) * 1024 + value * 2 ** (10 - exponent);
      return (value === 0 ? 0 : code16) + (isNegative ? 0x8000 : 0);
    };
    expect(halves).toEqual(pairs.map(([high, low]) => BigInt(half(high) * 65536 + half(low))));
  });

  test("four bits of f16x2", () => {
    const halves = [0x0000, 0x8000, 0x3400, 0x3401, 0x3c00, 0x4500, 0x4700, 0x7c00, 0xfc00, 0x7e00];
    const values = [0, -0, 0.25, 0.250244140625, 1, 5, 7, Infinity, -Infinity, NaN];
    const opcode = "cvt.rn.satfinite.e2m1x2.f16x2";
    const found = convert(
      { opcode, inputs: ["b32"], output: "b16", body: bodyOf(opcode, "e2m1", "%i0") },
      halves.map((half) => [BigInt(half * 65536 + 0x4000)]),
    );
    const format = formats["e2m1"] as Format;
    expect(found).toEqual(values.map((value) => BigInt(nearest(format, value) * 16 + 4)));
  });
});

describe("scales", () => {
  /** The least power of two that is not below, or the largest that is not above, as an exponent. */
  function scale(bits: number, up: boolean, finite: boolean): number {
    const value = Math.abs(singleValue(BigInt(bits)));
    if (Number.isNaN(value)) return 255;
    let code = 0;
    if (up) while (code < 255 && 2 ** (code - 127) < value) code++;
    else while (code < 255 && 2 ** (code - 126) <= value) code++;
    return finite ? Math.min(code, 254) : code;
  }

  const words = [
    ...[0, 1, 0x400000, 0x400001, 0x7fffff, 0x800000, 0x800001, 0x3f800000, 0x3f800001],
    ...[0x3fffffff, 0x7f000000, 0x7f7fffff, 0x7f800000, 0x7fc00000, 0xbf800001, 0xff800000],
  ];

  test.each([
    ["rz", false],
    ["rp", true],
  ] as const)("%s: zero, subnormal numbers, powers of two and their neighbours", (rounding, up) => {
    for (const finite of [false, true]) {
      const opcode = `cvt.${rounding}${finite ? ".satfinite" : ""}.ue8m0x2`;
      const rows = words.map((word, at) => [BigInt(word), BigInt(words.at(at - 1) ?? 0)]);
      const ofSingles = convert(
        { opcode: `${opcode}.f32`, inputs: ["b32", "b32"], output: "b16" },
        rows,
      );
      const code = (word: bigint | undefined): number => scale(Number(word), up, finite);
      expect(ofSingles).toEqual(
        rows.map(([first, second]) => BigInt(code(first) * 256 + code(second))),
      );
      const halves = words.map((word) => word >>> 16);
      const ofHalves = convert(
        { opcode: `${opcode}.bf16x2`, inputs: ["b32"], output: "b16" },
        halves.map((half) => [BigInt(half * 65536 + 0x4040)]),
      );
      const three = scale(0x40400000, up, finite);
      expect(ofHalves).toEqual(
        halves.map((half) => BigInt(scale(half * 65536, up, finite) * 256 + three)),
      );
    }
  });

  test("of every code to bf16", () => {
    const codes = Array.from({ length: 256 }, (_, code) => code);
    const found = convert(
      { opcode: "cvt.rn.bf16x2.ue8m0x2", inputs: ["b16"], output: "b32" },
      codes.map((code) => [BigInt(code * 256 + 127)]),
    );
    const half = (code: number): number =>
      code === 255 ? 0x7fff : Number(singleBits(2 ** (code - 127)) >> 16n);
    expect(found).toEqual(codes.map((code) => BigInt(half(code) * 65536 + 0x3f80)));
  });
});

describe("by random bits", () => {
  /** An f32 as an integer of 2^-149. */
  function integerOf(value: number): bigint {
    const bits = singleBits(Math.abs(value));
    const exponent = bits >> 23n;
    const mantissa = bits & 0x7fffffn;
    return exponent === 0n ? mantissa : (mantissa | 0x800000n) << (exponent - 1n);
  }

  /** The magnitude that a number becomes with these random bits, as an integer of 2^-149. */
  function rounded(value: number, random: bigint, count: bigint, format: Format): bigint {
    const exact = integerOf(value);
    const least = BigInt(1 - format.bias + 149);
    const top = BigInt(exact.toString(2).length - 1);
    const unit = (top > least ? top : least) - BigInt(format.mantissaBits);
    const kept = exact >> unit;
    const fraction = ((exact - (kept << unit)) << count) >> unit;
    return (kept + (fraction + random >= 1n << count ? 1n : 0n)) << unit;
  }

  function randomNumbers(random: Random, scale: number): readonly number[] {
    const sign = (): number => (random.below(2) === 0 ? 1 : -1);
    return Array.from({ length: 200 }, () =>
      Math.fround(sign() * random.uniform() * 2 ** (random.below(20) - 12) * scale),
    );
  }

  test.each(["e4m3", "e5m2", "e2m3", "e3m2", "e2m1"])("%sx4 of f32", (name) => {
    const format = formats[name] as Format;
    const random = new Random(seed);
    const values = randomNumbers(random, 1);
    const rows = values.map((_, at) => [0, 1, 2, 3].map((next) => values.at(at - next) ?? 0));
    const bits = rows.map(() => random.bits() >>> 0);
    const opcode = `cvt.rs.satfinite.${name}x4.f32`;
    const found = convert(
      {
        opcode,
        inputs: ["b32", "b32", "b32", "b32", "b32"],
        output: name === "e2m1" ? "b16" : "b32",
        body: `${opcode} %o0, {%i0, %i1, %i2, %i3}, %i4;`,
      },
      rows.map((row, at) => [...row.map(singleBits), BigInt(bits[at] ?? 0)]),
    );
    const places = name === "e2m1" ? [24, 8, 16, 0] : [16, 16, 0, 0];
    const count = name === "e2m1" ? 8 : 16;
    const largest = integerOf(valueOf(format, format.largest));
    const expected = rows.map((row, at) =>
      row.reduce((word, value, place) => {
        const own = ((bits[at] ?? 0) >>> (places[place] ?? 0)) % 2 ** count;
        const exact = rounded(value, BigInt(own), BigInt(count), format);
        const magnitude = Number(exact > largest ? largest : exact) * 2 ** -149;
        return (
          word * 2n ** BigInt(stride(name)) +
          BigInt(nearest(format, magnitude * (value < 0 ? -1 : 1)))
        );
      }, 0n),
    );
    expect(found, `seed ${seed}`).toEqual(expected);
  });

  test.each([
    ["f16", { exponentBits: 5, mantissaBits: 10, bias: 15, largest: 0x7bff, nan: 0x7fff }, 13],
    ["bf16", { exponentBits: 8, mantissaBits: 7, bias: 127, largest: 0x7f7f, nan: 0x7fff }, 16],
  ] as const)("%sx2 of f32", (name, format, count) => {
    const random = new Random(seed);
    const values = randomNumbers(random, 2 ** 4);
    const rows = values.map((value, at) => [value, values.at(at - 1) ?? 0, random.bits() >>> 0]);
    const opcode = `cvt.rs.${name}x2.f32`;
    const found = convert(
      { opcode, inputs: ["b32", "b32", "b32"], output: "b32" },
      rows.map(([a = 0, b = 0, bits = 0]) => [singleBits(a), singleBits(b), BigInt(bits)]),
    );
    const half = (value: number, bits: number): bigint => {
      const own = BigInt(bits % 2 ** count);
      const magnitude = Number(rounded(value, own, BigInt(count), format)) * 2 ** -149;
      const code =
        magnitude < 2 ** (1 - format.bias)
          ? magnitude * 2 ** (format.bias - 1 + format.mantissaBits)
          : (Math.floor(Math.log2(magnitude)) + format.bias - 1) * 2 ** format.mantissaBits +
            magnitude * 2 ** (format.mantissaBits - Math.floor(Math.log2(magnitude)));
      return BigInt(code + (value < 0 ? 0x8000 : 0));
    };
    expect(found, `seed ${seed}`).toEqual(
      rows.map(
        ([a = 0, b = 0, bits = 0]) => half(a, bits >>> 16) * 65536n + half(b, bits & 0xffff),
      ),
    );
  });

  test("beyond range, infinities and NaN", () => {
    const cases = [70000, -70000, Infinity, NaN].map((value) => [
      ...[singleBits(value), singleBits(1)],
      0xffffffffn,
    ]);
    const run = (opcode: string): readonly bigint[] =>
      convert({ opcode, inputs: ["b32", "b32", "b32"], output: "b32" }, cases);
    expect(run("cvt.rs.f16x2.f32").map((code) => code >> 16n)).toEqual([
      0x7c00n,
      0xfc00n,
      0x7c00n,
      0x7fffn,
    ]);
    expect(run("cvt.rs.satfinite.f16x2.f32").map((code) => code >> 16n)).toEqual([
      0x7bffn,
      0xfbffn,
      0x7bffn,
      0x7fffn,
    ]);
    expect(run("cvt.rs.relu.f16x2.f32").map((code) => code >> 16n)[1]).toBe(0n);
  });
});
