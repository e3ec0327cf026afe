/**
 * Attention to a paged cache against float64. The bound is that of attention: powers are rounded to the format of q, and
 * results to theirs, each at most 2⁻⁸ of the largest value for bf16; FP8 is read exactly.
 */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Device } from "../../device/device.ts";
import { bf16, f16, f32, f8e4m3fn, f8e5m2, i32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import { lower } from "../../lower/stages.ts";
import { printPtx } from "../../ptx/printer.ts";
import { open } from "../../runtime/open.ts";
import { targets } from "../../targets/target.ts";
import { checkPaged } from "../../../test/support/paged-check.ts";
import { codeOf } from "../../../test/support/library-checks.ts";
import { pagedInputs } from "../../../test/support/paged-reference.ts";
import type { PagedCase } from "../../../test/support/paged-reference.ts";
import { notEmulated, scheduleSeeds, usually } from "../../../test/support/sample.ts";
import type { PagedConfiguration } from "./configuration.ts";
import { pagedAttention } from "./paged.ts";
import type { PagedAttentionOptions } from "./paged.ts";

const small: PagedConfiguration = { rows: 16, warps: 1, columns: 16, stages: 2, splits: 3 };

const cases: readonly PagedCase[] = [
  { name: "one sequence", lengths: [40], heads: [4, 1, 16, 16], size: 16, configuration: small },
  {
    name: "one sequence with fewer tiles than splits",
    lengths: [33],
    heads: [2, 1, 16, 16],
    size: 16,
    configuration: { ...small, splits: 9 },
  },
  {
    name: "one sequence without tokens",
    lengths: [0],
    heads: [2, 1, 16, 16],
    size: 16,
    configuration: small,
  },
  {
    name: "one sequence of FP8 with a window",
    lengths: [150],
    s: 2,
    heads: [4, 2, 32, 32],
    size: 16,
    kept: f8e4m3fn,
    causal: true,
    window: { left: 90 },
    configuration: { ...small, columns: 32, splits: 2 },
  },
  {
    name: "tiles of FP8 that are not held",
    lengths: [70, 20],
    heads: [2, 1, 256, 256],
    size: 16,
    kept: f8e4m3fn,
    configuration: small,
  },
  {
    name: "more parts of a row than a warp puts together at once",
    lengths: [300, 0, 20, 1],
    heads: [2, 1, 16, 16],
    size: 16,
    configuration: { ...small, splits: 12 },
  },
  {
    name: "parts of wide values, by several warps in turns",
    lengths: [390],
    heads: [2, 1, 16, 256],
    size: 16,
    configuration: { ...small, splits: 25 },
  },
  {
    name: "ragged, some empty",
    lengths: [0, 1, 33, 0, 70, 16],
    heads: [4, 2, 16, 16],
    size: 16,
    configuration: small,
  },
  {
    name: "pages of 32, tiles of parts of them",
    lengths: [100, 31],
    heads: [2, 1, 16, 32],
    size: 32,
    configuration: small,
  },
  {
    name: "tiles of several pages",
    lengths: [90, 5],
    heads: [2, 1, 16, 16],
    size: 16,
    configuration: { ...small, columns: 64 },
  },
  {
    name: "groups of 3",
    lengths: [45, 20],
    heads: [6, 2, 24, 16],
    size: 16,
    configuration: small,
  },
  {
    name: "some tokens, causal",
    lengths: [45, 20, 2],
    s: 5,
    heads: [4, 2, 16, 16],
    size: 16,
    causal: true,
    configuration: { ...small, splits: 2 },
  },
  {
    name: "a window",
    lengths: [150, 20, 0],
    s: 3,
    heads: [2, 2, 16, 16],
    size: 16,
    causal: true,
    window: { left: 37 },
    configuration: small,
  },
  {
    name: "64 rows",
    lengths: [100, 7],
    s: 40,
    heads: [4, 2, 16, 16],
    size: 32,
    causal: true,
    configuration: { rows: 64, warps: 4, columns: 32, stages: 2, splits: 3 },
  },
  {
    name: "capped and scaled, f16",
    lengths: [64],
    heads: [2, 1, 16, 16],
    size: 64,
    dtype: f16,
    softCap: 2,
    scale: 0.4,
    configuration: small,
  },
  {
    name: "FP8 with scales",
    lengths: [50, 17],
    heads: [4, 2, 32, 32],
    size: 16,
    kept: f8e4m3fn,
    scales: true,
    configuration: small,
  },
  {
    name: "8 rows of FP8, of two tokens and of heads in parts",
    lengths: [90, 3],
    s: 2,
    heads: [18, 2, 24, 40],
    size: 16,
    kept: f8e4m3fn,
    causal: true,
    configuration: { ...small, rows: 8, columns: 32 },
  },
  {
    name: "splits of FP8 that take turns",
    lengths: [331],
    heads: [4, 2, 32, 32],
    size: 8,
    kept: f8e4m3fn,
    configuration: { ...small, rows: 8, columns: 32 },
  },
  {
    name: "more splits that take turns than tiles",
    lengths: [40],
    heads: [2, 1, 16, 16],
    size: 16,
    kept: f8e4m3fn,
    configuration: { ...small, rows: 8, columns: 32, splits: 5 },
  },
  {
    name: "splits that take turns, without tokens",
    lengths: [0],
    heads: [2, 1, 16, 16],
    size: 16,
    kept: f8e4m3fn,
    configuration: { ...small, rows: 8, columns: 32 },
  },
  {
    name: "FP8 of the other kind",
    lengths: [50],
    heads: [4, 2, 32, 32],
    size: 16,
    kept: f8e5m2,
    dtype: f16,
    configuration: small,
  },
  {
    name: "more splits than tiles",
    lengths: [5, 0, 20],
    heads: [2, 1, 16, 16],
    size: 16,
    configuration: { ...small, splits: 9 },
  },
  {
    name: "copies ahead over several sequences and blocks of rows",
    lengths: [30, 0, 3, 17, 50],
    s: 20,
    heads: [2, 1, 16, 16],
    size: 16,
    causal: true,
    configuration: { ...small, stages: 8, splits: 2 },
  },
  {
    name: "tiles of more pages than are kept",
    lengths: [75, 9, 130],
    heads: [2, 1, 16, 16],
    size: 8,
    configuration: { ...small, columns: 64 },
  },
  {
    name: "more sequences than lengths are looked at together",
    lengths: Array.from({ length: 131 }, (_, sequence) => (sequence * 7) % 5),
    heads: [1, 1, 16, 16],
    size: 16,
    configuration: { ...small, splits: 7 },
  },
  { name: "what is chosen", lengths: [130, 3], heads: [8, 2, 64, 64], size: 16 },
];

const emulated = usually(
  [
    ...["ragged, some empty", "tiles of several pages", "FP8 with scales"],
    "8 rows of FP8, of two tokens and of heads in parts",
    "splits of FP8 that take turns",
    "parts of wide values, by several warps in turns",
  ],
  [
    ...["64 rows", "one sequence of FP8 with a window"],
    "more parts of a row than a warp puts together at once",
  ],
);

describe("on the simulator", () => {
  let device: Device;
  beforeAll(async () => {
    device = await open("simulator");
  });
  afterAll(() => {
    device.dispose();
  });
  test.each(notEmulated(cases, emulated))("$name", (one) => checkPaged(device, one));
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
    checkPaged(device, one),
  );
});

