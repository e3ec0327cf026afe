/** Conversions with options against numbers found by search, and integers by BigInt. */
import { expect, test } from "vitest";
import { finiteNumbers, neighbour } from "../../test/number-reference.ts";
import { Random } from "../support/random.ts";
import { convertElements } from "./convert.ts";
import { conversionChoices } from "./conversion-rules.ts";
import { allocateElements, dtypes, f32, f64, i64, u64 } from "./dtype.ts";
import type { DType } from "./dtype.ts";
import type { ConversionOptions, Rounding } from "./floats.ts";
import { readElement } from "./values.ts";

const seed = 11;

function convert(
  from: DType,
  to: DType,
  values: readonly (number | bigint)[],
  options: ConversionOptions,
): readonly (number | bigint | boolean)[] {
  const source = allocateElements(from, values.length);
  values.forEach((value, index) => {
    source[index] = value as never;
  });
  const target = allocateElements(to, values.length);
  convertElements(from, to, source, target, options);
  return values.map((_, index) => readElement(to, target, index));
}

/** Finite numbers on either side of a size, and infinity above them all. */
function around(list: readonly number[] | Float64Array, size: number): readonly [number, number] {
  let [above, end] = [0, list.length];
  while (above < end) {
    const middle = (above + end) >>> 1;
    if ((list[middle] ?? 0) < size) above = middle + 1;
    else end = middle;
  }
  const high = list[above] ?? Infinity;
  return [high === size ? high : (list[above - 1] ?? list[0] ?? 0), high];
}

function between(rounding: Rounding, value: number, low: number, high: number): number {
  const size = Math.abs(value);
  const sign = value < 0 || Object.is(value, -0) ? -1 : 1;
  if (low === high) return sign * low;
  const isHigh = {
    up: sign > 0,
    down: sign < 0,
    zero: false,
    away: size >= low / 2 + Math.min(high, 2 ** 128) / 2,
    nearest: false,
  }[rounding];
  return sign * (isHigh ? high : low);
}

function samples(list: Float64Array, random: Random): readonly number[] {
  const values: number[] = [];
  for (let count = 0; count < 300; count += 1) {
    const at = random.below(list.length - 1);
    const [low = 0, high = 0] = [list[at], list[at + 1]];
    const middle = low / 2 + high / 2;
    values.push(low, middle, neighbour(middle, 1), neighbour(middle, -1), low + (high - low) / 7);
  }
  const last = list.at(-1) ?? 0;
  const beyond = [last * 1.1, 2 ** 200, neighbour(last, 1), Number.MIN_VALUE];
  return [...values, ...beyond].flatMap((value) => [value, -value]);
}

const directed = ["zero", "down", "up"] as const;

test.each(["f16", "bf16", "tf32"] as const)("%s to the side that was chosen", (name) => {
  const list = finiteNumbers(name);
  const values = samples(list, new Random(seed));
  for (const rounding of name === "tf32" ? [...directed, "away" as const] : directed) {
    const wanted = values.map((value) =>
      between(rounding, value, ...around(list, Math.abs(value))),
    );
    expect(convert(f64, dtypes[name], values, { rounding }), `seed ${seed}`).toEqual(wanted);
    const finite = wanted.map((value) =>
      Math.abs(value) === Infinity ? Math.sign(value) * (list.at(-1) ?? 0) : value,
    );
    const bounded = { rounding, overflow: "saturate" } as const;
    expect(convert(f64, dtypes[name], values, bounded), `seed ${seed}`).toEqual(finite);
  }
});

test("powers of two from below and above", () => {
  const values = [1.999, 2, 2.001, 2 ** -126 * 0.6, 2 ** -127, 2 ** -130, 2 ** 127 * 1.2, 0, -1];
  const scale = dtypes.f8e8m0fnu;
  const least = 2 ** -127;
  expect(convert(f64, scale, values, { rounding: "zero" })).toEqual(
    [1, 2, 2, least, least, least, 2 ** 127, NaN, NaN], // <- 2^-127 is the least there is
  );
  expect(convert(f64, scale, values, { rounding: "up" })).toEqual([
    2,
    2,
    4,
    2 ** -126,
    least,
    least,
    NaN,
    NaN,
    NaN,
  ]);
});

test("f32 to the side that was chosen", () => {
  const random = new Random(seed);
  for (let count = 0; count < 500; count += 1) {
    const value = random.normal() * 2 ** (random.below(290) - 150);
    const [zero, down, up] = directed.map((rounding) => {
      const [found = NaN] = convert(f64, f32, [value], { rounding });
      return Number(found);
    }) as [number, number, number];
    expect([down <= value, up >= value, Math.abs(zero) <= Math.abs(value)]).toEqual([
      true,
      true,
      true,
    ]);
    // Nothing lies between the two: the f64 in their middle becomes one of them.
    const nearest = Math.fround(value);
    expect([down, up], `seed ${seed}`).toContain(nearest);
    if (nearest === value) expect([down, up]).toEqual([value, value]);
    else expect([down, up]).toContain(Math.fround(down / 2 + up / 2));
  }
});

