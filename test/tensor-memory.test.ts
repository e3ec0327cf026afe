/**
 * Kernels with tensor memory on the simulator and on the emulator: the same numbers, bit for bit, and those of exact sums of small integers, for every
 * format, shape and way to load. What is emitted is assembled where there is an assembler.
 */
import { describe, expect, test } from "vitest";
import {
  all,
  barrier,
  bf16,
  commitShared,
  f16,
  f32,
  f8e4m3fn,
  f8e5m2,
  fromNumbers,
  i32,
  i8,
  kernel,
  open,
  slice,
  smem,
  tcgen05Commit,
  tcgen05Mma,
  tensor,
  tf32,
  tmem,
  toNumbers,
  u8,
} from "tilewright";
import type { DType, KernelDefinition } from "tilewright";
import { main } from "../examples/tcgen05-matmul.ts";
import { lower } from "../src/lower/stages.ts";
import { tmemShapes } from "../src/ir/ops/tensor-memory.ts";
import type { TmemShape } from "../src/ir/ops/tensor-memory.ts";
import { printPtx } from "../src/ptx/printer.ts";
import { targets } from "../src/targets/target.ts";
import { assemble } from "./support/accepted-assembly.ts";
import { hasPtxas } from "./support/assembler.ts";

interface Form {
  readonly a: DType;
  readonly b?: DType;
  readonly sum?: DType;
  readonly shape?: readonly [m: number, n: number, k: number];
  /** Whether the factors lie along k. */
  readonly alongK?: readonly [a: boolean, b: boolean];
  readonly aInTensorMemory?: boolean;
  readonly load?: TmemShape;
}

const left = (row: number, column: number): number => (row * 7 + column * 3) % 5;
const right = (row: number, column: number): number => (row * 5 + column * 11) % 4;

function multiplying(form: Form): KernelDefinition {
  const { a, b = a, sum = f32, shape: [m, n, k] = [128, 32, 32] } = form;
  const { alongK: [leftAlong, rightAlong] = [true, true], load, aInTensorMemory = false } = form;
  const tiles = n > 128 ? 1 : 2;
  const width = Math.min(n, 64);
  const along = { left: leftAlong ? [m, k] : [k, m], right: rightAlong ? [n, k] : [k, n] };
  return kernel(
    {
      name: "multiplying",
      inputs: { x: tensor(a, along.left), y: tensor(b, along.right) },
      outputs: { out: tensor(sum, [m, n]) },
      scratch: {
        sums: tmem(sum, [tiles, m, n]),
        factor: tmem(a, [m, aInTensorMemory ? k : 32], { packed: a.bits < 32 }),
        left: smem(a, along.left),
        right: smem(b, along.right),
        done: barrier(),
      },
    },
    ({ x, y, out, sums, factor, left: own, right: other, done }) => {
      own.store(x.load());
      other.store(y.load());
      const first = leftAlong ? own : own.transpose();
      if (aInTensorMemory) factor.store(first.load());
      commitShared();
      const second = rightAlong ? other.transpose() : other;
      const into = sums.at(tiles - 1);
      tcgen05Mma(into, aInTensorMemory ? factor : first, second, { adds: false });
      tcgen05Mma(into, aInTensorMemory ? factor : first, second);
      tcgen05Commit(done);
      done.wait();
      // Through tensor memory again, by the same instruction.
      const by = load && { shape: load };
      for (let column = 0; column < n; column += width) {
        const part = slice(column, width);
        sums.at(0, all, part).store(into.at(all, part).load(by), by);
        out.at(all, part).store(sums.at(0, all, part).load());
      }
    },
  );
}

function matrix(
  dtype: DType,
  rows: number,
  columns: number,
  along: boolean,
  of: (row: number, column: number) => number,
) {
  const [outer, inner] = along ? [rows, columns] : [columns, rows];
  const values = Float64Array.from({ length: rows * columns }, (_, at) => {
    const [first, second] = [Math.floor(at / inner), at % inner];
    return along ? of(first, second) : of(second, first);
  });
  return fromNumbers(dtype, [outer, inner], values);
}

async function run(form: Form): Promise<void> {
  const { a, b = a, shape: [m, n, k] = [128, 32, 32], alongK = [true, true] } = form;
  const expected = Array.from({ length: m * n }, (_, at) => {
    let total = 0;
    for (let each = 0; each < k; each += 1)
      total += left(Math.floor(at / n), each) * right(each, at % n);
    return 2 * total;
  });
  const inputs = {
    x: matrix(a, m, k, alongK[0], left),
    y: matrix(b, n, k, alongK[1], (column, row) => right(row, column)),
  };
  const definition = multiplying(form);
  for (const kind of ["simulator", "emulator"] as const) {
    const device = await open(kind, { target: "sm_100a" });
    try {
      const results = await device.run(definition, inputs as never);
      const out = (results as { readonly [name: string]: Parameters<typeof toNumbers>[0] })["out"];
      expect([...toNumbers(out ?? expect.fail())], kind).toEqual(expected);
    } finally {
      device.dispose();
    }
  }
  if (hasPtxas)
    expect(assemble(printPtx(lower(definition.kernel, targets.sm_100a).module), "sm_100a")).toBe(
      "",
    );
}

describe("products", () => {
  test.each<[string, Form]>([
    ["bf16", { a: bf16 }],
    ["f16 into f16", { a: f16, sum: f16 }],
    ["tf32", { a: tf32 }],
    ["e4m3 by e5m2", { a: f8e4m3fn, b: f8e5m2 }],
    ["i8 by u8", { a: i8, b: u8, sum: i32 }],
    ["64 rows", { a: bf16, shape: [64, 8, 32] }],
    ["256 columns", { a: bf16, shape: [128, 256, 16] }],
    ["a by columns", { a: bf16, alongK: [false, true] }],
    ["b by rows", { a: bf16, alongK: [true, false] }],
    ["both across", { a: f16, alongK: [false, false] }],
    ["a in tensor memory", { a: bf16, aInTensorMemory: true }],
    ["a of 8 bits in tensor memory", { a: f8e4m3fn, aInTensorMemory: true }],
  ])("of %s", async (_, form) => {
    await run(form);
  });
});

describe("loads and stores", () => {
  test.each(tmemShapes)("by %s", async (load) => {
    await run({ a: bf16, shape: [128, 32, 16], load });
    await run({ a: f16, sum: f16, shape: [128, 32, 16], load });
    if (load !== "32x32b") await run({ a: bf16, shape: [64, 32, 16], load });
  });
});

test("the example is right on both", async () => {
  for (const kind of ["simulator", "emulator"] as const) {
    const device = await open(kind, { target: "sm_100a" });
    const { worst } = await main(device);
    device.dispose();
    expect(worst).toBeLessThanOrEqual(1);
  }
});