test("schedules give the same bits, and nothing is found", async () => {
  const one: PagedCase = {
    ...{ name: "ragged", lengths: [0, 40, 17], heads: [2, 2, 16, 16], size: 16 },
    configuration: { ...small, splits: 2 },
  };
  const { q, k, v, table, lengths } = pagedInputs(one, 3);
  const op = pagedAttention({ q: bf16, pages: { k: bf16, v: bf16 }, configuration: small });
  const results = new Set<string>();
  for (const seed of scheduleSeeds) {
    const device = await open("simulator", {
      schedule: seed % 2 === 0 ? "random" : "adversarial",
      seed,
    });
    onTestFinished(() => {
      device.dispose();
    });
    const given = { q: q.array, k: k.array, v: v.array };
    const { out } = await device.run(op, {
      ...given,
      ...{ table: table.array, lengths: lengths.array },
    } as never);
    results.add(Array.from(toNumbers(out)).join());
  }
  expect(results.size).toBe(1);
});

test("splits let the launch behind them start when lengths are there, which it reads at once", () => {
  const sizes = { b: 2, s: 1, h: 4, kv: 1, d: 64, e: 64, pages: 64, size: 16, most: 32 };
  const kernels = pagedAttention({ q: bf16, pages: { k: bf16, v: bf16 } }).kernels(sizes);
  const splits = kernels.find(({ name }) => name === "paged_attention");
  if (splits === undefined) throw new Error("splits are attended to by a kernel of this name");
  const text = printPtx(lower(splits.kernel, targets.sm_90a).module);
  const waits = text.indexOf("griddepcontrol.wait");
  expect(waits).toBeGreaterThan(0);
  expect(text.indexOf("griddepcontrol.launch_dependents")).toBeGreaterThan(waits);
});

