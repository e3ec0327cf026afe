import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import {
  doubleBits,
  doubleValue,
  runLanes,
  singleBits,
  singleValue,
} from "../../../test/support/emulated-lanes.ts";
import type { SlotType } from "../../../test/support/emulated-lanes.ts";
import { randomNumbers, roundRational, specialNumbers } from "../../../test/exact-reference.ts";
import { referenceDecode, referenceEncode } from "../../../test/number-reference.ts";

const seed = 512;
type Float = "f16" | "bf16" | "f32" | "f64";
const floats: readonly Float[] = ["f16", "bf16", "f32", "f64"];

function slotOf(bits: number): SlotType {
  return bits <= 16 ? "b16" : bits === 32 ? "b32" : "b64";
}

const floatSlots: { readonly [F in Float]: SlotType } = {
  f16: "b16",
  bf16: "b16",
  f32: "b32",
  f64: "b64",
};

function encode(format: Float, value: number): bigint {
  if (format === "f64") return doubleBits(value);
  if (format === "f32") return Number.isNaN(value) ? 0x7fffffffn : singleBits(value);
  return Number.isNaN(value) ? 0x7fffn : BigInt(referenceEncode(format, value));
}

function decode(format: Float, bits: bigint): number {
  if (format === "f64") return doubleValue(bits);
  return format === "f32" ? singleValue(bits) : referenceDecode(format, Number(bits));
}

interface IntegerType {
  readonly bits: number;
  readonly signed: boolean;
}

const integers: readonly IntegerType[] = [8, 16, 32, 64].flatMap((bits) => [
  { bits, signed: false },
  { bits, signed: true },
]);

function nameOf({ bits, signed }: IntegerType): string {
  return `${signed ? "s" : "u"}${bits}`;
}

function range({ bits, signed }: IntegerType): readonly [bigint, bigint] {
  const top = 1n << BigInt(signed ? bits - 1 : bits);
  return [signed ? -top : 0n, top - 1n];
}

function clamp(value: bigint, type: IntegerType): bigint {
  const [least, most] = range(type);
  return value < least ? least : value > most ? most : value;
}

function cut(value: bigint, { bits, signed }: IntegerType): bigint {
  return signed ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value);
}

function randomIntegers(type: IntegerType, random: Random): readonly bigint[] {
  const [least, most] = range(type);
  const noise = Array.from({ length: 120 }, () => {
    const bits = (BigInt(random.bits()) << 32n) | BigInt(random.bits());
    return cut(bits >> BigInt(random.below(64)), type);
  });
  return [0n, 1n, least, least + 1n, most, most - 1n, most / 2n, ...noise];
}

function run(
  body: string,
  input: SlotType,
  output: SlotType,
  values: readonly bigint[],
): readonly bigint[] {
  const rows = runLanes(
    { inputs: [input], outputs: [output], body },
    values.map((value) => [value]),
  );
  return rows.map(([result = 0n]) => result);
}

/** One comparison for all of them: each by itself costs more than the conversion. */
function expectCodes(
  opcode: string,
  values: readonly (bigint | number)[],
  found: readonly bigint[],
  expected: readonly bigint[],
): void {
  const wrong = values.flatMap((value, at) =>
    found[at] === expected[at] ? [] : `of ${value}: ${found[at]} for ${expected[at]}`,
  );
  expect(wrong, `${opcode} (seed ${seed})`).toEqual([]);
}

describe("integers to integers", () => {
  const pairs = integers.flatMap((to) => integers.map((from) => [to, from] as const));

  test.each(pairs)("%o from %o", (to, from) => {
    const random = new Random(seed);
    const values = randomIntegers(from, random);
    for (const saturates of [false, true]) {
      if (saturates && nameOf(to) === nameOf(from)) continue;
      const opcode = `cvt.${saturates ? "sat." : ""}${nameOf(to)}.${nameOf(from)}`;
      const output = slotOf(to.bits);
      const found = run(`${opcode} %o0, %i0;`, slotOf(from.bits), output, values);
      const width = output === "b16" ? 16 : to.bits;
      const expected = values.map((value) => {
        const exact = saturates ? clamp(value, to) : cut(value, to);
        return BigInt.asUintN(width, exact);
      });
      expectCodes(opcode, values, found, expected);
    }
  });
});

