/**
 * Kernels with tensor memory on the simulator and on the emulator: the same numbers, bit for bit, and those of exact sums of small integers, for every
 * format, shape and way to load. What is emitted is assembled where there is an assembler.
 */
import { describe, expect, test } from "vitest";
import {
  all,
  barrier,
  bf16,
  block,
  commitShared,
  dot,
  f16,
  f32,
  f4e2m1fn,
  f6e3m2fn,
  f8e4m3fn,
  f8e5m2,
  f8e8m0fnu,
  fromNumbers,
  full,
  i32,
  i8,
  kernel,
  loop,
  open,
  scalar,
  slice,
  smem,
  tcgen05Commit,
  tcgen05Copy,
  tcgen05Mma,
  tensor,
  tf32,
  tmem,
  toNumbers,
  u8,
} from "tilewright";
import type { DType, DTypeName, KernelDefinition } from "tilewright";
import { main as productOfLoops, matmul } from "../examples/matmul.ts";
import { main as productOfBlock } from "../examples/tcgen05-block.ts";
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

function matrix<D extends DTypeName>(
  dtype: DType<D>,
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
    ["320 columns", { a: f16, sum: f16, shape: [128, 320, 16] }],
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

describe("scales of blocks", () => {
  /** Powers of two from 1/4 to 4. */
  const leftScale = (row: number, block: number): number => 2 ** (((row + 3 * block) % 5) - 2);
  const rightScale = (row: number, block: number): number => 2 ** (((2 * row + block) % 5) - 2);

  /** Scales as they lie in memory: atoms of 128 rows by 4 blocks. */
  function atoms(
    dtype: DType,
    rows: number,
    blocks: number,
    of: (row: number, block: number) => number,
  ) {
    const shape = [Math.ceil(rows / 128), Math.ceil(blocks / 4), 32, 16] as const;
    const values = new Float64Array(shape[0] * shape[1] * 512).fill(1);
    for (let row = 0; row < rows; row += 1)
      for (let block = 0; block < blocks; block += 1) {
        const atom = (row >> 7) * shape[1] + (block >> 2);
        values[atom * 512 + (row & 31) * 16 + ((row >> 5) & 3) * 4 + (block & 3)] = of(row, block);
      }
    return fromNumbers(dtype, shape, values);
  }

  interface ScaledForm {
    readonly formats: readonly [a: DType, b: DType, scales: DType];
    readonly block: 16 | 32;
    readonly shape: readonly [m: number, n: number, k: number];
    readonly aInTensorMemory?: boolean;
  }

  function scaling({ formats, block: each, shape, aInTensorMemory = false }: ScaledForm) {
    const [aFormat, bFormat, scaleFormat] = formats;
    const [m, n, k] = shape;
    const blocks = Math.ceil(k / each / 4);
    const wide = { a: [1, blocks], b: [Math.ceil(n / 128), blocks] };
    const places = { a: [128, 4 * blocks], b: [128 * Math.ceil(n / 128), 4 * blocks] };
    return kernel(
      {
        name: "scaled",
        inputs: {
          x: tensor(aFormat, [m, k]),
          y: tensor(bFormat, [n, k]),
          xScales: tensor(scaleFormat, [...wide.a, 32, 16]),
          yScales: tensor(scaleFormat, [...wide.b, 32, 16]),
        },
        outputs: { out: tensor(f32, [m, n]) },
        scratch: {
          sums: tmem(f32, [m, n]),
          a: smem(aFormat, [m, k]),
          b: smem(bFormat, [n, k]),
          factor: tmem(aFormat, [m, aInTensorMemory ? k : 64], { packed: true }),
          first: smem(scaleFormat, [...wide.a, 32, 16]),
          second: smem(scaleFormat, [...wide.b, 32, 16]),
          aScales: tmem(scaleFormat, places.a, { scales: true }),
          bScales: tmem(scaleFormat, places.b, { scales: true }),
          done: barrier(),
        },
      },
      (all) => {
        const { a, b, first, second, aScales, bScales, sums, factor, done, out } = all;
        a.store(all.x.load());
        b.store(all.y.load());
        if (aInTensorMemory) factor.store(all.x.load());
        first.store(all.xScales.load());
        second.store(all.yScales.load());
        commitShared();
        tcgen05Copy(first, aScales);
        tcgen05Copy(second, bScales);
        const scales = [aScales, bScales] as const;
        const left = aInTensorMemory ? factor : a;
        tcgen05Mma(sums, left, b.transpose(), { adds: false, scales, block: each });
        tcgen05Commit(done);
        done.wait();
        for (let column = 0; column < n; column += 16) {
          const part = [slice(0, m), slice(column, 16)] as const;
          out.at(...part).store(sums.at(...part).load());
        }
      },
    );
  }

  const mixed = [f8e4m3fn, f8e5m2, f8e8m0fnu] as const;
  const fours = [f4e2m1fn, f4e2m1fn, f8e8m0fnu] as const;
  const nvfp4 = [f4e2m1fn, f4e2m1fn, f8e4m3fn] as const;
  test.each<[string, ScaledForm, string]>([
    [
      "e4m3 by e5m2",
      { formats: mixed, block: 32, shape: [128, 16, 64] },
      "mxf8f6f4.block_scale.scale_vec::1X",
    ],
    [
      "e4m3 by e5m2, several atoms",
      { formats: mixed, block: 32, shape: [128, 160, 192] },
      "mxf8f6f4.block_scale.scale_vec::1X",
    ],
    [
      "e3m2 in tensor memory by e4m3",
      {
        formats: [f6e3m2fn, f8e4m3fn, f8e8m0fnu],
        block: 32,
        shape: [128, 16, 64],
        aInTensorMemory: true,
      },
      "mxf8f6f4.block_scale.scale_vec::1X",
    ],
    [
      "mxfp4",
      { formats: fours, block: 32, shape: [128, 160, 384] },
      "mxf4.block_scale.scale_vec::2X",
    ],
    [
      "mxfp4 in tensor memory",
      { formats: fours, block: 32, shape: [128, 16, 128], aInTensorMemory: true },
      "mxf4.block_scale.scale_vec::2X",
    ],
    [
      "nvfp4",
      { formats: nvfp4, block: 16, shape: [128, 160, 192] },
      "mxf4nvf4.block_scale.scale_vec::4X",
    ],
    [
      "FP4 with e8m0 for each 16",
      { formats: fours, block: 16, shape: [128, 16, 128] },
      "mxf4nvf4.block_scale.scale_vec::4X",
    ],
  ])("of %s", async (_, form, opcode) => {
    const {
      formats: [aFormat, bFormat, scaleFormat],
      block: each,
      shape: [m, n, k],
    } = form;
    const definition = scaling(form);
    // Those of e4m3 have a mantissa.
    const scaleOf = (row: number, at: number): number =>
      scaleFormat === f8e4m3fn ? (1 + ((row + 3 * at) % 6)) / 4 : leftScale(row, at);
    const inputs = {
      x: matrix(aFormat, m, k, true, left),
      y: matrix(bFormat, n, k, true, (column, row) => right(row, column)),
      xScales: atoms(scaleFormat, m, k / each, scaleOf),
      yScales: atoms(scaleFormat, n, k / each, rightScale),
    };
    const expected = Array.from({ length: m * n }, (_value, at) => {
      const [row, column] = [Math.floor(at / n), at % n];
      let total = 0;
      for (let depth = 0; depth < k; depth += 1)
        total +=
          left(row, depth) *
          right(depth, column) *
          scaleOf(row, Math.floor(depth / each)) *
          rightScale(column, Math.floor(depth / each));
      return total;
    });
    for (const kind of ["simulator", "emulator"] as const) {
      const device = await open(kind, { target: "sm_100a" });
      const { out } = await device.run(definition, inputs);
      device.dispose();
      expect([...toNumbers(out)], kind).toEqual(expected);
    }
    const ptx = printPtx(lower(definition.kernel, targets.sm_100a).module);
    expect(ptx).toContain(`kind::${opcode}`);
    if (hasPtxas) expect(assemble(ptx, "sm_100a")).toBe("");
  });
});

describe("dot in a loop", () => {
  test.each([
    ["sm_80", /mma\.sync/],
    ["sm_90a", /wgmma\.mma_async/],
    ["sm_100a", /tcgen05\.mma/],
    ["sm_103a", /tcgen05\.mma/],
    ["sm_120a", /mma\.sync/],
  ] as const)("is made on %s by %s, from one source", (name, instruction) => {
    const ptx = printPtx(lower(matmul.kernel, targets[name]).module);
    expect(ptx).toMatch(instruction);
    // With full optimization, which wgmma needs, the examples' own test assembles it.
    if (hasPtxas && name !== "sm_90a") expect(assemble(ptx, name)).toBe("");
  });

  test("gives what the example expects, from tensor memory", async () => {
    const device = await open("emulator", { target: "sm_100a" });
    const { worst } = await productOfLoops(device);
    device.dispose();
    expect(worst).toBeLessThanOrEqual(1);
  });

  test.each([
    ["f16, 64 rows, 4 warps", f16, [64, 32, 32], 4, 5],
    ["bf16, 128 rows, 8 warps", bf16, [128, 64, 32], 8, 3],
    ["no step", bf16, [128, 64, 32], 4, 0],
  ] as const)("begins with what it adds to: %s", async (_, dtype, [m, n, k], warps, steps) => {
    const depth = k * 6;
    const definition = kernel(
      {
        name: "looped",
        warps,
        inputs: {
          x: tensor(dtype, [m, depth]),
          y: tensor(dtype, [depth, n]),
          count: scalar(i32),
        },
        outputs: { out: tensor(f32, [m, n]) },
      },
      ({ x, y, out, count }) => {
        const carry = full(f32, [m, n], 3);
        const sum = loop({ to: count, carry }, (step, accumulator) =>
          dot(x.at(all, block(step, k)).load(), y.at(block(step, k), all).load(), { accumulator }),
        );
        out.store(sum);
      },
    );
    expect(printPtx(lower(definition.kernel, targets.sm_100a).module)).toMatch(/tcgen05\.mma/);
    const inputs = {
      x: matrix(dtype, m, depth, true, left),
      y: matrix(dtype, depth, n, true, (row, column) => right(row, column)),
      count: steps,
    };
    const expected = Array.from({ length: m * n }, (_value, at) => {
      let total = 3;
      for (let each = 0; each < k * steps; each += 1)
        total += left(Math.floor(at / n), each) * right(each, at % n);
      return total;
    });
    for (const kind of ["simulator", "emulator"] as const) {
      const device = await open(kind, { target: "sm_100a" });
      const { out } = await device.run(definition, inputs as never);
      device.dispose();
      expect([...toNumbers(out)], kind).toEqual(expected);
    }
  });
});

test.each([
  ["in one block", productOfBlock],
  ["with a thread for each kind of work", main],
])("the example %s is right on both", async (_, run) => {
  for (const kind of ["simulator", "emulator"] as const) {
    const device = await open(kind, { target: "sm_100a" });
    const { worst } = await run(device);
    device.dispose();
    expect(worst).toBeLessThanOrEqual(1);
  }
});
