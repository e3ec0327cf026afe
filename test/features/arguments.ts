/** What kernels are given: lists of arrays, promises about numbers, choices by target. */
import {
  assumeBelow,
  assumeBetween,
  assumeMultipleOf,
  block,
  byTarget,
  cdiv,
  debugPrint,
  dim,
  f32,
  i32,
  kernel,
  open,
  printLayout,
  slice,
  tensor,
  tensors,
  tracedTarget,
} from "tilewright";
import type { DeviceName, KernelDefinition, Scalar } from "tilewright";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import { attention } from "../../src/kernels/index.ts";
import type { Feature } from "./feature.ts";

const n = dim("n");

/** Elements that differ from array to array. */
function elements(count: number, array: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => ((index * 7) % 31) + 100 * array);
}

const lists: Feature = {
  name: "Lists of arrays, one picked at run time",
  written: ["tensors(3, bf16, [16, n])", "weights.at(expertOf.at(i).loadScalar())"],
  page: "language.md#lists-of-arrays",
  cases: () => {
    const order = [3, 0, 4, 1, 1, 2];
    const [rows, width] = [7, 24];
    const arrays = [0, 1, 2, 3, 4].map((array) => elements(rows * width, array));
    const given = Object.fromEntries(
      arrays.map((values, array) => [`xs[${array}]`, fromNumbers(f32, [rows, width], values)]),
    );
    return [
      {
        name: "sums of rows of each that is asked for",
        kernel: () =>
          kernel(
            {
              name: "sums_of_lists",
              grid: { i: order.length },
              inputs: { xs: tensors(5, f32, [n, width]), order: tensor(i32, [order.length]) },
              outputs: { out: tensor(f32, [order.length, width]) },
            },
            ({ i, xs, order: which, out }) => {
              const x = xs.at(which.at(i).loadScalar());
              out.at(i).store(x.at(slice(2, 8)).load().sum({ axis: 0 }));
            },
          ),
        inputs: { ...given, order: fromNumbers(i32, [order.length], order) },
        expected: {
          out: order.flatMap((array) =>
            Array.from({ length: width }, (_, column) =>
              [2, 3, 4, 5, 6].reduce(
                (sum, row) => sum + (arrays[array]?.[row * width + column] ?? NaN),
                0,
              ),
            ),
          ),
        },
        targets: ["sm_80", "sm_90a", "sm_100a", "sm_120a"],
      },
      {
        name: "by the index of a block",
        kernel: () =>
          kernel(
            {
              name: "other_lists",
              grid: { i: 2 },
              inputs: { xs: tensors(2, f32, [32, 8]) },
              outputs: { out: tensor(f32, [2, 32, 8]) },
            },
            ({ i, xs, out }) => {
              const other = xs.at(i.xor(1)).at(block(0, 32)).load();
              out.at(i).store(other.sub(xs.at(0).load()));
            },
          ),
        inputs: {
          "xs[0]": fromNumbers(f32, [32, 8], elements(256, 0)),
          "xs[1]": fromNumbers(f32, [32, 8], elements(256, 1)),
        },
        expected: { out: Array.from({ length: 512 }, (_, index) => (index < 256 ? 100 : 0)) },
      },
    ];
  },
  refused: [
    {
      code: "TW1016",
      by: () =>
        kernel(
          {
            name: "beyond",
            inputs: { xs: tensors(2, f32, [8]) },
            outputs: { out: tensor(f32, [8]) },
          },
          ({ xs, out }) => {
            out.store(xs.at(2).load());
          },
        ),
    },
    {
      code: "TW1008",
      by: () => tensors(0, f32, [8]),
    },
    {
      code: "TW4034",
      by: async () => {
        const sum = kernel(
          {
            name: "short",
            inputs: { xs: tensors(2, f32, [8]) },
            outputs: { out: tensor(f32, [8]) },
          },
          ({ xs, out }) => {
            out.store(xs.at(0).load().add(xs.at(1).load()));
          },
        );
        const device = await open("simulator");
        try {
          await device.run(sum, { xs: [fromNumbers(f32, [8], elements(8, 0))] });
        } finally {
          device.dispose();
        }
      },
    },
  ],
};

