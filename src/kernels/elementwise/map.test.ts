/** Elementwise operations against the same function on numbers, over shapes, strides and formats. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../../device/device.ts";
import { bf16, f32, f64, i32, i8 } from "../../formats/dtype.ts";
import { toNumbers } from "../../formats/hostarray.ts";
import { tensor, dim, iota, scalar } from "../../lang/index.ts";
import { compileAhead } from "../../lower/compile-ahead.ts";
import { open } from "../../runtime/open.ts";
import { targets } from "../../targets/target.ts";
import { Random } from "../../support/random.ts";
import { codeOf, wholeNumbers } from "../../../test/support/library-checks.ts";
import { cast, copy, fill } from "./cast.ts";
import { map } from "./map.ts";

const [b, m, n] = [dim("b"), dim("m"), dim("n")];

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(kind);
  });
  afterAll(() => {
    device.dispose();
  });

  test("arrays of any size, one after the other", async () => {
    const axpy = map({ x: f32, y: f32, factor: scalar(f32) }, ({ x, y, factor }) => ({
      out: x.mul(factor).add(y),
      less: x.sub(y).cast(bf16),
    }));
    for (const count of kind === "simulator" ? [0, 1, 5, 127, 1000, 4100] : [0, 5, 1000]) {
      const [x, y] = [wholeNumbers(f32, [count], 1), wholeNumbers(f32, [count], 2)];
      const { out, less } = await device.run(axpy, {
        x: x.array,
        y: y.array,
        factor: 3,
      });
      const at = (index: number) => [x.values[index] ?? NaN, y.values[index] ?? NaN] as const;
      const expected = (of: (x: number, y: number) => number) =>
        Float64Array.from({ length: count }, (_, index) => of(...at(index)));
      expect(toNumbers(out)).toEqual(expected((one, other) => one * 3 + other));
      expect(toNumbers(less)).toEqual(expected((one, other) => one - other));
    }
  });

  test("arrays that repeat along axes", async () => {
    const sum = map(
      {
        x: tensor(f32, [b, m, n]),
        row: tensor(f32, [n]),
        column: tensor(i32, [m, 1]),
        one: tensor(f32, [1]),
      },
      ({ x, row, column, one }) => ({
        out: x.add(row.mul(10)).add(column.cast(f32).mul(100)).add(one),
      }),
    );
    const sizes =
      kind === "simulator"
        ? [
            [2, 3, 5],
            [1, 9, 130],
            [3, 1, 1],
            [2, 70, 64],
          ]
        : [[2, 9, 40]];
    for (const [batches = 0, rows = 0, columns = 0] of sizes) {
      const x = wholeNumbers(f32, [batches, rows, columns], 1);
      const row = wholeNumbers(f32, [columns], 2);
      const column = wholeNumbers(i32, [rows, 1], 3);
      const one = wholeNumbers(f32, [1], 4);
      const given = {
        x: x.array,
        row: row.array,
        column: column.array,
        one: one.array,
      };
      const { out } = await device.run(sum, given);
      const expected = x.values.map((value, index) => {
        const [i, j] = [Math.floor(index / columns) % rows, index % columns];
        return (
          value +
          10 * (row.values[j] ?? NaN) +
          100 * (column.values[i] ?? NaN) +
          (one.values[0] ?? NaN)
        );
      });
      expect([...toNumbers(out)]).toEqual(expected);
    }
  });

  test("inputs and results by columns", async () => {
    const turned = map(
      { x: tensor(bf16, [m, n], { strides: [1, m] }), y: tensor(bf16, [m, n]) },
      ({ x, y }) => ({ byRows: x.add(y), byColumns: x.sub(y) }),
      { outputs: { byColumns: tensor(bf16, [m, n], { strides: [1, m] }) } },
    );
    const sizes =
      kind === "simulator"
        ? [
            [3, 7],
            [64, 64],
            [72, 136],
            [130, 33],
          ]
        : [[72, 66]];
    for (const [rows = 0, columns = 0] of sizes) {
      const x = wholeNumbers(bf16, [columns, rows], 1);
      const y = wholeNumbers(bf16, [rows, columns], 2);
      const given = { x: x.array, y: y.array };
      const { byRows, byColumns } = await device.run(turned, given, {
        dimensions: { m: rows, n: columns },
      });
      const at = (i: number, j: number, sign: number): number =>
        (x.values[j * rows + i] ?? NaN) + sign * (y.values[i * columns + j] ?? NaN);
      const count = rows * columns;
      expect(toNumbers(byRows)).toEqual(
        Float64Array.from({ length: count }, (_, at0) =>
          at(Math.floor(at0 / columns), at0 % columns, 1),
        ),
      );
      expect(toNumbers(byColumns).map((value) => value + 0)).toEqual(
        Float64Array.from(
          { length: count },
          (_, at0) => at(at0 % rows, Math.floor(at0 / rows), -1) + 0,
        ),
      );
    }
  });

  test("views of a device", async () => {
    const [stride, across] = [dim("stride"), dim("across")];
    const doubled = map({ x: tensor(f32, [m, n], { strides: [stride, across] }) }, ({ x }) => ({
      out: x.mul(2),
    }));
    const whole = wholeNumbers(f32, [6, 20], 1);
    const x = await device.upload(whole.array);
    const { out } = await device.run(doubled, { x: x.slice(4, 13, { axis: 1 }) });
    const { out: turned } = await device.run(doubled, {
      x: x.slice(4, 13, { axis: 1 }).transpose(),
    });
    const at = (i: number, j: number): number => 2 * (whole.values[i * 20 + j + 4] ?? NaN);
    expect([...toNumbers(out)]).toEqual(
      Array.from({ length: 54 }, (_, index) => at(Math.floor(index / 9), index % 9)),
    );
    expect([...toNumbers(turned)]).toEqual(
      Array.from({ length: 54 }, (_, index) => at(index % 6, Math.floor(index / 6))),
    );
    x.dispose();
  });

  test("cast, copy, fill", async () => {
    const x = wholeNumbers(f32, [3, 50], 5);
    const bytes = await device.run(cast({ x: tensor(f32, [m, n]), out: i8 }), {
      x: x.array,
    });
    expect([...toNumbers(bytes.out)]).toEqual(x.values);
    const kept = await device.run(
      copy({
        x: tensor(f32, [m, n]),
        out: tensor(f32, [m, n], { strides: [1, m] }),
      }),
      {
        x: x.array,
      },
    );
    expect(toNumbers(kept.out)[1]).toBe(x.values[50]);
    const sevens = await device.run(
      fill({ out: tensor(bf16, [m, n]), value: 7 }),
      {},
      { dimensions: { m: 4, n: 9 } },
    );
    expect(new Set(toNumbers(sevens.out))).toEqual(new Set([7]));
    expect(sevens.out.shape).toEqual([4, 9]);
  });
});

test("random shapes, ranks and strides on the simulator", async () => {
  const device = await open("simulator");
  const seed = 20;
  const random = new Random(seed);
  for (let round = 0; round < 12; round += 1) {
    const rank = 1 + random.below(4);
    const shape = Array.from(
      { length: rank },
      () => 1 + random.below(random.below(3) === 0 ? 70 : 6),
    );
    const order = shape.map((_, axis) => axis);
    for (let last = rank - 1; last > 0; last -= 1) {
      const other = random.below(last + 1);
      [order[last], order[other]] = [order[other] ?? 0, order[last] ?? 0];
    }
    const dims = shape.map((_, axis) => dim(`d${axis}`));
    const strides = shape.map(() => 1);
    let step = 1;
    for (const axis of order) {
      strides[axis] = step;
      step *= shape[axis] ?? 1;
    }
    const repeats = shape.map(() => random.below(3) === 0);
    const x = wholeNumbers(f64, [step], round);
    const y = wholeNumbers(
      f64,
      shape.map((extent, axis) => (repeats[axis] ? 1 : extent)),
      round + 1,
    );
    const op = map(
      {
        x: tensor(f64, dims, { strides }),
        y: tensor(
          f64,
          dims.map((each, axis) => (repeats[axis] ? 1 : each)),
        ),
      },
      ({ x: left, y: right }) => ({ out: left.mul(8).add(right) }),
    );
    const sizes = Object.fromEntries(shape.map((extent, axis) => [`d${axis}`, extent]));
    const { out } = await device.run(op, { x: x.array, y: y.array }, { dimensions: sizes });
    const expected = Array.from({ length: step }, (_, index) => {
      let [rest, place, other, factor] = [index, 0, 0, 1];
      for (let axis = rank - 1; axis >= 0; axis -= 1) {
        const extent = shape[axis] ?? 1;
        const own = rest % extent;
        rest = Math.floor(rest / extent);
        place += own * (strides[axis] ?? 0);
        if (repeats[axis]) continue;
        other += own * factor;
        factor *= extent;
      }
      return 8 * (x.values[place] ?? NaN) + (y.values[other] ?? NaN);
    });
    expect(
      [...toNumbers(out)],
      `seed ${seed}, round ${round}, shape [${shape.join(", ")}]`,
    ).toEqual(expected);
  }
  device.dispose();
});

test("axes that all arrays go through evenly are one; kernels are shared by sizes alike", () => {
  const op = map({ x: tensor(bf16, [b, m, n]), bias: tensor(bf16, [n]) }, ({ x, bias }) => ({
    out: x.add(bias),
  }));
  const [first] = op.kernels({ b: 4, m: 512, n: 4096 });
  expect(first?.kernel.grid.length).toBe(2);
  expect(op.kernels({ b: 2, m: 512, n: 4096 })[0]).toBe(first);
  const plain = map({ x: tensor(bf16, [b, m, n]) }, ({ x }) => ({
    out: x.neg(),
  }));
  expect(plain.kernels({ b: 4, m: 512, n: 4096 })[0]?.kernel.grid.length).toBe(1);
  expect(plain.plan({ b: 16, m: 512, n: 4096 }).cost().bytes.gmem).toEqual({
    read: 2 * 16 * 512 * 4096,
    written: 2 * 16 * 512 * 4096,
  });
});

test("mistakes are reported", () => {
  const refused: readonly (readonly [string, () => unknown])[] = [
    [
      "TW9902",
      () =>
        map({ x: tensor(f32, [m]), y: tensor(f32, [n]) }, ({ x, y }) => ({
          out: x.add(y),
        })),
    ],
    ["TW9902", () => map({ x: 5 as never }, ({ x }) => ({ out: x as never }))],
    ["TW9902", () => map(5 as never, () => ({}))],
    [
      "TW9902",
      () =>
        map({ x: tensor(f32, [m, n]) }, ({ x }) => ({ out: x.neg() }), {
          outputs: { out: tensor(f32, [n]) },
        }),
    ],
    ["TW9905", () => map({ x: f32 }, ({ x }) => ({ out: x.div(x.sum()) }))],
    ["TW9905", () => map({ x: f32 }, ({ x }) => ({ out: x.add(iota(f32, [4], { axis: 0 })) }))],
    ["TW9905", () => map({ x: f32 }, ({ x }) => ({ out: x.reshape([8]) }))],
    ["TW9905", () => map({ x: f32 }, () => ({}))],
    ["TW9905", () => map({ x: f32 }, () => ({ out: 5 as never }))],
    ["TW9905", () => map({ x: f32 }, 5 as never)],
    [
      "TW9905",
      () =>
        map({ x: f32 }, ({ x }) => ({ out: x.neg() }), {
          outputs: { out: tensor(bf16, [n]) },
        }),
    ],
    ["TW1033", () => map({ x: f32 }, ({ x }) => ({ out: x.neg() }), { shape: [n] } as never)],
    ["TW1033", () => cast({ x: f32, to: bf16 } as never)],
    ["TW9902", () => fill({ out: 3 as never, value: 0 })],
    ["TW9902", () => copy({ x: tensor(f32, [m]), out: tensor(f32, [n]) })],
    ["TW9901", () => copy({ x: tensor(f32, [n]), out: tensor(bf16, [n]) as never })],
  ];
  for (const [code, make] of refused) expect(codeOf(make), String(make)).toBe(code);
});

test("lanes have few bytes in flight, more where blocks divide, none of arrays that repeat", () => {
  const columnsOf = (op: { plan: typeof plain.plan }, sizes: object): number =>
    op.plan({ ...sizes } as never, targets.sm_90a).configuration.columns;
  const plain = copy({ x: bf16 });
  const large = { n: 2 ** 27 };
  expect(columnsOf(plain, large)).toBe(8 * 128);
  expect(columnsOf(copy({ x: f32 }) as never, large)).toBe(4 * 128);
  expect(columnsOf(fill({ out: f32, value: 0 }) as never, large)).toBe(8 * 128);
  const biased = map({ x: tensor(bf16, [m, n]), bias: tensor(f32, [n]) }, ({ x, bias }) => ({
    out: x.cast(f32).add(bias).cast(bf16),
  }));
  expect(columnsOf(biased as never, { m: 8192, n: 8192 })).toBe(16 * 128);
  const [launch] = biased.plan({ m: 8192, n: 8192 }, targets.sm_90a).launches;
  const { ptx = "" } = launch === undefined ? {} : compileAhead(launch.kernel, targets.sm_90a);
  expect(ptx.match(/(ld|st)\.global\S*/g)).toEqual([
    ...Array.from({ length: 6 }, () => "ld.global.v4.b32"),
    ...["st.global.v4.b32", "st.global.v4.b32"],
  ]);
});

