/** Elements counted by bins, against counts one by one. */
import { describe, expect, test } from "vitest";
import { codeOf } from "../../../test/support/library-checks.ts";
import { bf16, f32, i32, i64, i8, u8 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { array, dim } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { bincount, histogram } from "./histogram.ts";

const [m, n] = [dim("m"), dim("n")];

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  test("numbers by their bins, in arrays of many sizes", async () => {
    const device = await open(kind);
    const random = new Random(17);
    const op = histogram({ x: f32, bins: 10, low: -2, high: 3 });
    const sizes = Array.from({ length: kind === "emulator" ? 20 : 4 }, () => random.below(2500));
    for (const size of [0, 1, ...sizes]) {
      const odd = [NaN, Infinity, -Infinity, -2, 3];
      const x = Array.from({ length: size }, (_, index) =>
        index < 5 ? (odd[index] ?? 0) : Math.fround(random.normal() * 2),
      );
      const expected = Array.from({ length: 10 }, () => 0);
      for (const value of x)
        if (value >= -2 && value <= 3) {
          const bin = Math.min(9, Math.floor((value + 2) * 2));
          expected[bin] = (expected[bin] ?? 0) + 1;
        }
      const { out } = await device.run(op, { x: fromNumbers(f32, [size], x) });
      expect([...toNumbers(out)], `size ${size}`).toEqual(expected);
    }
    device.dispose();
  });

  test("whole numbers of several formats, in few bins and in many", async () => {
    const device = await open(kind);
    const values = [3, 0, 7, 3, 3, 100, 5, -1, -100, 7];
    const few = bincount({ x: array(i8, [m, n]), length: 8 });
    const { out } = await device.run(few, { x: fromNumbers(i8, [2, 5], values) });
    expect([...toNumbers(out)]).toEqual([1, 0, 0, 3, 0, 1, 0, 2]);
    const many = bincount({ x: i64, length: 10_000 });
    const wide = [9999, 10_000, 2 ** 40, 0, -(2 ** 40), 9999];
    const { out: counts } = await device.run(many, { x: fromNumbers(i64, [6], wide) });
    const found = [...toNumbers(counts)];
    expect([found[0], found[9999], found.reduce((sum, each) => sum + each, 0)]).toEqual([1, 2, 3]);
    device.dispose();
  });
});

test("mistakes are told", () => {
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9901", () => histogram({ x: i32 as never, bins: 3, low: 0, high: 1 })],
    ["TW9901", () => bincount({ x: bf16 as never, length: 3 })],
    ["TW9902", () => bincount({ x: array(u8, [m, n], { strides: [1, m] }), length: 3 })],
    ["TW9904", () => histogram({ x: f32, bins: 0, low: 0, high: 1 })],
    ["TW9904", () => histogram({ x: f32, bins: 3, low: 1, high: 1 })],
    ["TW9904", () => bincount({ x: u8, length: 1.5 })],
    ["TW1033", () => bincount({ x: u8, bins: 3 } as never)],
    ["TW1033", () => histogram({ x: f32, count: 3 } as never)],
  ];
  for (const [code, make] of refused) expect(codeOf(make), String(make)).toBe(code);
});
