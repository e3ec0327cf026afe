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
import {
  add,
  divide,
  multiply,
  randomNumbers,
  rationalOf,
  roundRational,
  specialNumbers,
} from "../../../test/exact-reference.ts";
import type { Rational } from "../../../test/exact-reference.ts";
import { referenceDecode, referenceEncode } from "../../../test/number-reference.ts";

const seed = 99;

type Format = "f16" | "bf16" | "f32" | "f64";
type Mode = "rn" | "rz" | "rm" | "rp";

interface Codec {
  readonly slot: SlotType;
  readonly encode: (value: number) => bigint;
  readonly decode: (bits: bigint) => number;
  /** The NaN that comes of numbers. */
  readonly nan: bigint;
}

const codecs: { readonly [F in Format]: Codec } = {
  f16: {
    slot: "b16",
    encode: (value) => BigInt(referenceEncode("f16", value)),
    decode: (bits) => referenceDecode("f16", Number(bits)),
    nan: 0x7fffn,
  },
  bf16: {
    slot: "b16",
    encode: (value) => BigInt(referenceEncode("bf16", value)),
    decode: (bits) => referenceDecode("bf16", Number(bits)),
    nan: 0x7fffn,
  },
  f32: { slot: "b32", encode: singleBits, decode: singleValue, nan: 0x7fffffffn },
  f64: {
    slot: "b64",
    encode: doubleBits,
    decode: doubleValue,
    nan: 0xfff8000000000000n,
  },
};

function compare(left: Rational, right: Rational): bigint {
  return left.numerator * right.denominator - right.numerator * left.denominator;
}

/** The next number of the format, from the bits. */
function next(format: Format, value: number, up: boolean): number {
  const { encode, decode, slot } = codecs[format];
  const width = slot === "b16" ? 16 : slot === "b32" ? 32 : 64;
  const sign = 1n << BigInt(width - 1);
  const bits = encode(value);
  if ((bits & (sign - 1n)) === 0n) return decode(up ? 1n : sign | 1n);
  const away = ((bits & sign) === 0n) === up;
  return decode(away ? bits + 1n : bits - 1n);
}

function largest(format: Format): number {
  const all = {
    f16: 65504,
    bf16: 3.3895313892515355e38,
    f32: 3.4028234663852886e38,
    f64: Number.MAX_VALUE,
  };
  return all[format];
}

/** A fraction rounded to a format in a mode; zeros get their sign elsewhere. */
function rounded(format: Format, exact: Rational, mode: Mode): number {
  const nearest = roundRational(format, exact);
  if (mode === "rn") return nearest;
  const up = mode === "rp" || (mode === "rz" && exact.numerator < 0n);
  if (!Number.isFinite(nearest)) {
    const away = nearest > 0 === up;
    return away ? nearest : Math.sign(nearest) * largest(format);
  }
  const difference = compare(rationalOf(nearest), exact);
  if (difference === 0n) return nearest;
  if (up && difference < 0n) return next(format, nearest, true);
  if (!up && difference > 0n) return next(format, nearest, false);
  return nearest;
}

type Operation = "add" | "sub" | "mul" | "fma" | "div" | "rcp";

function exactly(operation: Operation, values: readonly number[]): Rational | undefined {
  if (!values.every(Number.isFinite)) return undefined;
  const [a, b, c] = values.map(rationalOf);
  if (a === undefined) return undefined;
  const one = { numerator: 1n, denominator: 1n };
  if (operation === "rcp") return values[0] === 0 ? undefined : divide(one, a);
  if (b === undefined) return undefined;
  if (operation === "add") return add(a, b);
  if (operation === "sub") return add(a, { ...b, numerator: -b.numerator });
  if (operation === "mul") return multiply(a, b);
  if (operation === "div") return values[1] === 0 ? undefined : divide(a, b);
  return c === undefined ? undefined : add(multiply(a, b), c);
}