test("kernels wait for the one before them, and let the next start when they end", () => {
  const [launch] = copy({ x: bf16 }).plan({ n: 2 ** 27 }, targets.sm_90a).launches;
  const { ptx = "" } = launch === undefined ? {} : compileAhead(launch.kernel, targets.sm_90a);
  const [waits, loads] = ["griddepcontrol.wait", "ld.global"].map((text) => ptx.indexOf(text));
  expect(waits).toBeGreaterThan(0);
  expect(loads).toBeGreaterThan(waits ?? NaN);
  expect(ptx).not.toContain("launch_dependents");
});

test("arrays without elements have a plan without launches, whichever axis has none", () => {
  const op = map({ x: tensor(f32, [b, m, n]), y: tensor(f32, [n]) }, ({ x, y }) => ({
    out: x.add(y),
  }));
  for (const [batches, rows, columns] of [
    [3, 0, 2],
    [0, 2, 3],
    [3, 2, 0],
  ] as const)
    expect(op.plan({ b: batches, m: rows, n: columns }, targets.sm_90a).launches).toEqual([]);
});

test("rows that meet a number each are no squares", async () => {
  const scaled = map({ x: tensor(bf16, [m, n]), scale: tensor(f32, [m, 1]) }, ({ x, scale }) => ({
    out: x.cast(f32).mul(scale).cast(bf16),
  }));
  const { configuration } = scaled.plan({ m: 8192, n: 8192 }, targets.sm_90a);
  expect(configuration).toMatchObject({ rows: 1, columns: 16 * 128 });
  const device = await open("emulator");
  const [x, scale] = [wholeNumbers(bf16, [5, 24], 1), wholeNumbers(f32, [5, 1], 2)];
  const { out } = await device.run(scaled, { x: x.array, scale: scale.array });
  expect([...toNumbers(out)]).toEqual(
    [...x.values].map((value, index) => value * (scale.values[Math.floor(index / 24)] ?? NaN)),
  );
  device.dispose();
});
