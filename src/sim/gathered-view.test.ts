import { describe, expect, test } from "vitest";
import { findingsOf, runKernel } from "../../test/simulation.ts";
import { bool, f32, i32, i64 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { all, tensor, full, iota, kernel, scalar, slice, smem } from "../lang/index.ts";
import { Random } from "../support/random.ts";
import { coincides } from "./aliased-elements.ts";

const { expectFinding } = findingsOf(import.meta.url);

const list = (array: HostArray | undefined): readonly number[] =>
  array === undefined ? [] : [...toNumbers(array)];
const draw = (count: number, from: (index: number) => number): readonly number[] =>
  Array.from({ length: count }, (_, index) => from(index));

describe("elements picked by index tiles", () => {
  test("rows, columns and single elements are where the indices say", async () => {
    const random = new Random(5);
    const numbers = draw(6 * 7, (index) => index);
    const ids = draw(5, () => random.below(6));
    const columns = draw(5, () => random.below(7));
    const k = kernel(
      {
        name: "rows",
        inputs: { x: tensor(f32, [6, 7]), ids: tensor(i32, [5]), columns: tensor(i64, [5]) },
        outputs: {
          rows: tensor(f32, [5, 7]),
          across: tensor(f32, [2, 5]),
          each: tensor(f32, [5]),
          table: tensor(f32, [5, 5]),
        },
      },
      ({ x, ids, columns, rows, across, each, table }) => {
        const [row, column] = [ids.load(), columns.load()];
        rows.store(x.at(row).load());
        across.store(x.at(slice(5, 2), column).load({ fill: -1 }));
        each.store(x.at(row, column).load());
        table.store(x.at(row.expand({ axis: 1 }), column).load());
      },
    );
    const { findings, results } = await runKernel(k, {
      x: fromNumbers(f32, [6, 7], numbers),
      ids: fromNumbers(i32, [5], ids),
      columns: fromNumbers(i64, [5], columns),
    });
    expect(findings).toEqual([]);
    const at = (row: number, column: number): number => (row < 6 ? row * 7 + column : -1);
    expect(list(results.rows)).toEqual(ids.flatMap((row) => draw(7, (column) => at(row, column))));
    expect(list(results.across)).toEqual(
      [5, 6].flatMap((row) => columns.map((column) => at(row, column))),
    );
    expect(list(results.each)).toEqual(ids.map((row, index) => at(row, columns[index] ?? 0)));
    expect(list(results.table)).toEqual(
      ids.flatMap((row) => columns.map((column) => at(row, column))),
    );
  });

  test("axes of index tiles stand where the first of them stood", async () => {
    const k = kernel(
      {
        name: "between",
        inputs: { x: tensor(f32, [2, 3, 4]), ids: tensor(i32, [2, 2]) },
        outputs: { out: tensor(f32, [2, 2, 2, 4]), ends: tensor(f32, [2, 2, 3]) },
      },
      ({ x, ids, out, ends }) => {
        out.store(x.at(all, ids.load()).load());
        ends.store(x.at(ids.load().rem(2), all, ids.load()).load());
      },
    );
    const ids = [2, 0, 1, 1];
    const { results } = await runKernel(k, {
      x: fromNumbers(
        f32,
        [2, 3, 4],
        draw(24, (index) => index),
      ),
      ids: fromNumbers(i32, [2, 2], ids),
    });
    expect(list(results.out)).toEqual(
      [0, 1].flatMap((i) => ids.flatMap((j) => draw(4, (k) => i * 12 + j * 4 + k))),
    );
    expect(list(results.ends)).toEqual(
      ids.flatMap((index) => draw(3, (j) => (index % 2) * 12 + j * 4 + index)),
    );
  });

  test("a mask leaves elements alone, whatever their indices", async () => {
    const k = kernel(
      {
        name: "masked",
        inputs: { ids: tensor(i32, [4]), keep: tensor(bool, [4]) },
        outputs: { out: tensor(i32, [4]) },
        inouts: { state: tensor(i32, [4]) },
      },
      ({ ids, keep, out, state }) => {
        const [own, where] = [ids.load(), keep.load()];
        out.store(ids.at(own).load({ where, fill: 7 }));
        state.at(own).store(own.add(10), { where });
      },
    );
    const { findings, results } = await runKernel(k, {
      ids: fromNumbers(i32, [4], [0, 3, 4, -1]),
      keep: fromNumbers(bool, [4], [1, 1, 0, 0]),
      state: fromNumbers(i32, [4], [1, 2, 3, 4]),
    });
    expect(findings).toEqual([]);
    expect(list(results.out)).toEqual([0, -1, 7, 7]);
    expect(list(results.state)).toEqual([10, 2, 3, 13]);
  });

  test("an index that is not there is a mistake, in either memory", async () => {
    const make = (isShared: boolean) =>
      kernel(
        {
          name: "indices",
          inputs: { ids: tensor(i32, [4]) },
          outputs: { out: tensor(i32, [4]) },
          scratch: { buffer: smem(i32, [4]) },
        },
        ({ ids, out, buffer }) => {
          const own = ids.load();
          buffer.store(own);
          out.store((isShared ? buffer : ids).at(own).load()); // picked load
        },
      );
    for (const [isShared, name] of [
      [false, "ids"],
      [true, "buffer"],
    ] as const)
      await expectFinding(
        make(isShared),
        { ids: fromNumbers(i32, [4], [0, 3, 4, 1]) },
        {
          code: "TW3005",
          marks: ["picked load"],
          text: new RegExp(`index 4 on axis 0 of ${name}, which has 4[^]*element \\[2\\]`),
        },
      );
  });

  test("an element that a store writes twice is a mistake, and an update counts twice", async () => {
    const make = (isAtomic: boolean) =>
      kernel(
        { name: "twice", inputs: { ids: tensor(i32, [4]) }, inouts: { out: tensor(i32, [4]) } },
        ({ ids, out }) => {
          const own = ids.load();
          if (isAtomic) out.at(own).atomicAdd(own);
          else out.at(own).store(own); // picked store
        },
      );
    const given = {
      ids: fromNumbers(i32, [4], [2, 0, 2, 3]),
      out: fromNumbers(i32, [4], [0, 0, 0, 0]),
    };
    await expectFinding(make(false), given, {
      code: "TW3023",
      marks: ["picked store"],
      text: /element 2 of out twice[^]*\[0\] and \[2\]/,
    });
    const added = await runKernel(make(true), given);
    expect(added.findings).toEqual([]);
    expect(list(added.results.out)).toEqual([0, 0, 4, 3]);
  });

  test("so it is where an array overlaps itself by its strides", async () => {
    const make = (way: "store" | "masked" | "apart" | "update") =>
      kernel(
        { name: "overlapping", inouts: { out: tensor(i32, [3, 4], { strides: [2, 1] }) } },
        ({ out }) => {
          const ones = full(i32, [3, 4], 1);
          const own = iota(i32, [3, 4], { axis: 1 });
          if (way === "update") out.atomicAdd(ones);
          else if (way === "store") out.store(ones); // whole store
          else out.store(ones, { where: own.lt(way === "apart" ? 2 : 3) }); // part of it
        },
      );
    const given = { out: fromNumbers(i32, [12], new Array<number>(12).fill(0)) };
    const text = /element 2 of out twice[^]*\[0, 2\] and \[1, 0\]/;
    await expectFinding(make("store"), given, { code: "TW3023", marks: ["whole store"], text });
    await expectFinding(make("masked"), given, { code: "TW3023", marks: ["part of it"], text });
    const [apart, updated] = [
      await runKernel(make("apart"), given),
      await runKernel(make("update"), given),
    ];
    expect([...apart.findings, ...updated.findings]).toEqual([]);
    expect(list(apart.results.out).slice(0, 8)).toEqual([1, 1, 1, 1, 1, 1, 0, 0]);
    expect(list(updated.results.out).slice(0, 8)).toEqual([1, 1, 2, 2, 2, 2, 1, 1]);
  });

  test("whether strides lay elements over each other is found by trying distances", () => {
    const random = new Random(11);
    for (let round = 0; round < 500; round += 1) {
      const shape = Array.from({ length: 1 + random.below(4) }, () => 1 + random.below(4));
      const strides = shape.map(() => random.below(13));
      const places = shape.reduce<readonly number[]>(
        (before, extent, axis) =>
          before.flatMap((place) =>
            Array.from({ length: extent }, (_, at) => place + at * (strides[axis] ?? 0)),
          ),
        [0],
      );
      const expected = new Set(places).size < places.length;
      expect(coincides(shape, strides), `${shape.join()} by ${strides.join()}`).toBe(expected);
    }
  });

  test("a window must be there, whatever a mask leaves of it", async () => {
    const k = kernel(
      { name: "window", grid: { i: 3 }, outputs: { out: tensor(i32, [2, 4]) } },
      ({ i, out }) => {
        out.at(i).store(i, { where: i.lt(2) }); // masked store
      },
    );
    await expectFinding(k, {}, { code: "TW3005", marks: ["masked store"], text: /index 2/ });
  });

  test.each([
    [-1, /has those from 1 to 2\n.*\n.*indices from 1 to 2/],
    [3, /has 1\n.*\n.*indices from 0 to 0/],
    [4, /has none there/],
  ])("an index where a window from %i on overhangs", async (start, text) => {
    const k = kernel(
      { name: "overhangs", inputs: { at: scalar(i32) }, inouts: { out: tensor(i32, [4]) } },
      ({ at, out }) => {
        const window = out.at(slice(start, 3));
        window.at(at).store(1); // overhanging store
      },
    );
    const given = { at: start < 0 ? 0 : 1, out: fromNumbers(i32, [4], [0, 0, 0, 0]) };
    await expectFinding(k, given, { code: "TW3005", marks: ["overhanging store"], text });
  });
});