/** What IEEE says, computed in f64, where nothing needs rounding. */
function natively(operation: Operation, [a = 0, b = 0, c = 0]: readonly number[]): number {
  const all = { add: a + b, sub: a - b, mul: a * b, div: a / b, rcp: 1 / a, fma: a * b + c };
  return all[operation];
}

function reference(
  operation: Operation,
  format: Format,
  values: readonly number[],
  mode: Mode,
): number {
  const exact = exactly(operation, values);
  if (exact === undefined) return natively(operation, values);
  if (exact.numerator !== 0n) {
    const result = rounded(format, exact, mode);
    // A result that vanishes keeps its sign.
    return result === 0 && exact.numerator < 0n ? -0 : result;
  }
  const native = natively(operation, values);
  const [a = 0, b = 0, c = 0] = values;
  const terms = operation === "fma" ? [a * b, c] : operation === "sub" ? [a, -b] : [a, b];
  const isSum = operation !== "mul" && operation !== "div" && operation !== "rcp";
  const [left = 0, right = 0] = terms.map((term) => 1 / term);
  const agree = left === right && terms.every((term) => term === 0);
  return isSum && mode === "rm" && !agree ? -0 : native;
}

const counts: { readonly [O in Operation]: number } = {
  add: 2,
  sub: 2,
  mul: 2,
  fma: 3,
  div: 2,
  rcp: 1,
};

function operandsOf(format: Format, count: number): readonly (readonly number[])[] {
  const random = new Random(seed);
  const special = specialNumbers(format);
  const noise = randomNumbers(format, 60, random);
  const pool = [...special, ...noise];
  const rows = Array.from({ length: 500 }, () =>
    Array.from({ length: count }, () => random.pick(pool)),
  );
  // Sums that cancel, and products just beside another number.
  for (let at = 0; at < 100; at++) {
    const a = random.pick(noise);
    const b = random.pick(noise);
    const product = codecs[format].decode(codecs[format].encode(a * b));
    rows.push([a, b, -product].slice(0, count), [a, -a, 0].slice(0, count));
  }
  return rows;
}

function check(opcode: string, format: Format, operation: Operation, mode: Mode): void {
  const { slot, encode, decode, nan } = codecs[format];
  const count = counts[operation];
  const rows = operandsOf(format, count);
  const names = Array.from({ length: count }, (_, at) => `%i${at}`).join(", ");
  const results = runLanes(
    {
      inputs: Array.from({ length: count }, () => slot),
      outputs: [slot],
      body: `${opcode} %o0, ${names};`,
    },
    rows.map((row) => row.map(encode)),
  );
  const wrong: string[] = [];
  rows.forEach((row, index) => {
    const expected = reference(operation, format, row, mode);
    // A NaN among f64 operands comes through.
    const carried = format === "f64" && row.some(Number.isNaN);
    const bits = Number.isNaN(expected) && !carried ? nan : encode(expected);
    const found = results[index]?.[0] ?? 0n;
    if (found !== bits) wrong.push(`of ${row.join(", ")}: ${decode(found)} for ${decode(bits)}`);
  });
  expect(wrong, `${opcode} (seed ${seed})`).toEqual([]);
}

const modes = ["rn", "rz", "rm", "rp"] as const;
const wideOperations = ["add", "sub", "mul", "fma", "div", "rcp"] as const;
const wideRows = (["f32", "f64"] as const).flatMap((format) =>
  wideOperations.flatMap((operation) =>
    modes.map((mode) => [`${operation}.${mode}.${format}`, format, operation, mode] as const),
  ),
);
const narrowRows = (["f16", "bf16"] as const).flatMap((format) =>
  (["add", "sub", "mul", "fma"] as const).map(
    (operation) => [`${operation}.rn.${format}`, format, operation, "rn"] as const,
  ),
);

