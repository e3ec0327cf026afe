/** The kernel for one row: against exact sums, with ends of k and n inside of blocks, and when it is refused or chosen. */
import { expect, onTestFinished, test } from "vitest";
import { bf16, f16, f32 } from "../../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import { tensor, dim } from "../../../lang/index.ts";
import { open } from "../../../runtime/open.ts";
import { hasPtxas } from "../../../../test/ptxas.ts";
import { assemblyProblems } from "../../../../test/support/clean-assembly.ts";
import { codeOf } from "../../../../test/support/library-checks.ts";
import type { GemvConfiguration } from "../configuration.ts";
import { matmul } from "../matmul.ts";

const [m, n, k] = [dim("m"), dim("n"), dim("k")];
const usual: GemvConfiguration = { kernel: "gemv", columns: 2, warps: 4, words: 2 };
const byColumns = { strides: [1, k] } as const;

// Of -1, 0 and 1, whose sums every format holds.
function numbers(count: number, step: number): number[] {
  return Array.from({ length: count }, (_, index) => (Math.trunc(index * step) % 3) - 1);
}

test.each([
  ["simulator", bf16, [5, 2600], usual],
  ["emulator", bf16, [6, 4104], usual],
  ["emulator", f16, [3, 1000], { ...usual, columns: 1, warps: 1, words: 4 }],
  ["emulator", bf16, [9, 333], { ...usual, columns: 4, warps: 2, words: 1 }],
] as const)(
  "on the %s, of %o and %o: sums and their bias, at least -7",
  async (place, dtype, [columns, depth], configuration) => {
    const product = matmul({
      a: tensor(dtype, [m, k]),
      b: tensor(dtype, [k, n], byColumns),
      out: f32,
      inputs: { bias: tensor(f32, [n]) },
      epilogue: ({ sums, bias }) => sums.add(bias).maximum(-7),
      configuration,
    });
    const [row, weights] = [numbers(depth, 1.37), numbers(columns * depth, 2.71)];
    const bias = numbers(columns, 1.9);
    const device = await open(place, { onNotes: () => undefined });
    onTestFinished(() => {
      device.dispose();
    });
    const { out } = await device.run(product, {
      a: fromNumbers(dtype, [1, depth], row),
      b: fromNumbers(dtype, [depth, columns], weights),
      bias: fromNumbers(f32, [columns], bias),
    });
    const exact = bias.map((each, column) => {
      let sum = each;
      for (let at = 0; at < depth; at += 1)
        sum += (row[at] ?? NaN) * (weights[column * depth + at] ?? NaN);
      return Math.max(-7, sum);
    });
    expect([...toNumbers(out)]).toEqual(exact);
  },
);

test("what it cannot be is refused", () => {
  const sizes = { m: 1, n: 64, k: 64 };
  const b = tensor(bf16, [k, n], byColumns);
  const a = tensor(bf16, [m, k]);
  const codes = [
    () => matmul({ a, b, configuration: usual }).plan({ ...sizes, m: 2 }),
    () => matmul({ a: bf16, b: bf16, configuration: usual }).plan(sizes),
    () => matmul({ a, b, configuration: { ...usual, words: 3 as 2 } }).plan(sizes),
    () =>
      matmul({
        a: tensor(f32, [m, k]),
        b: tensor(f32, [k, n], byColumns),
        ...{ precision: "tf32", configuration: usual },
      }).plan(sizes),
  ].map(codeOf);
  expect(codes).toEqual(Array(4).fill("TW9904"));
  expect(matmul({ a, b, configuration: usual }).plan(sizes).configuration).toEqual(usual);
});

test("epilogues that combine columns are refused in blocks of one column, too", () => {
  const op = matmul({
    ...{ a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n], byColumns), out: f32 },
    epilogue: ({ sums }) => sums.sub(sums.max({ axis: 1, keepDims: true })),
  });
  const sizes = { m: 1, n: 8192, k: 28672 };
  expect(op.plan(sizes).configuration).toMatchObject({ kernel: "gemv", columns: 1 });
  expect(codeOf(() => op.kernels(sizes))).toBe("TW9905");
});

test("it is chosen for one row of many weights by columns, with as many lanes as k has use for", () => {
  const chosen = (rows: number, columns: number, depth: number): unknown =>
    matmul({ a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n], byColumns) }).plan({
      ...{ m: rows, n: columns, k: depth },
    }).configuration;
  // 102.3 µs instead of 103.1, 27.4 instead of 28.7, 2.7 instead of 4.2.
  expect(chosen(1, 8192, 28672)).toEqual({ kernel: "gemv", columns: 1, warps: 4, words: 4 });
  expect(chosen(1, 4096, 14336)).toMatchObject({ kernel: "gemv", warps: 2 });
  expect(chosen(1, 320, 4864)).toMatchObject({ kernel: "gemv" });
  // 2.9 µs, 3.4 by lanes.
  expect(chosen(1, 3968, 696)).toMatchObject({ kernel: "persistent" });
  // Few columns of long k would leave memory idle; two rows, and rows that lanes cannot read by 16 bytes, are the others'.
  expect(chosen(1, 128, 28672)).toMatchObject({ kernel: "persistent" });
  expect(chosen(2, 8192, 28672)).toMatchObject({ kernel: "persistent" });
  expect(chosen(1, 1001, 3003)).not.toMatchObject({ kernel: "gemv" });
});

test.skipIf(!hasPtxas)("no registers are spilled", () => {
  const op = matmul({ a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n], byColumns) });
  expect(assemblyProblems(op.kernels({ m: 1, n: 8192, k: 28672 }))).toEqual([]);
});
