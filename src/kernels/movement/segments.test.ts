/** Rows combined by number in a fixed order, against sums in that order. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { codeOf, wholeNumbers } from "../../../test/support/library-checks.ts";
import { takesAll } from "../../../test/support/sample.ts";
import type { Device } from "../../device/device.ts";
import { bf16, bool, f32, f4e2m1fn, i32, i4, i64, i8, u4 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { scatter } from "./scatter.ts";
import { segmentReduce } from "./segment-reduce.ts";

const [n, v, d] = [dim("n"), dim("v"), dim("d")];

const merges = {
  sum: [(a: number, b: number) => a + b, 0],
  prod: [(a: number, b: number) => a * b, 1],
  min: [Math.min, Infinity],
  max: [Math.max, -Infinity],
} as const;

const merging = { add: "sum", min: "min", max: "max" } as const;

/** Rows of each segment combined, those of others left out. */
function combined(
  combine: keyof typeof merges,
  values: readonly number[],
  segments: readonly number[],
  count: number,
  inner: number,
): readonly number[] {
  const [merge, identity] = merges[combine];
  const out = Array.from({ length: count * inner }, () => identity as number);
  for (const [row, segment] of segments.entries())
    if (segment >= 0 && segment < count)
      for (let column = 0; column < inner; column += 1) {
        const at = segment * inner + column;
        out[at] = merge(out[at] ?? NaN, values[row * inner + column] ?? NaN);
      }
  return out;
}

