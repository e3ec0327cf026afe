/** Distinct elements against a map of JavaScript's. */
import { expect, test } from "vitest";
import { codeOf } from "../../../test/support/library-checks.ts";
import { inOrder, oddNumbers } from "../../../test/support/orders.ts";
import { scheduleSeeds, takesAll } from "../../../test/support/sample.ts";
import type { Device } from "../../device/device.ts";
import { bf16, bool, f32, f8e4m3fn, f8e8m0fnu, i16, i32, u8 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { unique } from "./unique.ts";

const [m, n] = [dim("m"), dim("n")];

function everything(dtype: DType, size: number) {
  return unique({ x: dtype as typeof f32, size, counts: true, indices: true, inverse: true });
}

/** Runs it, and compares all of its results; −0 and 0 are one number, as NaN is. */
async function expectDistinct(
  device: Device,
  op: ReturnType<typeof everything>,
  x: HostArray,
  label: string,
): Promise<void> {
  const found = await device.run(op, { x } as never);
  const size = found.values.shape[0] ?? 0;
  const numbers = [...toNumbers(x)];
  const nameOf = (value: number): string => `${value}`;
  const kinds = new Map<string, number[]>();
  const order = inOrder(numbers, false);
  for (const place of order) {
    const name = nameOf(numbers[place] ?? 0);
    kinds.set(name, [...(kinds.get(name) ?? []), place]);
  }
  const all = [...kinds.values()];
  const filled = <T>(values: readonly T[], rest: T): readonly T[] =>
    Array.from({ length: size }, (_, at) => (at < values.length ? (values[at] ?? rest) : rest));
  // The first in order stands for its kind, and the least for what is missing.
  const firsts = filled(
    all.map(([place]) => place ?? 0),
    order[0] ?? 0,
  );
  expect([...toNumbers(found.count)], label).toEqual([all.length]);
  expect([...toNumbers(found.values)], label).toEqual(firsts.map((place) => numbers[place] ?? 0));
  const indices = filled(
    all.map((kind) => Math.min(...kind)),
    all[0] === undefined ? 0 : Math.min(...all[0]),
  );
  expect([...toNumbers(found.indices)], label).toEqual(indices);
  const lengths = all.map(({ length }) => length);
  expect([...toNumbers(found.counts)], label).toEqual(filled(lengths, 0));
  const names = [...kinds.keys()];
  const which = numbers.map((value) => names.indexOf(nameOf(value)));
  expect([...toNumbers(found.inverse)], label).toEqual(which);
}

/** f32 of given bits. */
function ofBits(bits: readonly number[]): HostArray<"f32"> {
  const made = fromNumbers(f32, [bits.length], new Float64Array(bits.length));
  new Uint32Array(made.data.buffer, made.data.byteOffset).set(bits);
  return made;
}

test.each(["simulator", "emulator"] as const)(
  "NaNs of different bits are one element, which is where the first of them is, on the %s",
  async (kind) => {
    const device = await open(kind);
    const op = everything(f32, 4);
    const [one, negative, quiet, signalling] = [0x3f800000, 0xffc00000, 0x7fc00001, 0x7f800001];
    const given = [one, negative, quiet, 0, negative, signalling, 0x80000000, one];
    await expectDistinct(device, op, ofBits(given), "NaNs");
    await expectDistinct(device, op, ofBits([negative, signalling]), "only NaNs");
    await expectDistinct(device, op, ofBits([one, 0, 0x80000000]), "no NaN");
    device.dispose();
  },
);

test("arrays of many lengths, on the emulator", async () => {
  const device = await open("emulator");
  const random = new Random(41);
  for (const dtype of [i16, f32, f8e4m3fn, bool]) {
    const op = everything(dtype, 30);
    const turns = takesAll ? 10 : 2;
    for (let turn = 0; turn < turns; turn += 1) {
      // Lengths of few kernels; the last one of f32 has several blocks.
      const isLong = turn === turns - 1 && dtype === f32;
      const length = isLong ? 1025 + random.below(100) : 33 + random.below(32);
      const x =
        turn % 2 === 0
          ? oddNumbers(dtype, [length], random)
          : fromNumbers(
              dtype,
              [length],
              Array.from({ length }, () => random.below(25) - 12),
            );
      await expectDistinct(device, op, x, `seed 41, turn ${turn}: ${dtype.name} ${length}`);
    }
  }
  device.dispose();
});

test("under many schedules", async () => {
  const random = new Random(43);
  const op = everything(f32, 12);
  for (const seed of scheduleSeeds) {
    const device = await open("simulator", { schedule: "random", seed });
    const length = 1 + random.below(60);
    await expectDistinct(device, op, oddNumbers(f32, [length], random), `schedule ${seed}`);
    device.dispose();
  }
});

test("arrays of several axes, a fill of one's own, and no elements at all", async () => {
  const device = await open("simulator");
  const table = unique({ x: tensor(bf16, [m, n]), size: 4, inverse: true, fill: -7 });
  const x = fromNumbers(bf16, [2, 3], [3, 1, 3, 0, 1, 3]);
  const { values, count, inverse } = await device.run(table, { x });
  expect([...toNumbers(values), ...toNumbers(count)]).toEqual([0, 1, 3, -7, 3]);
  expect(inverse.shape).toEqual([2, 3]);
  expect([...toNumbers(inverse)]).toEqual([2, 1, 2, 0, 1, 2]);
  const none = await device.run(unique({ x: u8, size: 2, counts: true }), {
    x: fromNumbers(u8, [0], []),
  });
  expect([none.values, none.count, none.counts].map((each) => [...toNumbers(each)])).toEqual([
    [0, 0],
    [0],
    [0, 0],
  ]);
  const noTruths = await device.run(unique({ x: bool, size: 2 }), {
    x: fromNumbers(bool, [0], []),
  });
  expect([...toNumbers(noTruths.values), ...toNumbers(noTruths.count)]).toEqual([0, 0, 0]);
  device.dispose();
});

test("of −0 and 0 the first in the array counts, and −0 stands for both", async () => {
  const device = await open("simulator");
  for (const [dtype, zeros] of [
    [f32, [5, 0, -0, 0, -0]],
    [bf16, [5, -0, 0, -0, 0]],
    [f8e4m3fn, [5, 0, 0, -0]],
    [f32, [5, 0, 0]],
  ] as const) {
    const op = unique({ x: dtype as typeof f32, size: 3, indices: true });
    const x = fromNumbers(dtype as typeof f32, [zeros.length], zeros);
    const { values, indices } = await device.run(op, { x });
    const zero = zeros.some((value) => Object.is(value, -0)) ? -0 : 0;
    expect([...toNumbers(values)], dtype.name).toEqual([zero, 5, zero]);
    expect([...toNumbers(indices)].slice(0, 2), dtype.name).toEqual([1, 0]);
  }
  device.dispose();
});

test("mistakes are reported", () => {
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9901", () => unique({ x: f8e8m0fnu, size: 2 })],
    ["TW9902", () => unique({ x: tensor(i32, [m, n], { strides: [1, m] }), size: 2 })],
    ["TW9902", () => unique({ x: i32, size: 2 }).plan({ n: 2 ** 30 })],
    ["TW9904", () => unique({ x: i32, size: 0 })],
    ["TW1033", () => unique({ x: i32, size: 2, count: true } as never)],
  ];
  for (const [code, make] of refused) expect(codeOf(make), String(make)).toBe(code);
  expect(codeOf(() => unique({ x: u8, size: 2, fill: 300 }))).toMatch(/^TW/);
});
