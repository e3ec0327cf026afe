/** What the library says to those who give it something else: the line, what was found, and a remedy that is one. */
import { describe, expect, test } from "vitest";
import { bf16, f32, i32, i8 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import { tensor, dim } from "../lang/index.ts";
import type { Tile } from "../lang/index.ts";
import { open } from "../runtime/open.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import {
  argReduce,
  attention,
  attentionBackward,
  fill,
  gather,
  layerNorm,
  matmul,
  pad,
} from "./index.ts";
import { pagedAttention, permute, raggedDot, reduce, reduceWith, scan, scanWith } from "./index.ts";
import { softmax, sort } from "./index.ts";

/** The report, which has this file's line. */
function reportOf(error: unknown): string {
  if (!(error instanceof TilewrightError)) throw error;
  expect(error.position?.file).toContain("mistakes.test");
  return error.message;
}

function told(make: () => unknown): string {
  try {
    make();
  } catch (error) {
    return reportOf(error);
  }
  return "nothing was thrown";
}

const x = tensor(f32, [2, 3]);

describe("a report of the library", () => {
  test.each([
    [() => softmax(f32 as never), /TW1033[^]*the dtype f32[^]*write softmax\(\{ x: … \}\)/],
    [() => softmax({ x: i32 as never }), /TW9901[^]*use formats that the message lists/],
    [() => reduce({ x, axis: [0, -2] }), /TW9902: reduce names an axis twice[^]*\[0, -2\]/],
    [() => permute({ x, permutation: [0, 0] }), /TW9902[^]*found: {4}\[0, 0\]/],
    [() => gather({ x: f32 as never, indices: tensor(i32, [1]) }), /TW9902[^]*the dtype f32/],
    [
      () => matmul({ a: tensor(bf16, [3, 4]), b: tensor(bf16, [5, 6]) }),
      /TW9902[^]*a of \[3, 4\] and b of \[5, 6\]/,
    ],
    [() => layerNorm({ x: bf16, epsilon: -1 }), /TW9904[^]*remedy: {3}give what is expected/],
    [() => fill({ out: tensor(i8, [2]), value: 300 }), /TW1007: 300 is not a value of i8/],
    [
      () => fill({ out: f32, value: 1 }).plan({ n: -1 }),
      /TW4007: -1 [^]*remedy: {3}give a whole number from 0/,
    ],
    [() => pad({ x: tensor(i8, [2]), before: [1], after: [0], value: 1.5 }), /TW1007: 1.5/],
    [
      () => reduce({ x: bf16, axes: [0] } as never),
      /TW1033: unknown option axes of reduce, which is called axis/,
    ],
    [
      () => argReduce({ x: bf16, find: "greatest" as never }),
      /TW1033: find "greatest" of argReduce is called "max"/,
    ],
  ])("names what was given: %s", (make, wanted) => {
    expect(told(make)).toMatch(wanted);
  });

  // Types refuse these; programs without types would run as if nothing had been said.
  const persistent = {
    ...{ kernel: "persistent", consumers: 2, columns: 128, stages: 4 },
    ...{ schedule: "tiles", swapAB: false, cluster: 1 },
  };
  const plain = { kernel: "plain", rows: 64, columns: 64, depth: 32, splitK: 1 };
  const skinny = { kernel: "skinny", rows: 16, columns: 16, sliceK: 1, stages: 4, splitK: 1 };
  const gemv = { kernel: "gemv", columns: 1, warps: 1, words: 1 };
  const scanned = { rows: 1, columns: 32, workers: 1 };
  const product = (configuration: object, stagse = {}) =>
    matmul({ a: bf16, b: bf16, configuration: { ...configuration, ...stagse } as never }).plan({
      ...{ m: 8, n: 64, k: 64 },
    });
  const attended = (configuration: object) =>
    attention({ q: bf16, k: bf16, v: bf16, configuration: configuration as never }).plan(heads);
  const heads = { b: 1, s: 64, t: 64, h: 1, kv: 1, d: 64, e: 64 };
  const paged = { rows: 16, warps: 1, columns: 16, stages: 2, splits: 1 };
  test.each<[string, () => unknown, RegExp]>([
    [
      "persistent",
      () => product(persistent, { stagse: 5 }),
      /unknown option stagse of the configuration of matmul; did you mean stages\?[^]*\{ kernel, consumers, columns, stages, schedule, swapAB, cluster \}/,
    ],
    ["plain", () => product(plain, { stages: 5 }), /unknown option stages [^]*depth, splitK \}/],
    ["an earlier name", () => product(persistent, { turned: true }), /turned [^]*called swapAB/],
    ["a kernel's", () => product(skinny, { kernel: "narrow" }), /"narrow" [^]*called "skinny"/],
    ["a schedule's", () => product(persistent, { schedule: "split" }), /called "stream-k"/],
    [
      "an attention's",
      () => attended({ kernel: "warp-specialized", dealing: "in pairs" }),
      /dealing [^]*called schedule/,
    ],
    ["no kernel", () => product({}), /"persistent", "skinny", "gemv" or "plain"/],
    ["skinny", () => product(skinny, { depth: 64 }), /unknown option depth [^]*sliceK, stages/],
    ["gemv", () => product(gemv, { rows: 1 }), /unknown option rows [^]*warps, words \}/],
    [
      "raggedDot",
      () =>
        raggedDot({ a: bf16, b: bf16, configuration: { ...plain, swapAB: true } as never }).plan({
          ...{ m: 8, n: 64, k: 64, g: 2 },
        }),
      /unknown option swapAB of the configuration of raggedDot/,
    ],
    [
      "attention",
      () =>
        attended({ kernel: "warp-specialized", consumers: 2, columns: 64, stages: 2, schedul: 1 }),
      /unknown option schedul of the configuration of attention; did you mean schedule/,
    ],
    [
      "plain attention",
      () => attended({ kernel: "plain", rows: 16, columns: 16, stages: 2 }),
      /unknown option stages of the configuration of attention[^]*\{ kernel, rows, columns \}/,
    ],
    [
      "gradients",
      () =>
        attentionBackward({
          ...{ q: bf16, k: bf16, v: bf16 },
          configuration: { kernel: "warp-specialized", rows: 16 } as never,
        }).plan(heads),
      /unknown option rows of the configuration of the gradients of attention/,
    ],
    [
      "pagedAttention",
      () =>
        pagedAttention({
          ...{ q: bf16, pages: { k: bf16, v: bf16 } },
          configuration: { ...paged, split: 2 } as never,
        }).plan({ b: 1, s: 1, h: 1, kv: 1, d: 64, e: 64, pages: 4, size: 16, most: 4 }),
      /unknown option split of the configuration of pagedAttention/,
    ],
    [
      "sort",
      () => sort({ x, configuration: { warps: 4, items: 4, digits: 8 } as never }),
      /unknown option digits of the configuration of sort/,
    ],
    [
      "scan",
      () => scan({ x, configuration: { ...scanned, worker: 2 } as never }).plan(),
      /unknown option worker of the configuration of scan; did you mean workers/,
    ],
    [
      "the pipeline of a scan",
      () => {
        const pipeline = { stages: 4, lookahead: 1, places: 2 };
        return scan({ x, configuration: { ...scanned, pipeline } }).plan();
      },
      /unknown option places of the configuration of the pipeline of scan/,
    ],
  ])("names settings that a configuration has not: %s", (_, make, wanted) => {
    expect(told(make)).toMatch(wanted);
    expect(told(make)).toMatch(/^TW9904/);
  });

  test("names what an output or an identity has not", () => {
    const total = { array: tensor(f32, [dim("n")]), combine: "sum", axis: 0 } as const;
    const epilogue = ({ sums }: { readonly sums: Tile<"f32"> }) => ({ out: sums, total: sums });
    expect(
      told(() => matmul({ a: bf16, b: bf16, out: f32, outputs: { total }, epilogue })),
    ).toMatch(/TW1033: unknown option axis of the output total[^]*\{ array, combine \}/);
    const sums = {
      ...{ inputs: { x }, load: (tiles: { readonly x: Tile<"f32"> }) => tiles },
      combine: (left: { readonly x: Tile<"f32"> }, right: { readonly x: Tile<"f32"> }) => ({
        x: left.x.add(right.x),
      }),
      identity: { x: 0, y: 0 },
    };
    expect(told(() => reduceWith(sums))).toMatch(/TW1033: unknown option y of the identity/);
    expect(told(() => scanWith(sums))).toMatch(/TW1033: unknown option y of the identity/);
  });

  test("names arrays as the user has them, and the line that ran what failed", async () => {
    const device = await open("simulator");
    const other = await open("simulator");
    const [own, out] = [await device.upload(fromNumbers(f32, [1, 2], [1, 2])), [1, 2]];
    const foreign = await other.upload(fromNumbers(f32, [1, 2], [1, 2]));
    const result = device.allocate(f32, out);
    const op = softmax({ x: f32 });
    const launched = (given: typeof own): string =>
      told(() => {
        device.launch(op, { x: given, out: result });
      });
    expect(launched(foreign)).toMatch(/TW4011: the array f32\[1, 2\]/);
    own.dispose();
    expect(launched(own)).toMatch(/TW4010: the array f32\[1, 2\]/);
    const picked = gather({ x: tensor(f32, [dim("n")]), indices: tensor(i32, [1]) });
    const failed = await device.run(picked, { x: [1, 2, 3], indices: [7] }).catch(reportOf);
    expect(failed).toMatch(/TW3005: load with index 7 on axis 0 of x/);
    for (const each of [foreign, result]) each.dispose();
    for (const each of [device, other]) each.dispose();
  });
});
