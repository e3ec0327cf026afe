/**
 * Products of rows in groups against float64. Inputs are small whole numbers, whose sums every format holds exactly, so results
 * are compared as they are.
 */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Device } from "../../device/device.ts";
import { bf16, f32, f8e4m3fn, i32, i8 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import { lower } from "../../lower/stages.ts";
import { printPtx } from "../../ptx/printer.ts";
import { open } from "../../runtime/open.ts";
import { targets } from "../../targets/target.ts";
import { hasPtxas } from "../../../test/ptxas.ts";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { reportOf } from "../../../test/ir-fixtures.ts";
import { wholeNumbers } from "../../../test/support/library-checks.ts";
import { checkDot, checkOuter, raggedInputs } from "../../../test/support/ragged-checks.ts";
import type { DotCase } from "../../../test/support/ragged-checks.ts";
import { notEmulated, scheduleSeeds, usually } from "../../../test/support/sample.ts";
import type { MatmulConfiguration, TiledConfiguration } from "../matmul/configuration.ts";
import { raggedDot } from "./ragged-dot.ts";
import { raggedOuter } from "./ragged-outer.ts";

const wide: MatmulConfiguration = {
  ...{ kernel: "persistent", consumers: 2, columns: 64, stages: 2 },
  ...{ schedule: "tiles", swapAB: false, cluster: 1 },
};
const widest: MatmulConfiguration = { ...wide, columns: 256, schedule: "stream-k" };
const swapAB: MatmulConfiguration = { ...wide, consumers: 1, columns: 8, swapAB: true };
const oneThread = (isSwapped: boolean): TiledConfiguration => ({
  ...{ kernel: "persistent", consumers: 1, columns: 8, stages: 2 },
  ...{ schedule: "tiles", swapAB: isSwapped, cluster: 1 },
});
const plain: MatmulConfiguration = { kernel: "plain", rows: 64, columns: 32, depth: 16, splitK: 1 };

const cases: readonly (DotCase & { readonly processors?: number })[] = [
  { name: "cut tiles", groups: [130, 3, 60], sizes: [193, 72, 40], configuration: wide },
  {
    name: "tiles with rows of one thread alone",
    groups: [60, 130, 3],
    sizes: [193, 72, 200],
    configuration: wide,
  },
  {
    name: "more tiles than processors, some stored in the steps of others that have rows of one thread alone",
    groups: [60, 130, 3, 260],
    sizes: [453, 128, 136],
    // Of 14 tiles two are second ones of their blocks.
    processors: 12,
    configuration: wide,
  },
  {
    name: "the same, the last tiles in parts",
    groups: [60, 130, 3, 260],
    sizes: [453, 128, 136],
    processors: 12,
    configuration: { ...wide, schedule: "stream-k" },
  },
  {
    name: "tiles in parts, with an epilogue",
    groups: [70, 0, 20],
    sizes: [95, 72, 400],
    epilogue: true,
    configuration: { ...wide, schedule: "stream-k" },
  },
  {
    name: "the same in many steps, with an epilogue",
    groups: [70, 20],
    sizes: [90, 16, 2100],
    epilogue: true,
    configuration: wide,
  },
  {
    name: "halves of the columns of the widest tiles",
    groups: [130, 3],
    sizes: [133, 264, 520],
    byColumns: true,
    configuration: widest,
  },
  {
    name: "halves with an epilogue, some of which lie outside",
    groups: [70, 0, 20, 5],
    sizes: [100, 72, 520],
    epilogue: true,
    configuration: widest,
  },
  {
    name: "halves in three parts, one of them of both, groups that end among the rows of a thread",
    groups: [70, 0, 130],
    sizes: [203, 264, 840],
    configuration: widest,
  },
  {
    name: "halves in four parts, with an epilogue",
    groups: [3, 65],
    sizes: [68, 200, 1048],
    epilogue: true,
    byColumns: true,
    configuration: widest,
  },
  {
    name: "empty groups, and rows of nobody",
    groups: [0, 65, 0, 1, 0],
    sizes: [90, 64, 16],
    configuration: wide,
  },
  { name: "A and B swapped", groups: [1, 0, 9, 8], sizes: [20, 80, 24], configuration: swapAB },
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
    configuration: swapAB,
  },
  { name: "i8, transposed first", groups: [5, 40], sizes: [50, 32, 48], dtype: i8 },
  { name: "nobody has a row", groups: [0, 0], sizes: [10, 16, 16], configuration: wide },
  { name: "what is chosen", groups: [17, 0, 2], sizes: [20, 40, 32] },
];