describe("float arithmetic rounds once, as told", () => {
  test.each([...wideRows, ...narrowRows])("%s", check);

  test.each(["rn", "rz", "rm", "rp"] as const)("sqrt.%s.f32 and .f64", (mode) => {
    for (const format of ["f32", "f64"] as const) {
      const { slot, encode, decode, nan } = codecs[format];
      const rows = operandsOf(format, 1).flat();
      const program = { inputs: [slot], outputs: [slot], body: `sqrt.${mode}.${format} %o0, %i0;` };
      const results = runLanes(
        program,
        rows.map((value) => [encode(value)]),
      );
      const wrong = rows.flatMap((value, index) => {
        const found = results[index]?.[0] ?? 0n;
        const message = `of ${value}: ${decode(found)}`;
        if (!(value > 0) || value === Infinity) {
          const expected = Math.sqrt(value);
          const carried = format === "f64" && Number.isNaN(value);
          const isMade = Number.isNaN(expected) && !carried;
          return found === (isMade ? nan : encode(expected)) ? [] : message;
        }
        const root = rationalOf(decode(found));
        const above = rationalOf(next(format, decode(found), true));
        const below = rationalOf(next(format, decode(found), false));
        const half = { numerator: 1n, denominator: 2n };
        const middle = (other: Rational): Rational => multiply(half, add(root, other));
        const exact = rationalOf(value);
        const [least, most] =
          mode === "rn"
            ? [middle(below), middle(above)]
            : mode === "rp"
              ? [below, root]
              : [root, above];
        const low = compare(multiply(least, least), exact);
        const high = compare(multiply(most, most), exact);
        const isLow = mode === "rp" ? low < 0n : low <= 0n;
        const isHigh = mode === "rz" || mode === "rm" ? high > 0n : high >= 0n;
        return isLow && isHigh ? [] : message;
      });
      expect(wrong, `${program.body} (seed ${seed})`).toEqual([]);
    }
  });

  test("packed halves are computed each for itself", () => {
    const rows = operandsOf("f16", 3);
    const pack = (value: number, other: number): bigint =>
      codecs.f16.encode(value) | (codecs.f16.encode(other) << 16n);
    const cases = rows.map((row, at) => {
      const other = rows[(at + 1) % rows.length] ?? row;
      return row.map((value, position) => pack(value, other[position] ?? 0));
    });
    const body = "fma.rn.f16x2 %o0, %i0, %i1, %i2;";
    const results = runLanes({ inputs: ["b32", "b32", "b32"], outputs: ["b32"], body }, cases);
    const half = (row: readonly number[]): bigint => {
      const value = reference("fma", "f16", row, "rn");
      return Number.isNaN(value) ? 0x7fffn : codecs.f16.encode(value);
    };
    const wrong = rows.flatMap((row, at) => {
      const other = rows[(at + 1) % rows.length] ?? row;
      const isRight = results[at]?.[0] === (half(row) | (half(other) << 16n));
      return isRight ? [] : `${row.join()} and ${other.join()}`;
    });
    expect(wrong).toEqual([]);
  });
});