test("integers of 64 bits as f64 and f32", () => {
  const random = new Random(seed);
  const wide = (): bigint => (BigInt(random.bits()) << 32n) | BigInt(random.bits());
  for (const [from, cut] of [
    [i64, BigInt.asIntN],
    [u64, BigInt.asUintN],
  ] as const)
    for (let count = 0; count < 300; count += 1) {
      const value = cut(64, wide() >> BigInt(random.below(64)));
      for (const to of [f64, f32]) {
        const [down = 0, up = 0, zero = 0] = (["down", "up", "zero"] as const).flatMap((rounding) =>
          convert(from, to, [value], { rounding }).map(Number),
        );
        expect(BigInt(down) <= value && BigInt(up) >= value, `${value}, seed ${seed}`).toBe(true);
        expect(zero).toBe(value < 0n ? up : down);
        expect([down, up]).toContain(to === f32 ? nearestSingle(value) : Number(value));
      }
    }
});

/** By comparing distances; a tie is either. */
function nearestSingle(value: bigint): number {
  const about = Math.fround(Number(value));
  const step = 2 ** Math.max(0, Math.floor(Math.log2(Math.abs(about) || 1)) - 23);
  const near = [about - step, about, about + step].map(Math.fround);
  const distance = (each: number): bigint => {
    const difference = BigInt(each) - value;
    return difference < 0n ? -difference : difference;
  };
  return near.reduce((best, each) => (distance(each) < distance(best) ? each : best), about);
}

test("floats to whole numbers", () => {
  const values = [0.5, 1.5, 2.5, -0.5, -1.5, 1.2, -1.2, 126.6, 127.5, 1e9, -1e9, NaN];
  const wanted: { readonly [R in Exclude<Rounding, "away">]: readonly number[] } = {
    nearest: [0, 2, 2, 0, -2, 1, -1, 127, 127, 127, -128, 0],
    zero: [0, 1, 2, 0, -1, 1, -1, 126, 127, 127, -128, 0],
    down: [0, 1, 2, -1, -2, 1, -2, 126, 127, 127, -128, 0],
    up: [1, 2, 3, 0, -1, 2, -1, 127, 127, 127, -128, 0],
  };
  for (const [rounding, results] of Object.entries(wanted))
    expect(convert(f64, dtypes.i8, values, { rounding: rounding as Rounding }).map(Number)).toEqual(
      results,
    );
});

test("integers saturate", () => {
  for (const from of [dtypes.i8, dtypes.i16, dtypes.u16, dtypes.i32, dtypes.u32, i64, u64])
    for (const to of [
      dtypes.i4,
      dtypes.u4,
      dtypes.i8,
      dtypes.u8,
      dtypes.i32,
      dtypes.u32,
      i64,
      u64,
    ]) {
      const bounds = (dtype: DType): readonly [bigint, bigint] => {
        const top = 1n << BigInt(dtype.kind === "signed" ? dtype.bits - 1 : dtype.bits);
        return [dtype.kind === "signed" ? -top : 0n, top - 1n];
      };
      const [least, greatest] = bounds(from);
      const [low, high] = bounds(to);
      for (const value of [least, least + 1n, 0n, 5n, 7n, 8n, 200n, greatest - 1n, greatest]) {
        if (value < least || value > greatest) continue;
        const given = from.bits === 64 ? value : Number(value);
        const wanted = value < low ? low : value > high ? high : value;
        const [found = 0] = convert(from, to, [given], { overflow: "saturate" });
        expect(BigInt(found), `${value} ${from.name} ${to.name}`).toBe(wanted);
      }
    }
});

test("the unit cuts at 0 and 1, of its own format too", () => {
  const values = [-1, -0, 0.25, 1, 1.5, Infinity, NaN];
  for (const to of [f64, f32, dtypes.f16, dtypes.bf16])
    for (const from of [f64, f32])
      expect(convert(from, to, values, { overflow: "unit" })).toEqual([0, 0, 0.25, 1, 1, 1, 0]);
});

test("what a conversion lets one choose", () => {
  expect(conversionChoices(f32, dtypes.bool)).toEqual({ roundings: [], overflows: [] });
  expect(conversionChoices(i64, dtypes.i8)).toEqual({ roundings: [], overflows: ["saturate"] });
  expect(conversionChoices(f32, dtypes.f8e4m3fn).roundings).toEqual(["nearest"]);
  expect(conversionChoices(i64, f32).overflows).toEqual([]);
});
