/** Casts that round by chance, against float64: the neighbours of each number, and which of them its bits choose. */
import { expect, test } from "vitest";
import {
  tensor,
  bf16,
  castStochastic,
  f16,
  f32,
  fromNumbers,
  full,
  iota,
  kernel,
  open,
  randomKey,
  TilewrightError,
  toNumbers,
  u32,
} from "tilewright";
import { Random } from "../support/random.ts";

const count = 4096;
const formats = {
  bf16: { dtype: bf16, digits: 8, least: -126, greatest: 127 },
  f16: { dtype: f16, digits: 11, least: -14, greatest: 15 },
} as const;
type Format = (typeof formats)["bf16" | "f16"];

/** The distance of neighbours at a number. */
function gapAt(size: number, { digits, least }: Format): number {
  const exponent = Math.max(least, Math.floor(Math.log2(size)));
  return 2 ** (exponent - digits + 1);
}

function expected(value: number, bits: number, format: Format): number {
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return value;
  const gap = size === 0 ? 1 : gapAt(size, format);
  const whole = Math.floor(size / gap);
  const share = size / gap - whole;
  // As many bits as f32 has digits below the format's; f16's subnormal numbers take 24.
  const used = format.dtype === bf16 ? 16 : size < 2 ** -14 ? 24 : 13;
  const chance = Math.floor(bits / 2 ** (32 - used)) / 2 ** used;
  const isUp = used === 24 ? chance < share : chance + share >= 1;
  const result = (whole + (isUp ? 1 : 0)) * gap;
  return Math.sign(value) * (result >= 2 ** (format.greatest + 1) ? Infinity : result);
}

const rounding = (format: Format) =>
  kernel(
    {
      name: "rounding",
      inputs: { x: tensor(f32, [count]), bits: tensor(u32, [count]) },
      outputs: { out: tensor(format.dtype, [count]) },
    },
    ({ x, bits, out }) => {
      out.store(castStochastic(x.load(), format.dtype, bits.load()));
    },
  );

test.each(["bf16", "f16"] as const)(
  "each number becomes a neighbour in %s, as its bits say",
  async (name) => {
    const random = new Random(31);
    const format = formats[name];
    const special = [
      0,
      -0,
      Infinity,
      -Infinity,
      NaN,
      1,
      -1,
      65504,
      65519,
      65520,
      -65535,
      3e38,
      2 ** -24,
      2 ** -25,
      -(2 ** -14),
      1e-7,
    ];
    const x = Array.from({ length: count }, (_, index) => {
      const power = random.below(2) === 0 ? 2 ** (random.below(40) - 25) : 1;
      return Math.fround(special[index] ?? (random.uniform() * 2 - 1) * power);
    });
    const bits = Array.from(
      { length: count },
      (_, index) => [0, 2 ** 32 - 1][index % 8] ?? random.below(2 ** 32),
    );
    for (const where of ["simulator", "emulator"] as const) {
      const device = await open(where);
      const { out } = await device.run(rounding(format), {
        x: fromNumbers(f32, [count], x),
        bits: fromNumbers(u32, [count], bits),
      });
      device.dispose();
      const found = [...toNumbers(out)];
      expect(found).toEqual(x.map((value, index) => expected(value, bits[index] ?? NaN, format)));
    }
  },
);

test.each(["bf16", "f16"] as const)("no bits make a number of a NaN in %s", async (name) => {
  // Those whose digits lie among the dropped ones alone, and those that overflow when anything is added.
  const nans = [0x7f800001, 0xff800001, 0x7fffffff, 0xffffffff, 0x7fc00000];
  const chances = [0, 1, 0x8000_0000, 0xffff_ffff];
  const codes = nans.flatMap((nan) => chances.map(() => nan));
  const bits = nans.flatMap(() => chances);
  const { dtype } = formats[name];
  const length = codes.length;
  const keeping = kernel(
    {
      name: "keeping",
      inputs: { codes: tensor(u32, [length]), bits: tensor(u32, [length]) },
      outputs: { out: tensor(dtype, [length]) },
    },
    ({ codes, bits, out }) => {
      out.store(castStochastic(codes.load().bitcast(f32), dtype, bits.load()));
    },
  );
  for (const where of ["simulator", "emulator"] as const) {
    const device = await open(where);
    const { out } = await device.run(keeping, {
      codes: fromNumbers(u32, [length], codes),
      bits: fromNumbers(u32, [length], bits),
    });
    device.dispose();
    expect([...toNumbers(out)]).toEqual(codes.map(() => NaN));
  }
});

test("sums of rounded numbers are right on average", async () => {
  const value = 1 + 2 ** -7 * 0.3;
  const average = kernel({ name: "average", outputs: { sum: tensor(f32, [1]) } }, ({ sum }) => {
    const bits = randomKey(5).bits(iota(u32, [count], { axis: 0 }));
    sum.at(0).store(
      castStochastic(full(f32, [count], value), bf16, bits)
        .cast(f32)
        .sum(),
    );
  });
  const device = await open("simulator");
  const { sum } = await device.run(average, {});
  device.dispose();
  // Six standard deviations of the mean of so many draws.
  const spread = (6 * 2 ** -7 * Math.sqrt(0.3 * 0.7)) / Math.sqrt(count);
  expect(Math.abs((toNumbers(sum)[0] ?? NaN) / count - value)).toBeLessThan(spread);
});

test.each([
  ["numbers of another format", (_: never, bits: never) => castStochastic(bits, bf16, bits)],
  ["bits of another format", (x: never) => castStochastic(x, bf16, x)],
  ["a format without this", (x: never, bits: never) => castStochastic(x, f32 as never, bits)],
])("%s are refused", (_, use) => {
  const trace = (): unknown =>
    kernel(
      { name: "wrong", inputs: { x: tensor(f32, [8]), bits: tensor(u32, [8]) } },
      ({ x, bits }) => {
        use(x.load() as never, bits.load() as never);
      },
    );
  expect(trace).toThrow(TilewrightError);
  expect(trace).toThrow("castStochastic");
});