describe("floats to integers", () => {
  const roundings: { readonly [mode: string]: (x: number) => number } = {
    rzi: Math.trunc,
    rmi: Math.floor,
    rpi: Math.ceil,
    rni: (x) => {
      const low = Math.floor(x);
      const rest = x - low;
      if (rest !== 0.5) return rest < 0.5 ? low : low + 1;
      return low % 2 === 0 ? low : low + 1;
    },
  };
  const rows = floats.flatMap((from) => integers.map((to) => [from, to] as const));

  test.each(rows)("%s to %o", (from, to) => {
    const random = new Random(seed);
    const halves = Array.from({ length: 60 }, () => random.below(2000) / 2 - 500);
    const values = [...specialNumbers(from), ...randomNumbers(from, 100, random), ...halves].filter(
      (value) => Number.isNaN(value) || decode(from, encode(from, value)) === value,
    );
    for (const [mode, round] of Object.entries(roundings)) {
      const opcode = `cvt.${mode}.${nameOf(to)}.${from}`;
      const output = slotOf(to.bits);
      const bits = values.map((value) => encode(from, value));
      const found = run(`${opcode} %o0, %i0;`, floatSlots[from], output, bits);
      const width = output === "b16" ? 16 : to.bits;
      const expected = values.map((value) => {
        const [least, most] = range(to);
        const nan = from === "f64" || to.bits === 64 ? cut(1n << BigInt(to.bits - 1), to) : 0n;
        const exact = Number.isNaN(value)
          ? nan
          : value === Infinity
            ? most
            : value === -Infinity
              ? least
              : clamp(BigInt(round(value)), to);
        return BigInt.asUintN(width, exact);
      });
      expectCodes(opcode, values, found, expected);
    }
  });
});

describe("integers to floats", () => {
  const rows = floats.flatMap((to) => integers.map((from) => [to, from] as const));

  test.each(rows)("%s from %o", (to, from) => {
    const values = randomIntegers(from, new Random(seed));
    const opcode = `cvt.rn.${to}.${nameOf(from)}`;
    const found = run(`${opcode} %o0, %i0;`, slotOf(from.bits), floatSlots[to], values);
    const expected = values.map((value) =>
      encode(to, roundRational(to, { numerator: value, denominator: 1n })),
    );
    expectCodes(opcode, values, found, expected);
  });

  test("other roundings go down or up", () => {
    const value = (1n << 53n) + 1n;
    const f32 = (mode: string): number =>
      singleValue(run(`cvt.${mode}.f32.s64 %o0, %i0;`, "b64", "b32", [value])[0] ?? 0n);
    expect(f32("rz")).toBe(2 ** 53);
    expect(f32("rm")).toBe(2 ** 53);
    expect(f32("rp")).toBe(2 ** 53 + 2 ** 30);
    const f64 = (mode: string): number =>
      doubleValue(run(`cvt.${mode}.f64.s64 %o0, %i0;`, "b64", "b64", [-value])[0] ?? 0n);
    expect(f64("rp")).toBe(-(2 ** 53));
    expect(f64("rm")).toBe(-(2 ** 53) - 2);
  });
});

/** What becomes of the NaN that `encode` gives: f64 keeps the fraction, and bf16 is the upper half of f32. */
const convertedNaNs: { readonly [conversion: string]: bigint } = {
  "f64 to f32": 0x7fc00000n,
  "f64 to f16": 0x7e00n,
  "f64 to bf16": 0x7fc0n,
  "f32 to f64": 0x7fffffffe0000000n,
  "f16 to f64": 0x7ffffc0000000000n,
  "bf16 to f64": 0x7fffe00000000000n,
  "bf16 to f32": 0x7fff0000n,
};

describe("floats to floats", () => {
  const rows = floats.flatMap((from) =>
    floats.filter((to) => to !== from).map((to) => [from, to] as const),
  );

  test.each(rows)("%s to %s", (from, to) => {
    const order = ["f16", "bf16", "f32", "f64"];
    const narrows = order.indexOf(to) < order.indexOf(from) || (from === "f16" && to === "bf16");
    const opcode = `cvt.${narrows ? "rn." : ""}${to}.${from}`;
    const values = [...specialNumbers(from), ...randomNumbers(from, 300, new Random(seed))];
    const bits = values.map((value) => encode(from, value));
    const found = run(`${opcode} %o0, %i0;`, floatSlots[from], floatSlots[to], bits);
    const expected = values.map((value) => {
      const carried = Number.isNaN(value) ? convertedNaNs[`${from} to ${to}`] : undefined;
      return carried ?? encode(to, value);
    });
    expectCodes(opcode, values, found, expected);
  });

  test("cvt.rni.f32.f32 rounds to whole numbers", () => {
    const values = [0.5, 1.5, 2.5, -0.5, -1.5, 3.2, 1e20];
    const found = run("cvt.rni.f32.f32 %o0, %i0;", "b32", "b32", values.map(singleBits));
    expect(found.map(singleValue)).toEqual([0, 2, 2, -0, -2, 3, Math.fround(1e20)]);
  });

  test("directed roundings of f64 to f32", () => {
    const value = 1 + 2 ** -30;
    const one = (mode: string, x: number): number =>
      singleValue(run(`cvt.${mode}.f32.f64 %o0, %i0;`, "b64", "b32", [doubleBits(x)])[0] ?? 0n);
    expect(one("rz", value)).toBe(1);
    expect(one("rp", value)).toBe(1 + 2 ** -23);
    expect(one("rm", -value)).toBe(-1 - 2 ** -23);
    expect(one("rz", 1e300)).toBe(3.4028234663852886e38);
  });
});

