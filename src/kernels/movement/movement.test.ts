/** Permutes, slices, concatenations and pads, against positions computed one by one. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { codeOf, wholeNumbers } from "../../../test/support/library-checks.ts";
import type { Device } from "../../device/device.ts";
import { bf16, bool, f32, i32, i64 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import { compileAhead } from "../../lower/compile-ahead.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { targets } from "../../targets/target.ts";
import { gather } from "./gather.ts";
import { scatter } from "./scatter.ts";
import { concatenate, pad, permute, slice } from "./strided-copies.ts";

const dims = ["d0", "d1", "d2", "d3"].map((name) => dim(name));
const [v, d, n] = [dim("v"), dim("d"), dim("n")];

/** The coordinates of every element of a shape, in order. */
function coordinates(shape: readonly number[]): readonly (readonly number[])[] {
  return shape.reduce<readonly (readonly number[])[]>(
    (found, extent) =>
      found.flatMap((at) => Array.from({ length: extent }, (_, index) => [...at, index])),
    [[]],
  );
}

function placeOf(shape: readonly number[], at: readonly number[]): number {
  return at.reduce((place, index, axis) => place * (shape[axis] ?? 1) + index, 0);
}

test.each(["simulator", "emulator"] as const)(
  "large matrices of 16 and 32 bits are turned in larger windows, on the %s",
  async (kind) => {
    // So few processors that there are windows for all of them.
    const target = { ...targets.sm_90a, processors: 1 };
    const device = await open(kind, { target });
    const [rows, columns] = [264, 300];
    const x = wholeNumbers(bf16, [rows, columns], 5);
    const op = permute({ x: tensor(bf16, [v, n]), permutation: [1, 0] });
    const window = op.plan({ v: rows, n: columns }, target).configuration;
    expect(window).toMatchObject({ rows: 128, columns: 128, warps: 8 });
    const { out } = await device.run(op, { x: x.array });
    expect([...toNumbers(out)]).toEqual(
      coordinates([columns, rows]).map(([column = 0, row = 0]) => x.values[row * columns + column]),
    );
    // Few windows, sides that are shorter than a window, wider elements.
    const few = op.plan({ v: 128, n: 128 }, target).configuration;
    expect(few).toMatchObject({ rows: 64, columns: 64 });
    const narrow = op.plan({ v: 127, n: 8192 }, target).configuration;
    expect(narrow).toMatchObject({ rows: 64, columns: 64 });
    const wide = permute({ x: tensor(f32, [v, n]), permutation: [1, 0] });
    const window32 = wide.plan({ v: rows, n: columns }, target).configuration;
    expect(window32).toEqual({ rowAxis: 0, rows: 64, columns: 64 });
    const y = wholeNumbers(f32, [rows, columns], 6);
    const turned = await device.run(wide, { x: y.array });
    expect([...toNumbers(turned.out)]).toEqual(
      coordinates([columns, rows]).map(([column = 0, row = 0]) => y.values[row * columns + column]),
    );
    device.dispose();
  },
);

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(kind);
  });
  afterAll(() => {
    device.dispose();
  });

  test("permuted axes, parts and borders of random shapes", async () => {
    const seed = 3;
    const random = new Random(seed);
    for (let round = 0; round < (kind === "simulator" ? 12 : 2); round += 1) {
      const rank = 1 + random.below(4);
      const shape = Array.from({ length: rank }, () => 1 + random.below(round % 3 === 0 ? 40 : 7));
      const axes = shape.map((_, axis) => axis);
      for (let last = rank - 1; last > 0; last -= 1) {
        const other = random.below(last + 1);
        [axes[last], axes[other]] = [axes[other] ?? 0, axes[last] ?? 0];
      }
      const x = wholeNumbers(round % 2 === 0 ? f32 : bf16, shape, round);
      const spec = tensor(x.array.dtype, dims.slice(0, rank));
      const at = (place: readonly number[]): number => x.values[placeOf(shape, place)] ?? NaN;
      const text = `seed ${seed}, round ${round}, [${shape.join(", ")}]`;

      const permuted = await device.run(permute({ x: spec, permutation: axes }), { x: x.array });
      const turned = axes.map((axis) => shape[axis] ?? 1);
      expect(permuted.out.shape, text).toEqual(turned);
      expect([...toNumbers(permuted.out)], text).toEqual(
        coordinates(turned).map((own) => at(shape.map((_, axis) => own[axes.indexOf(axis)] ?? 0))),
      );

      const starts = shape.map((extent) => random.below(extent));
      const steps = shape.map(() => 1 + random.below(3));
      const sizes = shape.map(
        (extent, axis) => 1 + Math.floor((extent - 1 - (starts[axis] ?? 0)) / (steps[axis] ?? 1)),
      );
      const part = await device.run(slice({ x: spec, starts, sizes, steps }), { x: x.array });
      expect([...toNumbers(part.out)], text).toEqual(
        coordinates(sizes).map((own) =>
          at(own.map((index, axis) => (starts[axis] ?? 0) + index * (steps[axis] ?? 1))),
        ),
      );

      const [before, after] = [shape.map(() => random.below(3)), shape.map(() => random.below(4))];
      const padded = await device.run(pad({ x: spec, before, after, value: 7 }), { x: x.array });
      const whole = shape.map((extent, axis) => extent + (before[axis] ?? 0) + (after[axis] ?? 0));
      expect([...toNumbers(padded.out)], text).toEqual(
        coordinates(whole).map((own) => {
          const inner = own.map((index, axis) => index - (before[axis] ?? 0));
          const isInner = inner.every((index, axis) => index >= 0 && index < (shape[axis] ?? 0));
          return isInner ? at(inner) : 7;
        }),
      );
    }
  });

  test("arrays one after the other", async () => {
    for (const axis of [0, 1]) {
      const shapes =
        axis === 0
          ? [
              [3, 50],
              [0, 50],
              [4, 50],
            ]
          : [
              [6, 9],
              [6, 40],
              [6, 1],
            ];
      const [a, b, c] = shapes.map((shape, index) => wholeNumbers(f32, shape, index));
      if (a === undefined || b === undefined || c === undefined) throw new Error("three arrays");
      const spec = (name: string) =>
        tensor(f32, axis === 0 ? [dim(name), dim("shared")] : [dim("shared"), dim(name)]);
      const op = concatenate({ parts: { a: spec("na"), b: spec("nb"), c: spec("nc") }, axis });
      const { out } = await device.run(op, { a: a.array, b: b.array, c: c.array });
      const rows = axis === 0 ? 1 : 6;
      const expected = Array.from({ length: rows }, (_, row) =>
        [a, b, c].flatMap(({ values }) => {
          const width = values.length / rows;
          return values.slice(row * width, (row + 1) * width);
        }),
      ).flat();
      expect([...toNumbers(out)]).toEqual(expected);
    }
  });

  test("rows by number, along any axis", async () => {
    const table = wholeNumbers(bf16, [9, 70], 1);
    const chosen = [3, 0, 8, 8, 1, 2];
    const indices = fromNumbers(i32, [2, 3], chosen);
    const op = gather({ x: tensor(bf16, [v, d]), indices: tensor(i32, [n, 3]) });
    const { out } = await device.run(op, { x: table.array, indices });
    expect(out.shape).toEqual([2, 3, 70]);
    expect([...toNumbers(out)]).toEqual(
      chosen.flatMap((row) => table.values.slice(row * 70, (row + 1) * 70)),
    );
    const cube = wholeNumbers(f32, [3, 5, 4], 2);
    const along = gather({ x: tensor(f32, [v, d, 4]), indices: tensor(i64, [n]), axis: 1 });
    const columns = await device.run(along, {
      x: cube.array,
      indices: fromNumbers(i64, [2], [4, 1]),
    });
    expect([...toNumbers(columns.out)]).toEqual(
      coordinates([3, 2, 4]).map(([i = 0, j = 0, k = 0]) => {
        return cube.values[placeOf([3, 5, 4], [i, [4, 1][j] ?? 0, k])] ?? NaN;
      }),
    );
  });

  test("rows combined into others", async () => {
    const chosen = [2, 0, 2, 2, 1];
    const updates = wholeNumbers(f32, [5, 33], 1);
    const op = scatter({
      out: tensor(f32, [v, d]),
      indices: tensor(i32, [n]),
      combine: "add",
      deterministic: false,
    });
    const start = wholeNumbers(f32, [4, 33], 2);
    const { out } = await device.run(op, {
      indices: fromNumbers(i32, [5], chosen),
      updates: updates.array,
      out: start.array,
    });
    const expected = [...start.values];
    for (const [index, row] of chosen.entries())
      for (let column = 0; column < 33; column += 1)
        expected[row * 33 + column] =
          (expected[row * 33 + column] ?? NaN) + (updates.values[index * 33 + column] ?? NaN);
    expect([...toNumbers(out)]).toEqual(expected);
  });
});

