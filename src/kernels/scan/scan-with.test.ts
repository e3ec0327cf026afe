/** Running combinations by functions of one's own, against float64: by one block and by several, from either end. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { codeOf, expectClose, randomNumbers } from "../../../test/support/library-checks.ts";
import { notEmulated, takesAll } from "../../../test/support/sample.ts";
import type { Device } from "../../device/device.ts";
import { f32, f8e4m3fn, i32 } from "../../formats/dtype.ts";
import { toNumbers } from "../../formats/hostarray.ts";
import { tensor } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import type { ScanConfiguration } from "./scan-kernel.ts";
import { scanWith } from "./scan-with.ts";

interface Case {
  readonly name: string;
  readonly shape: readonly number[];
  readonly axis: number;
  readonly reverse: boolean;
  readonly configuration?: ScanConfiguration;
}

const cases: readonly Case[] = [
  { name: "one row", shape: [70], axis: 0, reverse: false },
  { name: "from the end", shape: [3, 50], axis: 1, reverse: true },
  { name: "along the first axis", shape: [40, 6], axis: 0, reverse: false },
  {
    name: "blocks that share a row",
    shape: [1400],
    axis: 0,
    reverse: false,
    configuration: { rows: 1, columns: 512, workers: 2 },
  },
  {
    name: "blocks that share a row, from the end",
    shape: [700],
    axis: 0,
    reverse: true,
    configuration: { rows: 1, columns: 512, workers: 2 },
  },
];

/** h = a · h + b along an axis: what comes before is multiplied by all that follows, so that order matters. */
function recurrence({ shape, axis, reverse, configuration }: Case) {
  return scanWith({
    inputs: { a: tensor(f32, shape), b: tensor(f32, shape) },
    ...{ axis, reverse },
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

function referenceOf(
  { shape, axis, reverse }: Case,
  a: readonly number[],
  b: readonly number[],
): readonly number[] {
  const inner = shape.slice(axis + 1).reduce((product, extent) => product * extent, 1);
  const extent = shape[axis] ?? 1;
  const h = new Array<number>(a.length).fill(0);
  for (let step = 0; step < a.length; step += 1) {
    const element = reverse ? a.length - 1 - step : step;
    const at = Math.floor(element / inner) % extent;
    const isFirst = at === (reverse ? extent - 1 : 0);
    const before = isFirst ? 0 : (h[element + (reverse ? inner : -inner)] ?? NaN);
    h[element] = (a[element] ?? NaN) * before + (b[element] ?? NaN);
  }
  return h;
}

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(kind);
  });
  afterAll(() => {
    device.dispose();
  });

  // Order is a matter of the traced kernel; the emulator is asked for one of each kind.
  const emulated = ["along the first axis", "blocks that share a row, from the end"];
  const chosen =
    kind === "simulator"
      ? notEmulated(cases, emulated)
      : cases.filter(({ name }) => emulated.includes(name));

  test.each(chosen)("a linear recurrence: $name", async (one) => {
    const a = randomNumbers(f32, one.shape, 1, 0.9);
    const b = randomNumbers(f32, one.shape, 2, 4);
    const { h } = await device.run(recurrence(one), { a: a.array, b: b.array });
    expectClose(h, referenceOf(one, a.values, b.values), { relative: 8, absolute: 1e-5 });
  });

  // Recurrences have all of their instructions.
  test.skipIf(kind === "emulator" && !takesAll)(
    "sums that begin anew, of whole numbers and without a finish",
    async () => {
      const n = 300;
      const starts = Array.from({ length: n }, (_, at) => at % 37 === 0);
      const values = Array.from({ length: n }, (_, at) => (at * 7) % 11);
      const sums = scanWith({
        inputs: { start: tensor(i32, [n]), x: tensor(i32, [n]) },
        load: ({ start, x }) => ({ began: start, sum: x }),
        combine: (before, after) => ({
          began: before.began.or(after.began),
          sum: after.began.ne(0).select(after.sum, before.sum.add(after.sum)),
        }),
        identity: { began: 0, sum: 0 },
      });
      const { sum } = await device.run(sums, { start: starts.map(Number), x: values });
      let running = 0;
      const expected = values.map((value, at) => (running = (starts[at] ? 0 : running) + value));
      expect([...toNumbers(sum)]).toEqual(expected);
    },
  );
});

test("a state that changes its formats, or cannot be told, is refused", () => {
  const x = tensor(f32, [8]);
  const made = (change: object) => () =>
    scanWith({
      inputs: { x },
      load: ({ x: tile }) => ({ sum: tile }),
      combine: (before, after) => ({ sum: before.sum.add(after.sum) }),
      identity: { sum: 0 },
      ...change,
    });
  expect(codeOf(made({}))).toBe("nothing was thrown");
  expect(
    codeOf(
      made({
        combine: (before: { sum: { cast: (to: unknown) => unknown } }) => ({
          sum: before.sum.cast(i32),
        }),
      }),
    ),
  ).toBe("TW9905");
  expect(codeOf(made({ identity: {} }))).toBe("TW9904");
  const narrow = () =>
    scanWith({
      inputs: { x },
      load: ({ x: tile }) => ({ low: tile.cast(f8e4m3fn) }),
      combine: (before) => before,
      identity: { low: 0 },
    });
  expect(codeOf(narrow)).toBe("TW9901");
});