describe("modifiers", () => {
  const one = (body: string, ...values: readonly number[]): number => {
    const inputs = values.map((): SlotType => "b32");
    const [result] = runLanes({ inputs, outputs: ["b32"], body }, [values.map(singleBits)]);
    return singleValue(result?.[0] ?? 0n);
  };
  const tiny = 2 ** -130;

  test(".ftz flushes subnormal operands and results, and keeps their signs", () => {
    expect(one("add.ftz.f32 %o0, %i0, %i1;", tiny, tiny)).toBe(0);
    expect(one("mul.ftz.f32 %o0, %i0, %i1;", -(2 ** -70), 2 ** -70)).toBe(-0);
    expect(one("add.f32 %o0, %i0, %i1;", tiny, tiny)).toBe(2 * tiny);
    expect(one("add.ftz.f32 %o0, %i0, %i1;", -tiny, -tiny)).toBe(-0);
  });

  test(".sat clamps to [0, 1] and makes NaN zero", () => {
    expect(one("add.sat.f32 %o0, %i0, %i1;", 0.75, 0.5)).toBe(1);
    expect(one("sub.sat.f32 %o0, %i0, %i1;", 0.25, 0.5)).toBe(0);
    expect(one("add.sat.f32 %o0, %i0, %i1;", Infinity, -Infinity)).toBe(0);
    expect(one("fma.rn.sat.f32 %o0, %i0, %i1, %i2;", 0.5, 0.5, 0.25)).toBe(0.5);
  });

  test("minimum and maximum prefer numbers, or NaN where told", () => {
    for (const opcode of ["min.f32", "max.f32"]) {
      expect(one(`${opcode} %o0, %i0, %i1;`, NaN, 3)).toBe(3);
      expect(one(`${opcode} %o0, %i0, %i1;`, 3, NaN)).toBe(3);
    }
    expect(one("max.NaN.f32 %o0, %i0, %i1;", 3, NaN)).toBe(NaN);
    expect(one("min.f32 %o0, %i0, %i1;", 0, -0)).toBe(-0);
    expect(one("max.f32 %o0, %i0, %i1;", -0, 0)).toBe(0);
    expect(one("min.xorsign.abs.f32 %o0, %i0, %i1;", -3, 2)).toBe(-2);
  });

  test("signs", () => {
    expect(one("neg.f32 %o0, %i0;", 2.5)).toBe(-2.5);
    expect(one("abs.f32 %o0, %i0;", -2.5)).toBe(2.5);
    expect(one("copysign.f32 %o0, %i0, %i1;", -1, 2.5)).toBe(-2.5);
  });

  test("properties", () => {
    const holds = (property: string, value: number): bigint => {
      const program = {
        inputs: ["b32"],
        outputs: ["pred"],
        body: `testp.${property}.f32 %o0, %i0;`,
      } as const;
      return runLanes(program, [[singleBits(value)]])[0]?.[0] ?? -1n;
    };
    const table: readonly (readonly [string, number, bigint])[] = [
      ["finite", 1, 1n],
      ["finite", Infinity, 0n],
      ["infinite", -Infinity, 1n],
      ["infinite", NaN, 0n],
      ["number", NaN, 0n],
      ["number", Infinity, 1n],
      ["notanumber", NaN, 1n],
      ["notanumber", 0, 0n],
      ["normal", tiny, 0n],
      ["normal", 1, 1n],
      ["subnormal", tiny, 1n],
      ["subnormal", 1, 0n],
    ];
    for (const [property, value, expected] of table)
      expect(holds(property, value), `testp.${property} of ${value}`).toBe(expected);
  });
});

describe("approximations keep the documented error", () => {
  const cases: readonly (readonly [string, (x: number) => number, readonly number[], number])[] = [
    ["ex2.approx.f32", (x) => 2 ** x, [-3.7, -1, 0, 0.3, 1, 10.25, -120], 2 ** -22],
    ["lg2.approx.f32", Math.log2, [0.01, 0.5, 1.7, 3, 1e10], 2 ** -20],
    ["rcp.approx.f32", (x) => 1 / x, [0.3, 7, -11, 1e20], 2 ** -23],
    ["rsqrt.approx.f32", (x) => 1 / Math.sqrt(x), [0.3, 7, 1e20], 2 ** -22],
    ["sqrt.approx.f32", Math.sqrt, [0.3, 7, 1e20], 2 ** -22],
    ["sin.approx.f32", Math.sin, [0.1, 1, -2, 3], 2 ** -20],
    ["cos.approx.f32", Math.cos, [0.1, 1, -2, 3], 2 ** -20],
    ["tanh.approx.f32", Math.tanh, [0.1, 1, -2, 3], 2 ** -10],
  ];

  test.each(cases)("%s", (opcode, exact, values, bound) => {
    const program = { inputs: ["b32"], outputs: ["b32"], body: `${opcode} %o0, %i0;` } as const;
    const singles = values.map(Math.fround);
    const results = runLanes(
      program,
      singles.map((value) => [singleBits(value)]),
    );
    singles.forEach((value, at) => {
      const found = singleValue(results[at]?.[0] ?? 0n);
      const expected = exact(value);
      expect(Math.abs(found - expected) / Math.abs(expected)).toBeLessThan(bound);
    });
  });
});