test.each([
  ["a lone sequence of FP8", f8e4m3fn, { b: 1, h: 32, kv: 8 }, 128],
  ["many sequences of FP8", f8e4m3fn, { b: 64, h: 32, kv: 8 }, 132],
  ["a lone sequence of bf16", bf16, { b: 1, h: 32, kv: 8 }, 198],
  ["a lone sequence of one head of FP8", f8e4m3fn, { b: 1, h: 16, kv: 1 }, 1024],
  ["a lone sequence of many heads of one", f8e4m3fn, { b: 1, h: 32, kv: 1 }, 396],
] as const)("%s: splits are such that parts take whole turns", (_, kept, own, splits) => {
  const sizes = { s: 1, d: 128, e: 128, pages: 8192, size: 16, most: 8192, ...own };
  const op = pagedAttention({ q: bf16, pages: { k: kept, v: kept } });
  expect(op.plan(sizes).configuration.splits).toBe(splits);
});

test.each([
  ["pages of 16", { b: 1, size: 16, d: 128, e: 128 }],
  ["pages of 64", { b: 1, size: 64, d: 128, e: 128 }],
  ["small heads", { b: 64, size: 16, d: 64, e: 64 }],
])("%s: 8 blocks of FP8 have room on a processor, and not 9", (_, own) => {
  const op = pagedAttention({ q: bf16, pages: { k: f8e4m3fn, v: f8e4m3fn } });
  const [attend] = op.kernels({ s: 1, h: 32, kv: 8, pages: 4096, most: 4096, ...own });
  if (attend === undefined) throw new Error("there is a launch");
  const { sharedBytes } = lower(attend.kernel, targets.sm_90a);
  // Of 228 KiB the driver takes one for each block.
  expect(Math.floor((228 * 1024) / (sharedBytes + 1024))).toBe(8);
});

test("a page that is not there stops the kernel", async () => {
  const device = await open("simulator");
  onTestFinished(() => {
    device.dispose();
  });
  const ones = fromNumbers(bf16, [2, 16, 1, 16], new Float64Array(512).fill(1));
  const run = device.run(pagedAttention({ q: bf16, pages: { k: bf16, v: bf16 } }), {
    q: fromNumbers(bf16, [1, 1, 1, 16], new Float64Array(16)),
    ...{ k: ones, v: ones },
    table: fromNumbers(i32, [1, 1], [2]),
    lengths: fromNumbers(i32, [1], [3]),
  });
  await expect(run).rejects.toThrow("TW3005");
});

test.each([
  ["one that has no tiles in i32", [3, 2 ** 31 - 1]],
  // As i32 the tiles of all of them are few.
  ["several whose tiles add up to more than i32 has", Array<number>(32).fill(2 ** 31 - 17)],
])("lengths that the table has no pages for stop the kernel: %s", async (_, lengths) => {
  const device = await open("simulator");
  onTestFinished(() => {
    device.dispose();
  });
  const b = lengths.length;
  const ones = fromNumbers(bf16, [2, 16, 1, 16], new Float64Array(512).fill(1));
  const run = device.run(pagedAttention({ q: bf16, pages: { k: bf16, v: bf16 } }), {
    q: fromNumbers(bf16, [b, 1, 1, 16], new Float64Array(16 * b)),
    ...{ k: ones, v: ones },
    table: fromNumbers(i32, [b, 2], new Float64Array(2 * b)),
    lengths: fromNumbers(i32, [b], lengths),
  });
  await expect(run).rejects.toThrow("TW3005");
});