/** By the plain kernel, and on wgmma with tiles that are whole and cut. */
const outerCases = [
  { groups: [33, 0, 1, 40], sizes: [80, 70, 24] },
  { groups: [70, 0, 64, 130], sizes: [270, 136, 72] },
  { groups: [0, 300], sizes: [300, 64, 200] },
] as const;

const emulated = usually(
  [
    ...["tiles with rows of one thread alone", "empty groups, and rows of nobody"],
    "halves in four parts, with an epilogue",
    ...["A and B swapped", "plain"],
  ],
  ["tiles in parts, with an epilogue", "halves of the columns of the widest tiles"],
);

describe("on the simulator", () => {
  let device: Device;
  beforeAll(async () => {
    device = await open("simulator");
  });
  afterAll(() => {
    device.dispose();
  });
  test.each(notEmulated(cases, emulated))("$name", async (one) => {
    if (one.processors === undefined) return checkDot(device, one);
    const { processors } = one;
    const few = await open("simulator", { target: { ...targets.sm_90a, processors } });
    onTestFinished(() => {
      few.dispose();
    });
    return checkDot(few, one);
  });
  test.each(outerCases)("the products of rows, by groups of $groups", (one) =>
    checkOuter(device, one),
  );
});

describe("on the emulator", () => {
  let device: Device;
  beforeAll(async () => {
    device = await open("emulator");
  });
  afterAll(() => {
    device.dispose();
  });
  test.each(cases.filter(({ name }) => emulated.includes(name)))("$name", (one) =>
    checkDot(device, one),
  );
  test("the products of rows, by groups", () =>
    checkOuter(device, { groups: [33, 0, 1], sizes: [40, 40, 24] }));
});

test("what is no number in one group stays there", async () => {
  const device = await open("simulator");
  onTestFinished(() => {
    device.dispose();
  });
  const [m, k, n] = [113, 16, 16];
  const a = wholeNumbers(bf16, [m, k], 1).values;
  const spoilt = a.map((value, index) => {
    const row = Math.floor(index / k);
    return row >= 70 && row < 73 ? NaN : value;
  });
  const outOf = async (values: readonly number[]) => {
    const rows = fromNumbers(bf16, [m, k], values);
    const groupSizes = fromNumbers(i32, [3], [70, 3, 40]);
    const op = raggedOuter({ a: bf16, b: bf16, out: f32 });
    return toNumbers((await device.run(op, { a: rows, b: rows, groupSizes })).out);
  };
  const [wanted, found] = [await outOf(a), await outOf(spoilt)];
  const isSpoilt = (index: number) => Math.floor(index / (k * n)) === 1;
  expect(Array.from(found)).toEqual(
    Array.from(wanted, (value, index) => (isSpoilt(index) ? NaN : value)),
  );
});

test("schedules give the same bits, and nothing is found", async () => {
  const { a, b, groupSizes } = raggedInputs({ name: "", groups: [70, 0, 3], sizes: [80, 64, 48] });
  const op = raggedDot({ a: bf16, b: bf16, configuration: wide });
  const results = new Set<string>();
  for (const seed of scheduleSeeds) {
    const device = await open("simulator", {
      schedule: seed % 2 === 0 ? "random" : "adversarial",
      seed,
    });
    onTestFinished(() => {
      device.dispose();
    });
    const { out } = await device.run(op, { a: a.array, b: b.array, groupSizes } as never);
    results.add(Array.from(toNumbers(out)).join());
  }
  expect(results.size).toBe(1);
});

test("tables are read when the kernel that writes them is over", () => {
  const kernels = raggedDot({ a: bf16, b: bf16 }).kernels({ m: 16384, n: 4096, k: 4096, g: 8 });
  const product = kernels.find(({ name }) => name === "matmul");
  if (product === undefined) throw new Error("the product is the persistent kernel's");
  const text = printPtx(lower(product.kernel, targets.sm_90a).module);
  const [waits, loads] = [text.indexOf("griddepcontrol.wait"), text.indexOf("ld.global")];
  expect(waits).toBeGreaterThan(0);
  expect(loads).toBeGreaterThan(waits);
});

test("rows that no thread multiplies are not copied", () => {
  const copiesOf = (consumers: 1 | 2): number => {
    const configuration = { ...wide, consumers } as const;
    const op = raggedDot({ a: bf16, b: bf16, configuration });
    const product = op
      .kernels({ m: 256, n: 128, k: 128, g: 2 })
      .find(({ name }) => name === "matmul");
    if (product === undefined) throw new Error("the product is the persistent kernel's");
    const text = printPtx(lower(product.kernel, targets.sm_90a).module);
    return text.split("cp.async.bulk.tensor.2d.shared").length - 1;
  };
  // Of rows there is a copy of all and one of few for a single thread; two have another, of the rows of the first.
  expect([copiesOf(1), copiesOf(2)]).toEqual([2, 3]);
});

