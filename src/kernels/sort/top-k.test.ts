/** Best elements, and places in what is in order, against JavaScript's own. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { codeOf, wholeNumbers } from "../../../test/support/library-checks.ts";
import type { Device } from "../../device/device.ts";
import { bool, f32, i32, u8 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { array, dim } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { searchSorted } from "./search-sorted.ts";
import { topK } from "./top-k.ts";

const [m, n] = [dim("m"), dim("n")];

/** Positions of a row in order, equal elements as they were. */
function order(row: readonly number[], descending: boolean): readonly number[] {
  return row
    .map((_, index) => index)
    .sort((left, right) => ((row[left] ?? 0) - (row[right] ?? 0)) * (descending ? -1 : 1));
}

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(kind);
  });
  afterAll(() => {
    device.dispose();
  });

  test("the best of rows of any length", async () => {
    const cases =
      kind === "simulator"
        ? ([
            [3, 40, 8, false],
            [2, 2500, 5, true],
            [1, 9, 9, false],
          ] as const)
        : ([[2, 1100, 3, false]] as const);
    for (const [rows, columns, k, least] of cases) {
      const x = wholeNumbers(f32, [rows, columns], k);
      const op = topK({ x: f32, k, least });
      const { values, indices } = await device.run(op, { x: x.array });
      const expected = Array.from({ length: rows }, (_, row) => {
        const own = x.values.slice(row * columns, (row + 1) * columns);
        return order(own, !least).slice(0, k);
      });
      expect([...toNumbers(indices)]).toEqual(expected.flat());
      expect([...toNumbers(values)]).toEqual(
        expected.flatMap((places, row) => places.map((place) => x.values[row * columns + place])),
      );
    }
    const low = fromNumbers(f32, [1, 5], [-Infinity, -Infinity, 1, -Infinity, -Infinity]);
    const { indices } = await device.run(topK({ x: f32, k: 4 }), { x: low });
    expect([...toNumbers(indices)]).toEqual([2, 0, 1, 3]);
  });

  test("places in what is in order", async () => {
    const sorted = [-3, -1, -1, 0, 2, 2, 2, 9];
    const queries = [-9, -3, -1, 1, 2, 9, 10];
    for (const side of ["left", "right"] as const) {
      const { out } = await device.run(searchSorted({ sorted: i32, side }), {
        sorted: fromNumbers(i32, [sorted.length], sorted),
        queries: fromNumbers(i32, [queries.length], queries),
      });
      const isBefore = (value: number, query: number): boolean =>
        side === "left" ? value < query : value <= query;
      expect([...toNumbers(out)]).toEqual(
        queries.map((query) => sorted.filter((value) => isBefore(value, query)).length),
      );
    }
    const nothing = await device.run(searchSorted({ sorted: f32 }), {
      sorted: fromNumbers(f32, [0], []),
      queries: fromNumbers(f32, [2], [1, 2]),
    });
    expect([...toNumbers(nothing.out)]).toEqual([0, 0]);
  });
});

test("mistakes are told", () => {
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9901", () => topK({ x: bool, k: 2 })],
    ["TW9902", () => topK({ x: array(f32, [m, n], { strides: [1, m] }), k: 2 })],
    ["TW9902", () => topK({ x: u8, k: 9 }).plan({ m: 2, n: 8 })],
    ["TW9902", () => searchSorted({ sorted: array(f32, [m, n]) })],
    ["TW9904", () => topK({ x: f32, k: 0 })],
    ["TW9904", () => topK({ x: f32, k: 513 })],
    ["TW9904", () => searchSorted({ sorted: f32, side: "middle" as never })],
    ["TW1033", () => topK({ x: f32, count: 3 } as never)],
    ["TW1033", () => searchSorted({ x: f32 } as never)],
  ];
  for (const [code, make] of refused) expect(codeOf(make), String(make)).toBe(code);
});