describe("packed and small formats", () => {
  const values = [...specialNumbers("f32"), ...randomNumbers("f32", 200, new Random(seed))];
  const pairs = values.map(
    (value, at) => [value, values[(at * 7 + 3) % values.length] ?? 0] as const,
  );

  function packed(
    body: string,
    inputs: readonly SlotType[],
    output: SlotType,
    rows: readonly (readonly bigint[])[],
  ): readonly bigint[] {
    return runLanes({ inputs, outputs: [output], body }, rows).map(([result = 0n]) => result);
  }

  test.each(["f16", "bf16"] as const)("cvt.rn.%sx2.f32 puts its first operand above", (format) => {
    const rows = pairs.map(([high, low]) => [singleBits(high), singleBits(low)]);
    const found = packed(`cvt.rn.${format}x2.f32 %o0, %i0, %i1;`, ["b32", "b32"], "b32", rows);
    pairs.forEach(([high, low], at) => {
      const expected = (encode(format, high) << 16n) | encode(format, low);
      expect(found[at], `${high}, ${low}`).toBe(expected);
    });
  });

  test("relu makes negative numbers zero", () => {
    const rows = pairs.map(([high, low]) => [singleBits(high), singleBits(low)]);
    const found = packed("cvt.rn.relu.bf16x2.f32 %o0, %i0, %i1;", ["b32", "b32"], "b32", rows);
    const relu = (value: number): number => (value <= 0 ? 0 : value);
    pairs.forEach(([high, low], at) => {
      const expected = (encode("bf16", relu(high)) << 16n) | encode("bf16", relu(low));
      expect(found[at], `${high}, ${low}`).toBe(expected);
    });
  });

  test.each([
    ["e4m3x2", "f8e4m3fn", 0x7fn],
    ["e5m2x2", "f8e5m2", 0x7fn],
  ] as const)("cvt.rn.satfinite.%s.f32", (type, format, nan) => {
    const rows = pairs.map(([high, low]) => [singleBits(high), singleBits(low)]);
    const found = packed(
      `cvt.rn.satfinite.${type}.f32 %o0, %i0, %i1;`,
      ["b32", "b32"],
      "b16",
      rows,
    );
    const small = (value: number): bigint =>
      Number.isNaN(value) ? nan : BigInt(referenceEncode(format, value));
    pairs.forEach(([high, low], at) => {
      expect(found[at], `${high}, ${low}`).toBe((small(high) << 8n) | small(low));
    });
  });

  test.each([
    ["e4m3x2", "f8e4m3fn"],
    ["e5m2x2", "f8e5m2"],
  ] as const)("cvt.rn.f16x2.%s of every code", (type, format) => {
    const codes = Array.from({ length: 256 }, (_, code) => BigInt(code));
    const rows = codes.map((code) => [code | (((code * 7n) & 0xffn) << 8n)]);
    const found = packed(`cvt.rn.f16x2.${type} %o0, %i0;`, ["b16"], "b32", rows);
    rows.forEach(([both = 0n], at) => {
      const part = (code: bigint): bigint => encode("f16", referenceDecode(format, Number(code)));
      expect(found[at], `${both}`).toBe(part(both & 0xffn) | (part(both >> 8n) << 16n));
    });
  });

  test("cvt.rna.tf32.f32 rounds halves away from zero", () => {
    const f32 = [1 + 2 ** -11, -(1 + 2 ** -11), 1 + 2 ** -12, 1 + 2 ** -10, Infinity];
    const found = run("cvt.rna.tf32.f32 %o0, %i0;", "b32", "b32", f32.map(singleBits));
    const expected = [1 + 2 ** -10, -(1 + 2 ** -10), 1, 1 + 2 ** -10, Infinity];
    expect(found.map(singleValue)).toEqual(expected);
  });
});