test.each([undefined, false, true])(
  "rows of f32 that lie by columns are multiplied as tf32, A and B swapped: %s",
  async (isSwapped) => {
    const [m, n, k, groups] = [24, 16, 8, [5, 0, 17]] as const;
    const [rows, depth] = [dim("m"), dim("k")];
    const given = {
      a: tensor(f32, [rows, depth], { strides: [1, rows] }),
      ...{ b: f32, out: f32, precision: "tf32" as const },
      ...(isSwapped !== undefined && { configuration: oneThread(isSwapped) }),
    };
    const a = wholeNumbers(f32, [m, k], 3);
    const b = wholeNumbers(f32, [groups.length, k, n], 4);
    const byColumns = Float64Array.from({ length: m * k }, (_, place) => {
      return a.values[(place % m) * k + Math.floor(place / m)] ?? NaN;
    });
    const device = await open("emulator");
    onTestFinished(() => {
      device.dispose();
    });
    const { out } = await device.run(raggedDot(given), {
      ...{ a: fromNumbers(f32, [m, k], byColumns), b: b.array },
      groupSizes: fromNumbers(i32, [groups.length], groups),
    });
    const owner = groups.flatMap((size, group) => Array.from({ length: size }, () => group));
    const expected = Array.from({ length: m * n }, (_, place) => {
      const [row, column] = [Math.floor(place / n), place % n];
      const group = owner[row];
      let sum = 0;
      for (let i = 0; group !== undefined && i < k; i += 1)
        sum += (a.values[row * k + i] ?? NaN) * (b.values[(group * k + i) * n + column] ?? NaN);
      return sum;
    });
    expect(Array.from(toNumbers(out))).toEqual(expected);
  },
);

const most = 2 ** 31 - 1;

describe.each([
  ["a row too many", [5, 4]],
  // As i32 these sums are 2, -2 and -2147483646, none of which is more than the rows there are.
  ["a sum that wraps to one that fits", [most, most, 4]],
  ["a sum that wraps to a negative one", [most, most]],
  ["a sum that is the least i32 and a few", [3, most]],
  // Nothing goes over so many rows before it stops.
  ["many rows too many", [2 ** 30, 2 ** 30]],
] as const)("groups of more rows than there are stop the kernel: %s", (_, groups) => {
  const g = groups.length;
  const inputs = {
    a: fromNumbers(bf16, [8, 16], new Float64Array(128).fill(1)),
    groupSizes: fromNumbers(i32, [g], groups),
  };
  const matrices = fromNumbers(bf16, [g, 16, 16], new Float64Array(g * 256).fill(1));
  const rows = { a: fromNumbers(f32, [8, 16], new Float64Array(128).fill(1)) };
  test.each([
    ["raggedDot", raggedDot({ a: bf16, b: bf16 }), { ...inputs, b: matrices }],
    ["raggedOuter", raggedOuter({ a: bf16, b: bf16 }), { ...inputs, b: inputs.a }],
    [
      "raggedOuter of the plain kernel",
      raggedOuter({ a: f32, b: f32, precision: "tf32" }),
      { ...inputs, ...rows, b: rows.a },
    ],
  ] as const)("%s", async (_name, op, given) => {
    const device = await open("simulator");
    onTestFinished(() => {
      device.dispose();
    });
    const run = device.run(op as never, given as never);
    await expect(run).rejects.toThrow("the groups of a ragged product have no more rows");
  });
});

test.skipIf(!hasPtxas)("no registers are spilled, no products serialised", () => {
  const sizes = { m: 8192, n: 4096, k: 4096, g: 8 };
  const kernels = [
    ...raggedDot({ a: bf16, b: bf16 }).kernels(sizes),
    ...raggedDot({ a: bf16, b: bf16 }).kernels({ ...sizes, m: 2048 }),
    ...raggedOuter({ a: bf16, b: bf16 }).kernels(sizes),
    ...raggedOuter({ a: bf16, b: bf16, out: f32 }).kernels(sizes),
  ];
  expect(assemblyProblems(kernels)).toEqual([]);
});