/** Sums of 64 numbers from where memory says. */
const sumsFrom = (promise: (start: Scalar<"i32">) => Scalar<"i32">): KernelDefinition =>
  kernel(
    {
      name: "sums_from",
      grid: { i: 3 },
      inputs: { x: tensor(f32, [n]), starts: tensor(i32, [3]) },
      outputs: { out: tensor(f32, [3]) },
    },
    ({ i, x, starts, out }) => {
      const start = promise(starts.at(i).loadScalar());
      out.at(i).store(x.at(slice(start, 64)).load().sum());
    },
  );

async function runWith(starts: readonly number[], device: DeviceName): Promise<void> {
  const opened = await open(device, { onFindings: () => undefined });
  try {
    const promised = sumsFrom((start) => assumeMultipleOf(start, 16));
    const x = fromNumbers(f32, [256], elements(256, 0));
    await opened.run(promised, { x, starts: fromNumbers(i32, [3], starts) });
  } finally {
    opened.dispose();
  }
}

const promises: Feature = {
  name: "Promises about integers",
  written: ["assumeBelow(assumeBetween(assumeMultipleOf(read, 64), 0, 2 ** 20), n)"],
  page: "language.md#promises",
  cases: () => {
    const starts = [192, 0, 64];
    const given = elements(256, 0);
    const inputs = {
      x: fromNumbers(f32, [256], given),
      starts: fromNumbers(i32, [3], starts),
    };
    const out = starts.map((start) =>
      given.slice(start, start + 64).reduce((sum, value) => sum + value, 0),
    );
    return [
      {
        name: "a divisor",
        kernel: () => sumsFrom((start) => assumeMultipleOf(start, 64)),
        inputs,
        expected: { out },
      },
      {
        name: "bounds",
        kernel: () => sumsFrom((start) => assumeBelow(assumeBetween(start, 0, 192), n.sub(63))),
        inputs,
        expected: { out },
        targets: ["sm_80", "sm_90a"],
      },
    ];
  },
  refused: [
    { code: "TW2106", by: () => sumsFrom((start) => assumeBetween(start, 4, 3)) },
    { code: "TW1008", by: () => sumsFrom((start) => assumeMultipleOf(start, 0)) },
    { code: "TW3026", by: () => runWith([0, 8, 16], "simulator") },
    { code: "TW3026", by: () => runWith([0, 8, 16], "emulator") },
  ],
};

/** Sums of rows; warps, grid and stages differ by target. */
const chosen = (): KernelDefinition =>
  kernel(
    {
      name: "chosen",
      grid: { i: byTarget({ sm_80: cdiv(n, 128), default: cdiv(n, 64) }) },
      warps: byTarget({ sm_80: 8, default: 4 }),
      inputs: { x: tensor(f32, [n]) },
      outputs: { out: tensor(f32, [n]) },
    },
    ({ i, x, out }) => {
      const size = byTarget({ sm_80: 128, default: 64 }).value();
      const here = block(i, size);
      const isNew = tracedTarget().features.includes("tma");
      const own = x.at(here).load();
      out.at(here).store(isNew ? own.mul(2) : own.add(own));
    },
  );

const choices: Feature = {
  name: "Choices by target in one kernel",
  written: [
    "byTarget({ sm_80: 8, default: 4 })",
    "byTarget({ sm_90a: 4, default: 2 }).value()",
    "tracedTarget().name",
  ],
  page: "language.md#choices-by-target",
  cases: () => {
    const given = elements(200, 0);
    return [
      {
        name: "warps, a grid and a size",
        kernel: chosen,
        inputs: { x: fromNumbers(f32, [200], given) },
        expected: { out: given.map((value) => 2 * value) },
        targets: ["sm_80", "sm_90a", "sm_120a"],
      },
    ];
  },
  refused: [
    {
      code: "TW1043",
      by: () => {
        const warps = byTarget({ sm_90a: 4 });
        const few = kernel(
          { name: "few", warps, outputs: { out: tensor(f32, [4]) } },
          ({ out }) => {
            out.store(1);
          },
        );
        few.kernelFor("sm_80");
      },
    },
    {
      code: "TW1033",
      // @ts-expect-error there is no such target
      by: () => byTarget({ sm_42: 4, default: 2 }),
    },
    { code: "TW1002", by: () => byTarget({ default: 2 }).value() },
  ],
};

