/**
 * Products of rows in groups against float64. Inputs are small whole numbers, whose sums every format holds exactly, so results
 * are compared as they are.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../../device/device.ts";
import { bf16, f32, f8e4m3fn, i32, i8 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { array, dim } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { codeOf, wholeNumbers } from "../../../test/support/library-checks.ts";
import type { MatmulConfiguration } from "../matmul/configuration.ts";
import { raggedDot } from "./ragged-dot.ts";
import { raggedOuter } from "./ragged-outer.ts";

const wide: MatmulConfiguration = {
  ...{ kernel: "persistent", multipliers: 2, columns: 64, stages: 2 },
  ...{ schedule: "tiles", turned: false, cluster: 1 },
};
const turned: MatmulConfiguration = { ...wide, multipliers: 1, columns: 8, turned: true };
const plain: MatmulConfiguration = { kernel: "plain", rows: 64, columns: 32, depth: 16, split: 1 };

interface DotCase {
  readonly name: string;
  readonly groups: readonly number[];
  readonly sizes: readonly [m: number, n: number, k: number];
  readonly dtype?: DType<"bf16" | "f32" | "f8e4m3fn" | "i8">;
  /** Whether the matrices lie by columns. */
  readonly byColumns?: boolean;
  readonly epilogue?: boolean;
  readonly configuration?: MatmulConfiguration;
}

const cases: readonly DotCase[] = [
  { name: "cut tiles", groups: [130, 3, 60], sizes: [193, 72, 40], configuration: wide },
  {
    name: "empty groups, and rows of nobody",
    groups: [0, 65, 0, 1, 0],
    sizes: [90, 64, 16],
    configuration: wide,
  },
  { name: "turned", groups: [1, 0, 9, 8], sizes: [20, 80, 24], configuration: turned },
  { name: "plain", groups: [70, 0, 1, 5], sizes: [80, 33, 17], configuration: plain },
  { name: "f32, plain", groups: [3, 4], sizes: [9, 20, 12], dtype: f32 },
  {
    name: "by columns, with an epilogue",
    groups: [64, 20],
    sizes: [84, 64, 24],
    byColumns: true,
    epilogue: true,
    configuration: wide,
  },
  {
    name: "FP8, by columns",
    groups: [5, 40],
    sizes: [50, 32, 48],
    dtype: f8e4m3fn,
    byColumns: true,
    configuration: turned,
  },
  { name: "i8, turned first", groups: [5, 40], sizes: [50, 32, 48], dtype: i8 },
  { name: "nobody has a row", groups: [0, 0], sizes: [10, 16, 16], configuration: wide },
  { name: "what is chosen", groups: [17, 0, 2], sizes: [20, 40, 32] },
];

function given({ groups, sizes: [m, n, k], dtype = bf16, byColumns }: DotCase) {
  const a = wholeNumbers(dtype, [m, k], 1);
  const b = wholeNumbers(dtype, [groups.length, k, n], 2);
  const turnedValues = Array.from({ length: groups.length * k * n }, (_, index) => {
    const [group, rest] = [Math.floor(index / (k * n)), index % (k * n)];
    return b.values[group * k * n + (rest % k) * n + Math.floor(rest / k)] ?? NaN;
  });
  return {
    ...{ a, b },
    lying: byColumns === true ? fromNumbers(dtype, [groups.length, k, n], turnedValues) : b.array,
    groupSizes: fromNumbers(i32, [groups.length], groups),
  };
}

async function checkDot(device: Device, one: DotCase): Promise<void> {
  const { groups, sizes, dtype = bf16, byColumns, epilogue, configuration } = one;
  const [m, n, k] = sizes;
  const { a, b, lying, groupSizes } = given(one);
  const [rows, columns, depth, count] = [dim("m"), dim("n"), dim("k"), dim("g")];
  const op = raggedDot({
    a: array(dtype, [rows, depth]),
    b: array(
      dtype,
      [count, depth, columns],
      byColumns === true ? { strides: [depth.mul(columns), 1, depth] } : {},
    ),
    out: dtype === i8 ? i32 : f32,
    ...(dtype === f32 && { precision: "ieee" as const }),
    ...(dtype === f8e4m3fn && { accumulation: "fast" as const }),
    ...(epilogue === true && {
      inputs: { bias: array(f32, [columns]) },
      epilogue: ({ sums, bias }: never) =>
        (sums as never as { add: (x: unknown) => never }).add(bias),
    }),
    ...(configuration !== undefined && { configuration }),
  } as never);
  const bias = wholeNumbers(f32, [n], 5);
  const results = await device.run(op, {
    ...{ a: a.array, b: lying, groupSizes },
    ...(epilogue === true && { bias: bias.array }),
  } as never);
  const expected: number[] = [];
  const owner = groups.flatMap((size, group) => Array.from({ length: size }, () => group));
  for (let row = 0; row < m; row += 1)
    for (let column = 0; column < n; column += 1) {
      const group = owner[row];
      let sum = group === undefined || epilogue !== true ? 0 : (bias.values[column] ?? NaN);
      for (let i = 0; group !== undefined && i < k; i += 1)
        sum += (a.values[row * k + i] ?? NaN) * (b.values[(group * k + i) * n + column] ?? NaN);
      expected.push(sum);
    }
  expect([...toNumbers((results as never as { out: never }).out)]).toEqual(expected);
}