const counts = { simulator: 4, emulator: takesAll ? 20 : 10 };

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(kind);
  });
  afterAll(() => {
    device.dispose();
  });

  test("segments of many shapes", async () => {
    const random = new Random(31);
    const op = segmentReduce({ x: tensor(f32, [n, d]), segments: tensor(i32, [n]), count: v });
    const shapes = Array.from({ length: counts[kind] }, () => [
      1 + random.below(60),
      1 + random.below(5),
      1 + random.below(6),
    ]);
    for (const [rows = 0, inner = 0, count = 0] of [...shapes, [0, 3, 2]]) {
      const x = wholeNumbers(f32, [rows, inner], 4);
      const segments = Array.from({ length: rows }, () => random.below(count + 2) - 1);
      const given = { x: x.array, segments: fromNumbers(i32, [rows], segments) };
      const { out } = await device.run(op, given, { dimensions: { v: count } });
      expect([...toNumbers(out)]).toEqual(combined("sum", x.values, segments, count, inner));
    }
  });

  test("every combination, of segments in order", async () => {
    const segments = [0, 0, 1, 1, 1, 3, 3];
    const x = wholeNumbers(bf16, [7, 2], 5);
    for (const combine of kind === "emulator"
      ? (["max"] as const)
      : (["prod", "min", "max"] as const)) {
      const spec = { x: tensor(bf16, [n, 2]), segments: tensor(i32, [n]), count: 4 } as const;
      const op = segmentReduce({ ...spec, combine, sorted: true });
      const { out } = await device.run(op, {
        x: x.array,
        segments: fromNumbers(i32, [7], segments),
      });
      expect([...toNumbers(out)]).toEqual(combined(combine, x.values, segments, 4, 2));
    }
  });

  test("updates in their order: sums repeat, and the last of several stays", async () => {
    const chosen = [2, 0, 2, 2, 1];
    const updates = [1e8, 1, 1, -1e8, 5];
    const run = async (combine: "add" | "set") => {
      const op = scatter({ out: tensor(f32, [v]), indices: tensor(i32, [n]), combine });
      const { out } = await device.run(op, {
        indices: fromNumbers(i32, [5], chosen),
        updates: fromNumbers(f32, [5], updates),
        out: fromNumbers(f32, [4], [10, 20, 0, 40]),
      });
      return [...toNumbers(out)];
    };
    const sums = await run("add");
    expect(sums.with(2, 0)).toEqual([11, 25, 0, 40]);
    for (let turn = 0; turn < 3; turn += 1) expect(await run("add")).toEqual(sums);
    expect(await run("set")).toEqual([1, 5, -1e8, 40]);
    const narrow = scatter({ out: tensor(i8, [v, 3]), indices: tensor(i32, [n]), combine: "add" });
    const { out } = await device.run(narrow, {
      indices: fromNumbers(i32, [2], [1, 1]),
      updates: fromNumbers(i8, [2, 3], [1, 2, 3, 4, 5, 6]),
      out: fromNumbers(i8, [2, 3], [0, 0, 0, 1, 1, 1]),
    });
    expect([...toNumbers(out)]).toEqual([0, 0, 0, 6, 8, 10]);
  });

  test("odd rows of 4 bits, whose ends share bytes with other rows", async () => {
    const random = new Random(17);
    const some = (values: readonly number[], count: number): readonly number[] =>
      Array.from({ length: count }, () => random.pick(values));
    const cases = [
      [i4, [-8, -3, 0, 2, 7], "add"],
      [i4, [-8, -3, 0, 2, 7], "min"],
      [u4, [0, 1, 9, 15], "add"],
      [u4, [0, 1, 9, 15], "max"],
      [f4e2m1fn, [-6, -0.5, 0, 1.5, 6], "set"],
    ] as const;
    const [taken, widths] = kind === "emulator" ? [cases.slice(3), [5]] : [cases, [1, 5]];
    for (const [dtype, values, combine] of taken)
      for (const inner of widths) {
        const [rows, chosen] = [some(values, 5 * inner), [3, 0, 3, 1]];
        const updates = some(values, chosen.length * inner);
        const expected = [...rows];
        for (const [row, place] of chosen.entries())
          for (let column = 0; column < inner; column += 1) {
            const [at, update] = [place * inner + column, updates[row * inner + column] ?? NaN];
            expected[at] =
              combine === "set" ? update : merges[merging[combine]][0](expected[at] ?? NaN, update);
          }
        const op = scatter({ out: tensor(dtype, [v, d]), indices: tensor(i32, [n]), combine });
        const { out } = await device.run(op, {
          indices: fromNumbers(i32, [chosen.length], chosen),
          updates: fromNumbers(dtype, [chosen.length, inner], updates),
          out: fromNumbers(dtype, [5, inner], rows),
        });
        // Sums leave the format, and wrap around.
        const wrapped = (value: number): number => {
          const low = value & 15;
          return dtype.name === "i4" && low > 7 ? low - 16 : low;
        };
        expect([...toNumbers(out)], `${dtype.name} ${combine} of rows of ${inner}`).toEqual(
          combine === "add" ? expected.map(wrapped) : expected,
        );
      }
  });

  test("a number that is no row stops the kernel", async () => {
    const op = scatter({ out: tensor(f32, [v]), indices: tensor(i32, [n]), combine: "add" });
    for (const wrong of [-1, 3])
      await expect(
        device.run(op, {
          indices: fromNumbers(i32, [2], [0, wrong]),
          updates: fromNumbers(f32, [2], [1, 1]),
          out: fromNumbers(f32, [3], [0, 0, 0]),
        }),
      ).rejects.toThrow(kind === "emulator" ? "TW8016" : "TW3005");
    // The low 32 bits of these are a row.
    const far = scatter({ out: tensor(f32, [v]), indices: tensor(i64, [n]), combine: "set" });
    for (const wrong of [2n ** 32n + 1n, 1n - 2n ** 32n])
      await expect(
        device.run(far, {
          indices: { dtype: i64, shape: [2], data: BigInt64Array.of(0n, wrong) },
          updates: fromNumbers(f32, [2], [1, 1]),
          out: fromNumbers(f32, [3], [0, 0, 0]),
        }),
      ).rejects.toThrow(kind === "emulator" ? "TW8016" : "TW3005");
  });
});

test("mistakes are reported", () => {
  const [x, segments] = [tensor(f32, [n, d]), tensor(i32, [n])];
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9901", () => segmentReduce({ x: tensor(bool, [n]), segments, count: 3 })],
    ["TW9901", () => segmentReduce({ x, segments: tensor(f32, [n]) as never, count: 3 })],
    ["TW9902", () => segmentReduce({ x, segments: tensor(i32, [d]), count: 3 })],
    ["TW9904", () => segmentReduce({ x, segments, count: 3, combine: "mean" as never })],
    ["TW9904", () => segmentReduce({ x, segments, count: 0 })],
    ["TW1033", () => segmentReduce({ x, segments, count: 3, axis: 0 } as never)],
  ];
  for (const [code, make] of refused) expect(codeOf(make), String(make)).toBe(code);
});
