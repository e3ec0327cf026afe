/** TMA-pipelined scans: in both directions, of ragged rows, several rows, states of two numbers; and when they are chosen. */
import { describe, expect, test } from "vitest";
import { hasPtxas } from "../../../test/ptxas.ts";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import {
  codeOf,
  expectClose,
  randomNumbers,
  wholeNumbers,
} from "../../../test/support/library-checks.ts";
import { dealtTo, scheduleSeeds, takesAll } from "../../../test/support/sample.ts";
import type { Device } from "../../device/device.ts";
import { bf16, f32, f64, i32, i8 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { toNumbers } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { targets } from "../../targets/target.ts";
import type { ScanConfiguration } from "./scan-kernel.ts";
import { scanWith } from "./scan-with.ts";
import { scan } from "./scan.ts";
import type { ScanCombination } from "./scan.ts";

interface Case {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly [number, number];
  readonly combine?: ScanCombination;
  readonly reverse?: boolean;
  readonly configuration: ScanConfiguration;
}

const pipelined = (columns: number, workers: number, stages: number, lookahead: number) => ({
  ...{ rows: 1, columns, workers },
  pipeline: { stages, lookahead },
});

const cases: readonly Case[] = [
  {
    name: "a pipeline that wraps around, and a last wave in which a block has no piece",
    ...{ dtype: f32, shape: [1, 10 * 256 + 96], configuration: pipelined(256, 3, 4, 2) },
  },
  {
    name: "in reverse, where the first piece is ragged",
    ...{ dtype: i32, shape: [1, 7 * 512 + 320], reverse: true },
    configuration: pipelined(512, 3, 4, 2),
  },
  {
    name: "several rows, and results that follow at once",
    ...{ dtype: i32, shape: [2, 5 * 512], configuration: pipelined(512, 2, 3, 1) },
  },
  {
    name: "fewer waves than results follow by",
    ...{ dtype: f32, shape: [1, 640], combine: "max", configuration: pipelined(256, 2, 5, 3) },
  },
  {
    name: "elements narrower than what is combined, from the end",
    ...{ dtype: bf16, shape: [1, 3 * 1024 + 64], combine: "min", reverse: true },
    configuration: pipelined(1024, 2, 5, 3),
  },
];

/** Two rows of three waves, the last of which one block has nothing of. */
const small: Case = {
  name: "small",
  ...{ dtype: i32, shape: [2, 4 * 256 + 32], configuration: pipelined(256, 2, 3, 1) },
};

const merged = {
  sum: (left: number, right: number) => left + right,
  prod: (left: number, right: number) => left * right,
  min: Math.min,
  max: Math.max,
};

async function check(device: Device, one: Case, label: string): Promise<void> {
  const { dtype, shape, combine = "sum", reverse = false, configuration } = one;
  const x = wholeNumbers(dtype, shape, 5);
  const op = scan({ x: tensor(dtype, shape), combine, reverse, configuration });
  const { out } = await device.run(op as never, { x: x.array } as never);
  const expected = Array.from({ length: shape[0] }, (_, row) => {
    const own = x.values.slice(row * shape[1], (row + 1) * shape[1]);
    let sofar: number | undefined;
    const running = (reverse ? own.toReversed() : own).map(
      (value) => (sofar = sofar === undefined ? value : merged[combine](sofar, value)),
    );
    return reverse ? running.toReversed() : running;
  });
  expect([...toNumbers(out as never)], label).toEqual(expected.flat());
}

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  test.each(dealtTo(kind, cases))("$name", async (one) => {
    const device = await open(kind);
    await check(device, one, one.name);
    device.dispose();
  });
});

/** h = a · h + b, whose order matters. */
function recurrence(length: number, reverse: boolean, configuration?: ScanConfiguration) {
  return scanWith({
    inputs: { a: tensor(f32, [length]), b: tensor(f32, [length]) },
    reverse,
    ...(configuration !== undefined && { configuration }),
    load: ({ a, b }) => ({ factor: a, term: b }),
    combine: (before, after) => ({
      factor: before.factor.mul(after.factor),
      term: before.term.mul(after.factor).add(after.term),
    }),
    identity: { factor: 1, term: 0 },
    finish: ({ term }) => ({ h: term }),
  });
}