test("a length that the table has no pages for stops the kernel, where splits take turns too", async () => {
  const device = await open("simulator");
  onTestFinished(() => {
    device.dispose();
  });
  const ones = fromNumbers(f8e4m3fn, [4, 16, 1, 16], new Float64Array(1024).fill(1));
  const configuration: PagedConfiguration = { ...small, rows: 8, columns: 32 };
  const run = device.run(
    pagedAttention({ q: bf16, pages: { k: f8e4m3fn, v: f8e4m3fn }, configuration }),
    {
      q: fromNumbers(bf16, [1, 1, 1, 16], new Float64Array(16)),
      ...{ k: ones, v: ones },
      table: fromNumbers(i32, [1, 4], [0, 1, 2, 3]),
      lengths: fromNumbers(i32, [1], [65]),
    },
  );
  await expect(run).rejects.toThrow("TW3005");
});

describe("what cannot be done is refused", () => {
  const operands = { q: bf16, pages: { k: bf16, v: bf16 } } as const;
  const [b, s, h, kv, n] = [dim("b"), dim("s"), dim("h"), dim("kv"), dim("n")];
  const plan = (
    more: Partial<PagedAttentionOptions>,
    sizes: { readonly [name: string]: number } = {},
  ) =>
    pagedAttention({ ...operands, ...more }).plan({
      ...{ b: 1, s: 1, h: 2, kv: 1, d: 16, e: 16, pages: 4, size: 16, most: 4 },
      ...sizes,
    }).launches;
  const refusals: readonly [name: string, code: string, make: () => unknown][] = [
    ["a format of q", "TW9901", () => pagedAttention({ ...operands, q: f8e4m3fn })],
    ["a format of pages", "TW9901", () => plan({ pages: { k: i32, v: i32 } })],
    ["pages of two formats", "TW9901", () => plan({ pages: { k: bf16, v: f8e4m3fn } })],
    ["pages of another format", "TW9901", () => plan({ pages: { k: f16, v: f16 } })],
    ["a format of lengths", "TW9901", () => plan({ lengths: f32 as never })],
    ["a result", "TW9901", () => plan({ out: i32 })],
    ["no pages", "TW9902", () => pagedAttention({ q: bf16 } as never)],
    ["no v", "TW9902", () => pagedAttention({ q: bf16, pages: { k: bf16 } } as never)],
    ["three axes", "TW9902", () => plan({ q: tensor(bf16, [b, s, 64]) })],
    [
      "strides",
      "TW9902",
      () => plan({ q: tensor(bf16, [b, s, h, 64], { strides: [1, b, s, h] }) }),
    ],
    [
      "two head sizes",
      "TW9902",
      () =>
        pagedAttention({
          q: tensor(bf16, [b, s, h, 64]),
          pages: { k: tensor(bf16, [n, 16, kv, 32]), v: bf16 },
        }),
    ],
    ["a window", "TW9902", () => plan({ window: { left: -1 } })],
    ["a cap", "TW9902", () => plan({ softCap: 0 })],
    ["an option", "TW1033", () => pagedAttention({ ...operands, tabel: i32 } as never)],
    ["heads", "TW9902", () => plan({}, { h: 5, kv: 2 })],
    ["a large head", "TW9902", () => plan({}, { d: 264 })],
    ["an empty cache", "TW9902", () => plan({}, { pages: 0 })],
    ["logarithms without values", "TW9902", () => plan({ logSumExp: true }, { e: 0 })],
    ["pages of 24", "TW9902", () => plan({}, { size: 24 })],
    ["more tiles than are counted", "TW9902", () => plan({}, { s: 2 ** 20, most: 2 ** 21 })],
    ["a configuration", "TW9904", () => plan({ configuration: { ...small, rows: 48 } as never })],
    ["8 rows of bf16", "TW9904", () => plan({ configuration: { ...small, rows: 8 } })],
    [
      "tiles across pages",
      "TW9904",
      () => plan({ configuration: { ...small, columns: 32 } }, { size: 48 }),
    ],
    [
      "shared memory",
      "TW9904",
      () => plan({ configuration: { ...small, columns: 128, stages: 8 } }, { d: 256, e: 256 }),
    ],
    [
      "registers",
      "TW9904",
      () => plan({ configuration: { ...small, rows: 64, warps: 1 } }, { d: 128, e: 128 }),
    ],
  ];
  test.each(refusals)("%s", (_, code, make) => {
    expect(codeOf(make)).toBe(code);
  });

  test("but no heads, and no values where no logarithms are asked for", () => {
    for (const sizes of [{ h: 0, kv: 0 }, { e: 0 }]) expect(plan({}, sizes)).toEqual([]);
  });
});