describe("what cannot be done is refused", () => {
  const [m, n, k, g] = [dim("m"), dim("n"), dim("k"), dim("g")];
  const refusals: readonly [name: string, code: string, make: () => unknown][] = [
    ["two formats", "TW9901", () => raggedDot({ a: bf16, b: f32 })],
    ["precision unsaid", "TW9903", () => raggedDot({ a: f32, b: f32 })],
    ["one matrix", "TW9902", () => raggedDot({ a: bf16, b: tensor(bf16, [k, n]) })],
    ["a batch of rows", "TW9902", () => raggedDot({ a: tensor(bf16, [g, m, k]), b: bf16 })],
    [
      "two sizes along k",
      "TW9902",
      () => raggedDot({ a: tensor(bf16, [m, 8]), b: tensor(bf16, [g, 16, n]) }),
    ],
    [
      "sizes of another format",
      "TW9901",
      () => raggedDot({ a: bf16, b: bf16, groupSizes: f32 as never }),
    ],
    [
      "sizes of other groups",
      "TW9902",
      () => raggedDot({ a: bf16, b: bf16, groupSizes: tensor(i32, [7]) }),
    ],
    [
      "an input of groups",
      "TW9902",
      () =>
        raggedDot({
          a: bf16,
          b: bf16,
          inputs: { bias: tensor(f32, [g, m, n]) },
          epilogue: ({ sums }) => sums.cast(bf16),
        }),
    ],
    [
      "parts",
      "TW9904",
      () =>
        raggedDot({ a: bf16, b: bf16, configuration: { ...wide, schedule: "split-k" } }).plan({
          m: 8,
          n: 8,
          k: 8,
          g: 2,
        }),
    ],
    [
      "parts of the plain kernel",
      "TW9904",
      () =>
        raggedDot({
          ...{ a: bf16, b: bf16 },
          configuration: { kernel: "plain", rows: 64, columns: 64, depth: 32, splitK: 2 },
        }).plan({ m: 8, n: 8, k: 8, g: 2 }),
    ],
    [
      "an outer product of columns",
      "TW9902",
      () => raggedOuter({ a: tensor(bf16, [m, k], { strides: [1, m] }), b: bf16 }),
    ],
    [
      "an outer product of other rows",
      "TW9902",
      () => raggedOuter({ a: tensor(bf16, [8, k]), b: tensor(bf16, [9, n]) }),
    ],
    ["an outer product of two formats", "TW9901", () => raggedOuter({ a: bf16, b: f32 })],
    ["an outer product, precision unsaid", "TW9903", () => raggedOuter({ a: f32, b: f32 })],
  ];
  test.each(refusals)("%s, in the name of what was called", (_, code, make) => {
    const report = reportOf(make);
    expect(report.code).toBe(code);
    expect(report.summary).not.toContain("matmul");
  });
});

test.each([
  ["16 rows", { m: 1024, n: 2048, k: 2048, g: 64 }],
  ["64 rows", { m: 4096, n: 2048, k: 2048, g: 64 }],
  ["64 rows of few groups", { m: 512, n: 4096, k: 4096, g: 8 }],
])(
  "tiles are wide where one group may have many of the rows, though equal ones would have %s",
  (_, dimensions) => {
    const product = raggedDot({ a: bf16, b: bf16, out: bf16 });
    const { configuration } = product.plan(dimensions, targets.sm_90a);
    expect(configuration).toMatchObject({ kernel: "persistent", columns: 256, swapAB: false });
  },
);

test.each([
  ["1024 rows of 8 groups", { m: 1024, n: 4096, k: 4096, g: 8 }],
  ["4096 rows of 64 groups", { m: 4096, n: 2048, k: 2048, g: 64 }],
])("tiles twice as large are taken where they take hardly longer: %s", (_, dimensions) => {
  const { configuration } = raggedDot({ a: bf16, b: bf16 }).plan(dimensions, targets.sm_90a);
  expect(configuration).toMatchObject({ kernel: "persistent", consumers: 2, columns: 256 });
});

test.each([
  ["few rounds", 2048, "stream-k"],
  ["many", 16384, "tiles"],
])("tiles of the last round are split where there are %s", (_, m, schedule) => {
  const product = raggedDot({ a: bf16, b: bf16, out: bf16 });
  const { configuration } = product.plan({ m, n: 4096, k: 4096, g: 8 }, targets.sm_90a);
  expect(configuration).toMatchObject({ kernel: "persistent", schedule });
});

test("tiles are narrow where all groups have a few rows at most", () => {
  const product = raggedDot({ a: bf16, b: bf16, out: bf16 });
  const { configuration } = product.plan({ m: 64, n: 2048, k: 2048, g: 64 }, targets.sm_90a);
  expect(configuration).toMatchObject({ kernel: "persistent", columns: 8, swapAB: true });
});

test("the cost of a plan says that there are loops that it could not count", () => {
  const plan = raggedDot({ a: bf16, b: bf16 }).plan({ m: 64, n: 64, k: 64, g: 4 }, "sm_90a");
  expect(plan.cost().unknownLoops.length).toBeGreaterThan(0);
});
