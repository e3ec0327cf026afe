/** Numbers of 4 bits as f16 and bf16, alone and multiplied by powers of two: every one of them, on the emulator, against float64. */
import { expect, test } from "vitest";
import { bf16, f16, f32, i4, u4 } from "../../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import { tensor, kernel } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import { lower } from "../../../lower/stages.ts";
import { open } from "../../../runtime/open.ts";
import { Random } from "../../../support/random.ts";
import { targets } from "../../../targets/target.ts";
import { printPtx } from "../../printer.ts";

const shape = [16, 128] as const;
/** Lanes have words of a row, as weights are read. */
const layout = "(L2 L3 L4 R5 | R0 R1 R2 R3 R4 L0 L1)";

function widened(from: typeof i4 | typeof u4, to: typeof f16 | typeof bf16, factor: number) {
  return kernel(
    {
      name: "widened",
      warps: 1,
      inputs: { x: tensor(from as typeof i4, shape) },
      outputs: { out: tensor(f32, shape) },
    },
    ({ x, out }) => {
      const whole = x
        .load()
        .layoutCast(layout)
        .cast(to as typeof bf16);
      out.store((factor === 1 ? whole : whole.mul(factor)).cast(f32));
    },
  );
}

const cases = [i4, u4].flatMap((from) =>
  [f16, bf16].flatMap((to) =>
    [1, 1 / 2, 1 / 4, 2 ** -11, ...(to === bf16 ? [2 ** -120] : []), 3 / 8].map(
      (factor) => [from, to, factor] as const,
    ),
  ),
);

test("every number of 4 bits, with every factor", async () => {
  const device = await open("emulator");
  for (const [from, to, factor] of cases) {
    const least = from === i4 ? -8 : 0;
    const numbers = Float64Array.from(
      { length: 2048 },
      (_, at) => ((at * 7 + (at >> 4)) % 16) + least,
    );
    const x = fromNumbers(from as typeof i4, shape, numbers);
    const { out } = await device.run(widened(from, to, factor), { x });
    expect([...toNumbers(out)], `${from.name} ${to.name} ${factor}`).toEqual(
      [...numbers].map((each) => each * factor),
    );
  }
  device.dispose();
});

/** Shifts of words, products and products with sums in the code of a kernel. */
function counted(to: typeof f16 | typeof bf16, factor: number): readonly number[] {
  const text = printPtx(lower(widened(i4, to, factor).kernel, targets.sm_90a).module);
  return [/mul\.rn\.bf16x2/g, /fma\.rn\.b?f16x2/g, /lop3\.b32/g].map(
    (pattern) => text.match(pattern)?.length ?? 0,
  );
}

test("a factor that is small enough goes along with the conversion", () => {
  expect(counted(bf16, 1 / 4)).toEqual([0, 32, 32]);
  expect(counted(bf16, 1 / 2)).toEqual([32, 0, 32]);
  expect(counted(f16, 1)).toEqual([0, 32, 32]);
});

/** Products with scales of rows: zero, or from `least` to `most`. */
function scaled(from: typeof i4 | typeof u4, factor: number, least: number, most: number) {
  return kernel(
    {
      name: "scaled",
      warps: 1,
      inputs: { x: tensor(from as typeof i4, shape), scale: tensor(bf16, [shape[0]]) },
      outputs: { out: tensor(bf16, shape) },
    },
    ({ x, scale, out }) => {
      const given = scale.load();
      const known = given.lt(least).select(0, given.minimum(most)).reshape([shape[0], 1]);
      const whole = x.load().layoutCast(layout).cast(bf16).mul(factor);
      out.store(whole.mul(known));
    },
  );
}

/** The nearest bf16, of normal numbers. */
function nearest(value: number): number {
  const unit = 2 ** (Math.floor(Math.log2(Math.abs(value))) - 7);
  const count = value / unit;
  const [below, rest] = [Math.floor(count), count - Math.floor(count)];
  const isUp = rest > 0.5 || (rest === 0.5 && below % 2 !== 0);
  return value === 0 ? 0 : (below + (isUp ? 1 : 0)) * unit;
}

test("scales of a known range go along, too, and are rounded once", async () => {
  const device = await open("emulator");
  const random = new Random(3);
  for (const from of [i4, u4]) {
    const low = from === i4 ? -8 : 0;
    const numbers = Float64Array.from(
      { length: 2048 },
      (_, at) => ((at * 5 + (at >> 3)) % 16) + low,
    );
    const given = Float64Array.from({ length: 16 }, (_, at) =>
      at === 0 ? 0 : nearest((1 + random.uniform()) * 2 ** (at < 3 ? ([0, -64, 3][at] ?? 0) : -at)),
    );
    const x = fromNumbers(from as typeof i4, shape, numbers);
    const scale = fromNumbers(bf16, [16], given);
    const factor = 2 ** -10;
    const { out } = await device.run(scaled(from, factor, 2 ** -64, 16), { x, scale });
    const wanted = Array.from(numbers, (each, at) =>
      nearest(each * factor * (given[at >> 7] ?? NaN)),
    );
    expect([...toNumbers(out)].map((each) => each + 0)).toEqual(wanted.map((each) => each + 0));
  }
  device.dispose();
});

/** Products and fmas of a kernel with scales. Those of the scales themselves are the same for all words of a row, which assemblers see. */
function countedScaled(factor: number, least: number, most: number): readonly number[] {
  const text = printPtx(lower(scaled(i4, factor, least, most).kernel, targets.sm_90a).module);
  return [/mul\.rn\.bf16x2/g, /fma\.rn\.bf16x2/g].map((each) => text.match(each)?.length ?? 0);
}

test("scales that might be too great or too small are multiplied by afterwards", () => {
  expect(countedScaled(2 ** -10, 2 ** -64, 16)).toEqual([64, 32]);
  expect(countedScaled(2 ** -10, 2 ** -64, 32)).toEqual([32, 32]);
  expect(countedScaled(2 ** -10, 2 ** -117, 16)).toEqual([32, 32]);
});

/** Scales whose range is not known: what is tested is not what is used, or the least is above the greatest. */
function unknownRange(known: (given: Tile<"bf16">) => Tile<"bf16">) {
  return kernel(
    {
      name: "unknown_range",
      warps: 1,
      inputs: { x: tensor(i4, shape), scale: tensor(bf16, [16, 16]) },
      outputs: { out: tensor(bf16, shape) },
    },
    ({ x, scale, out }) => {
      const scales = known(scale.load()).slice([0, 0], [16, 1]);
      out.store(
        x
          .load()
          .layoutCast(layout)
          .cast(bf16)
          .mul(2 ** -10)
          .mul(scales),
      );
    },
  );
}

test("scales whose range is not known are multiplied by afterwards", () => {
  const count = (known: (given: Tile<"bf16">) => Tile<"bf16">): number => {
    const text = printPtx(lower(unknownRange(known).kernel, targets.sm_90a).module);
    return text.match(/mul\.rn\.bf16x2/g)?.length ?? 0;
  };
  expect(count((y) => y.lt(0.5).select(0, y.transpose().minimum(4)))).toBe(32);
  expect(count((y) => y.lt(8).select(0, y.minimum(4)))).toBe(32);
  expect(count((y) => y.gt(0.5).select(0, y.minimum(4)))).toBe(32);
  expect(count((y) => y.lt(0.5).select(1, y.minimum(4)))).toBe(32);
});