test("gathers wait for the kernel before them ahead of any load", () => {
  const op = gather({ x: tensor(bf16, [v, d]), indices: tensor(i32, [n]) });
  const [launch] = op.plan({ v: 9, d: 64, n: 5 }, targets.sm_90a).launches;
  const { ptx = "" } = launch === undefined ? {} : compileAhead(launch.kernel, targets.sm_90a);
  const [waits = -1, loads] = ["griddepcontrol.wait", "ld.global"].map((text) => ptx.indexOf(text));
  expect(waits).toBeGreaterThan(0);
  expect(loads).toBeGreaterThan(waits);
});

test("an index outside its axis stops the kernel", async () => {
  const device = await open("simulator");
  const op = gather({ x: tensor(f32, [v]), indices: tensor(i32, [n]) });
  const x = fromNumbers(f32, [3], [1, 2, 3]);
  const indices = fromNumbers(i32, [1], [3]);
  await expect(device.run(op, { x, indices })).rejects.toThrow("TW3005");
  device.dispose();
});

test("mistakes are reported", () => {
  const x = tensor(f32, [v, d]);
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9902", () => permute({ x, permutation: [0] })],
    ["TW9902", () => permute({ x, permutation: [0, 0] })],
    ["TW9902", () => permute({ x: f32 as never, permutation: [0] })],
    ["TW9902", () => slice({ x, starts: [0], sizes: [1, 1] })],
    ["TW9902", () => slice({ x, starts: [0, 0], sizes: [1] })],
    ["TW9902", () => slice({ x, starts: [0, 0], sizes: [1, 1], steps: [0, 1] })],
    ["TW9902", () => slice({ x, starts: [0, 0], sizes: [4, 1] }).plan({ v: 3, d: 5 })],
    ["TW9902", () => pad({ x, before: [0, -1], after: [0, 0] })],
    ["TW9902", () => concatenate({ parts: {} })],
    ["TW9902", () => concatenate({ parts: { a: x, b: tensor(f32, [v, n]) } })],
    ["TW9902", () => concatenate({ parts: { a: x }, axis: 2 })],
    ["TW9901", () => gather({ x, indices: tensor(f32, [n]) as never })],
    [
      "TW9902",
      () => gather({ x: tensor(f32, [v, d], { strides: [1, v] }), indices: tensor(i32, [n]) }),
    ],
    [
      "TW9901",
      () => scatter({ out: tensor(bool, [v, d]), indices: tensor(i32, [n]), combine: "add" }),
    ],
    ["TW9904", () => scatter({ out: x, indices: tensor(i32, [n]), combine: "mul" as never })],
    [
      "TW9902",
      () =>
        scatter({ out: x, indices: tensor(i32, [n]), combine: "set" }).plan({ v: 0, d: 3, n: 1 }),
    ],
    ["TW1033", () => gather({ x, ids: tensor(i32, [n]) } as never)],
  ];
  for (const [code, make] of refused) expect(codeOf(make), String(make)).toBe(code);
});