/** Four sums at once in numbers of 64 bits: their aggregates and prefixes take much of shared memory. */
function wide(length: number) {
  const each = <T>(make: (name: "a" | "b" | "c" | "d") => T) => ({
    ...{ a: make("a"), b: make("b"), c: make("c"), d: make("d") },
  });
  return scanWith({
    inputs: each(() => tensor(f64, [length])),
    load: (tiles) => tiles,
    combine: (before, after) => each((name) => before[name].add(after[name])),
    identity: each(() => 0),
    finish: ({ a, b, c, d }) => ({ sum: a.add(b).add(c).add(d) }),
  });
}

test.each([false, true])("a recurrence of two arrays, from the end: %s", async (reverse) => {
  const length = 2 * 1024 + 32;
  const a = randomNumbers(f32, [length], 1, 0.9);
  const b = randomNumbers(f32, [length], 2, 4);
  const expected: number[] = [];
  let before = 0;
  for (let step = 0; step < length; step += 1) {
    const at = reverse ? length - 1 - step : step;
    before = (a.values[at] ?? NaN) * before + (b.values[at] ?? NaN);
    expected[at] = before;
  }
  const op = recurrence(length, reverse, pipelined(512, 2, 4, 2));
  for (const kind of ["simulator", "emulator"] as const) {
    if (!dealtTo(kind, [false, true]).includes(reverse)) continue;
    const device = await open(kind);
    const { h } = await device.run(op, { a: a.array, b: b.array });
    expectClose(h, expected, { relative: 8, absolute: 1e-5 });
    device.dispose();
  }
});

test("under many schedules", async () => {
  for (const seed of scheduleSeeds) {
    const schedule = seed % 2 === 0 ? "random" : "adversarial";
    const device = await open("simulator", { schedule, seed });
    await check(device, { ...small, reverse: seed % 3 === 0 }, `${schedule} ${seed}`);
    device.dispose();
  }
});

test("rows that TMA can copy are pipelined, others are not", () => {
  const [m, n] = [dim("m"), dim("n")];
  const planned = (op: { plan: typeof plain.plan }, sizes: { readonly [name: string]: number }) =>
    op.plan(sizes, targets.sm_90a).configuration;
  const plain = scan({ x: f32 });
  const long = 2 ** 24;
  expect(planned(plain, { n: long })).toEqual({ ...pipelined(8192, 132, 6, 3) });
  expect(planned(scan({ x: bf16 }) as never, { n: long })).toMatchObject({
    pipeline: { stages: 12, lookahead: 6 },
  });
  expect(planned(recurrence(long, false) as never, {})).toEqual({ ...pipelined(4096, 132, 6, 3) });
  expect(planned(plain, { n: long + 4 })).not.toHaveProperty("pipeline");
  expect(planned(scan({ x: f32, out: f64 }) as never, { n: long })).not.toHaveProperty("pipeline");
  const apart = scan({ x: tensor(f32, [m, n], { strides: [n.add(1), 1] }) });
  expect(planned(apart as never, { m: 2, n: long })).not.toHaveProperty("pipeline");
  expect(plain.plan({ n: long }, targets.sm_80).configuration).not.toHaveProperty("pipeline");
  expect(planned(plain, { n: 64 })).toMatchObject({ workers: 1 });
});

test("an impossible pipeline is refused", () => {
  const given = (configuration: ScanConfiguration, n: number) =>
    codeOf(() => scan({ x: f32, configuration }).plan({ n }, targets.sm_90a));
  expect(given(pipelined(1024, 2, 4, 2), 4096)).toBe("nothing was thrown");
  expect(given(pipelined(1024, 2, 3, 2), 4096)).toBe("TW9904");
  expect(given(pipelined(1024, 2, 4, 2), 4097)).toBe("TW9904");
  expect(given(pipelined(1024, 1, 4, 2), 4096)).toBe("TW9904");
});

test.runIf(hasPtxas)(
  "the assembler spills nothing; the widest states fit, and spill a little",
  () => {
    const length = 2 ** 24;
    const problems = (op: { readonly plan: ReturnType<typeof scan>["plan"] }, spilled: number) =>
      assemblyProblems(
        op.plan({}, targets.sm_90a).launches.map(({ kernel }) => kernel),
        spilled,
      );
    // Threads hold the most of the narrowest elements.
    for (const dtype of takesAll ? [f32, bf16, i8] : [i8])
      expect(problems(scan({ x: tensor(dtype, [length]) }), 0), dtype.name).toEqual([]);
    expect(problems(recurrence(length, true) as never, 0)).toEqual([]);
    expect(problems(wide(length) as never, 512)).toEqual([]);
  },
);