const segments: Feature = {
  name: "Segment ids of attention",
  written: ["segmentIds = { query: i32, keyValue: i32 }", "keyValueSegmentIds: fromNumbers("],
  page: "kernels-attention.md#segments",
  cases: () => {
    const [s, t, width] = [5, 7, 16];
    const [queryIds, keyIds] = [
      [3, 1, 8, 1, 3],
      [1, 1, 3, 3, 3, 4, 1],
    ];
    const spec = { q: f32, k: f32, v: f32, segmentIds: { query: i32, keyValue: i32 } } as const;
    const plan = attention(spec).plan({ b: 1, s, t, h: 1, kv: 1, d: width, e: width });
    const [first] = plan.launches;
    if (first === undefined) throw new Error("attention is a launch");
    const numbered = Array.from({ length: t * width }, (_, at) => Math.floor(at / width) * 4);
    return [
      {
        name: "means of the values of a segment",
        kernel: () => first.kernel,
        inputs: {
          q: fromNumbers(f32, [1, s, 1, width], new Float32Array(s * width)),
          k: fromNumbers(f32, [1, t, 1, width], elements(t * width, 0)),
          v: fromNumbers(f32, [1, t, 1, width], numbered),
          querySegmentIds: fromNumbers(i32, [1, s], queryIds),
          keyValueSegmentIds: fromNumbers(i32, [1, t], keyIds),
        },
        // Scores are 0, so that weights are equal.
        expected: {
          out: queryIds.flatMap((id) => {
            const seen = keyIds.flatMap((each, key) => (each === id ? [4 * key] : []));
            const sum = seen.reduce((all, value) => all + value, 0);
            return Array.from({ length: width }, () => (seen.length === 0 ? 0 : sum / seen.length));
          }),
        },
        within: 2 ** -18,
      },
    ];
  },
  refused: [
    {
      code: "TW9902",
      by: () =>
        attention({
          ...{ q: f32, k: f32, v: f32, offsets: { q: i32, k: i32 } },
          segmentIds: { query: i32, keyValue: i32 },
        }),
    },
  ],
};

const rowSums = (): KernelDefinition =>
  kernel(
    {
      name: "row_sums",
      inputs: { x: tensor(f32, [16, 32]) },
      outputs: { out: tensor(f32, [16]) },
    },
    ({ x, out }) => {
      const tile = x.load();
      printLayout(tile, "x");
      out.store(tile.sum({ axis: 1 }));
    },
  );

const asking: Feature = {
  name: "Layouts told by the compiler, and whole tiles printed",
  written: ['printLayout(tile, "x")', "{whole}"],
  page: "language.md#finding-mistakes",
  cases: () => {
    const given = elements(512, 0);
    return [
      {
        name: "a tile that is asked for",
        kernel: rowSums,
        inputs: { x: fromNumbers(f32, [16, 32], given) },
        expected: {
          out: Array.from({ length: 16 }, (_, row) =>
            given.slice(32 * row, 32 * row + 32).reduce((sum, value) => sum + value, 0),
          ),
        },
      },
    ];
  },
  refused: [
    {
      code: "TW2002",
      by: () =>
        kernel({ name: "lone", inputs: { x: tensor(f32, [4]) } }, ({ x }) => {
          // @ts-expect-error a scalar has no layout
          printLayout(x.at(0).loadScalar());
        }),
    },
    {
      code: "TW2101",
      by: () =>
        kernel({ name: "few", inputs: { x: tensor(f32, [4]) } }, ({ x }) => {
          debugPrint("{whole} and {}", x.load());
        }),
    },
  ],
};

export const argumentFeatures: readonly Feature[] = [lists, promises, choices, segments, asking];