async function checkOuter(
  device: Device,
  groups: readonly number[],
  m: number,
  k: number,
  n: number,
) {
  const [a, b] = [wholeNumbers(bf16, [m, k], 1), wholeNumbers(bf16, [m, n], 2)];
  const { out } = await device.run(raggedOuter({ a: bf16, b: bf16, out: f32 }), {
    ...{ a: a.array, b: b.array },
    groupSizes: fromNumbers(i32, [groups.length], groups),
  });
  const expected: number[] = [];
  let start = 0;
  for (const size of groups) {
    for (let i = 0; i < k; i += 1)
      for (let j = 0; j < n; j += 1) {
        let sum = 0;
        for (let row = start; row < start + size; row += 1)
          sum += (a.values[row * k + i] ?? NaN) * (b.values[row * n + j] ?? NaN);
        expected.push(sum);
      }
    start += size;
  }
  expect([...toNumbers(out)]).toEqual(expected);
}

describe("on the simulator", () => {
  let device: Device;
  beforeAll(async () => {
    device = await open("simulator");
  });
  afterAll(() => {
    device.dispose();
  });
  test.each(cases)("$name", (one) => checkDot(device, one));
  test("the products of rows, by groups", () => checkOuter(device, [33, 0, 1, 40], 80, 24, 70));
});

describe("on the emulator", () => {
  const chosen = ["empty groups, and rows of nobody", "turned", "plain"];
  let device: Device;
  beforeAll(async () => {
    device = await open("emulator");
  });
  afterAll(() => {
    device.dispose();
  });
  test.each(cases.filter(({ name }) => chosen.includes(name)))("$name", (one) =>
    checkDot(device, one),
  );
  test("the products of rows, by groups", () => checkOuter(device, [33, 0, 1], 40, 24, 40));
});

test("twenty schedules give the same bits, and nothing is found", async () => {
  const { a, b, groupSizes } = given({ name: "", groups: [70, 0, 3], sizes: [80, 64, 48] });
  const op = raggedDot({ a: bf16, b: bf16, configuration: wide });
  const results = new Set<string>();
  for (let seed = 0; seed < 20; seed += 1) {
    using device = await open("simulator", {
      schedule: seed % 2 === 0 ? "random" : "adversarial",
      seed,
    });
    const { out } = await device.run(op, { a: a.array, b: b.array, groupSizes } as never);
    results.add(Array.from(toNumbers(out)).join());
  }
  expect(results.size).toBe(1);
});

test("groups of more rows than there are stop the kernel", async () => {
  using device = await open("simulator");
  const { a, b } = given({ name: "", groups: [5, 5], sizes: [8, 16, 16] });
  const run = device.run(raggedDot({ a: bf16, b: bf16 }), {
    ...{ a: a.array, b: b.array },
    groupSizes: fromNumbers(i32, [2], [5, 5]),
  } as never);
  await expect(run).rejects.toThrow("the groups of a ragged product have no more rows");
});

describe("what cannot be done is refused", () => {
  const [m, n, k, g] = [dim("m"), dim("n"), dim("k"), dim("g")];
  const refusals: readonly [name: string, code: string, make: () => unknown][] = [
    ["two formats", "TW9901", () => raggedDot({ a: bf16, b: f32 })],
    ["precision unsaid", "TW9903", () => raggedDot({ a: f32, b: f32 })],
    ["one matrix", "TW9902", () => raggedDot({ a: bf16, b: array(bf16, [k, n]) })],
    ["a batch of rows", "TW9902", () => raggedDot({ a: array(bf16, [g, m, k]), b: bf16 })],
    [
      "two sizes along k",
      "TW9902",
      () => raggedDot({ a: array(bf16, [m, 8]), b: array(bf16, [g, 16, n]) }),
    ],
    [
      "sizes of another format",
      "TW9901",
      () => raggedDot({ a: bf16, b: bf16, groupSizes: f32 as never }),
    ],
    [
      "sizes of other groups",
      "TW9902",
      () => raggedDot({ a: bf16, b: bf16, groupSizes: array(i32, [7]) }),
    ],
    [
      "an input of groups",
      "TW9902",
      () =>
        raggedDot({
          a: bf16,
          b: bf16,
          inputs: { bias: array(f32, [g, m, n]) },
          epilogue: ({ sums }) => sums.cast(bf16),
        }),
    ],
    [
      "a split",
      "TW9904",
      () =>
        raggedDot({ a: bf16, b: bf16, configuration: { ...wide, schedule: "split" } }).plan({
          m: 8,
          n: 8,
          k: 8,
          g: 2,
        }),
    ],
    [
      "an outer product of columns",
      "TW9902",
      () => raggedOuter({ a: array(bf16, [m, k], { strides: [1, m] }), b: bf16 }),
    ],
    [
      "an outer product of other rows",
      "TW9902",
      () => raggedOuter({ a: array(bf16, [8, k]), b: array(bf16, [9, n]) }),
    ],
  ];
  test.each(refusals)("%s", (_, code, make) => {
    expect(codeOf(make)).toBe(code);
  });
});
