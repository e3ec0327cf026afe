/** Atomic updates of every format in both memories, and asynchronous copies in every direction and form. */
import { bool, dtypes, i32, isFloat } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { atomicFormats } from "../../src/ir/infer/memory.ts";
import {
  tensor,
  barrier,
  cdiv,
  commitGlobal,
  commitGroup,
  commitShared,
  copyAsync,
  kernel,
  prefetch,
  prefetchMaps,
  slice,
  smem,
  waitGroup,
} from "../../src/lang/index.ts";
import type { AtomicFunction, CopyOptions } from "../../src/lang/index.ts";
import { exact } from "./case.ts";
import type { MatrixCase } from "./case.ts";
import { allFormats } from "./elementwise.ts";
import { anyNumbers, convertHost, ordinaryNumbers } from "./inputs.ts";

type Update = AtomicFunction | "compare_exchange";
const updates = Object.keys(atomicFormats) as readonly Update[];

/** Every element is updated once by each of two blocks; sums of small whole numbers are exact. */
function atomicCase(fn: Update, dtype: DType, seed: number): MatrixCase {
  return {
    name: `atomic ${fn} ${dtype.name}`,
    prepare: () => ({
      definition: kernel(
        {
          name: "updated",
          inputs: { x: tensor(dtype, [3, 40]), y: tensor(dtype, [3, 40]) },
          inouts: { all: tensor(dtype, [3, 40]) },
          outputs: { before: tensor(dtype, [3, 40]), own: tensor(dtype, [3, 40]) },
          scratch: { buffer: smem(dtype, [3, 40]) },
        },
        ({ x, y, all, before, own, buffer }) => {
          const [first, second] = [x.load(), y.load()];
          buffer.store(first);
          if (fn === "compare_exchange") {
            before.store(all.compareExchange(first as never, second as never));
            buffer.compareExchange(first as never, second as never);
          } else {
            before.store(all.atomic(fn, first as never));
            buffer.atomic(fn, second as never);
          }
          own.store(buffer.load());
        },
      ),
      inputs: {
        x: whole(dtype, seed),
        y: whole(dtype, seed + 1),
        all: whole(dtype, fn === "compare_exchange" ? seed : seed + 2),
      },
      tolerance: exact,
    }),
  };
}

function whole(dtype: DType, seed: number) {
  return isFloat(dtype) ? wholeFloats(dtype, seed) : ordinaryNumbers(dtype, [3, 40], seed);
}

/** Whole numbers, whose sums are exact in every format that has atomics. */
function wholeFloats(dtype: DType, seed: number) {
  return convertHost(ordinaryNumbers(i32, [3, 40], seed), dtype);
}

function atomics(): readonly MatrixCase[] {
  return updates.flatMap((fn) =>
    allFormats
      .filter(({ name }) => atomicFormats[fn].includes(name))
      .map((dtype, seed) => atomicCase(fn, dtype, seed)),
  );
}

/** One counter that all blocks add to: the sum shows whether an update was lost. */
function contended(): MatrixCase {
  return {
    name: "atomic add of many blocks",
    prepare: () => ({
      definition: kernel(
        { name: "counted", grid: { i: 200 }, inouts: { total: tensor(i32, [8]) } },
        ({ i, total }) => {
          total.at(i.rem(8)).atomic("add", 1);
        },
      ),
      inputs: { total: ordinaryNumbers(i32, [8], 1) },
      tolerance: exact,
    }),
  };
}

/** Sums whose old values nobody asks for: neighbours are added together. */
function sums(): readonly MatrixCase[] {
  const { f32, f16, bf16 } = dtypes;
  return [f32, f16, bf16].map((dtype, seed) => ({
    name: `atomic sums ${dtype.name}`,
    prepare: () => ({
      definition: kernel(
        {
          name: "summed",
          grid: { i: 2 },
          inputs: { x: tensor(dtype, [3, 40]) },
          inouts: { all: tensor(dtype, [3, 40]) },
        },
        ({ x, all }) => {
          all.atomic("add", x.load() as never);
        },
      ),
      inputs: { x: whole(dtype, seed), all: whole(dtype, seed + 1) },
      tolerance: exact,
    }),
  }));
}

interface CopyForm {
  readonly name: string;
  readonly shape: readonly number[];
  readonly tile: readonly number[];
  readonly fill?: "nan";
}

const forms: readonly CopyForm[] = [
  { name: "one axis", shape: [1000], tile: [256] },
  { name: "rows", shape: [40, 64], tile: [16, 64] },
  { name: "overhanging", shape: [50, 72], tile: [32, 32] },
  { name: "odd rows", shape: [9, 33], tile: [8, 32] },
  { name: "three axes", shape: [3, 20, 48], tile: [2, 8, 32] },
];

/** f32 that TMA rounds to tf32 on its way, beside what lanes make of it, block by block. */
function roundedCopyCase(seed: number): MatrixCase {
  const { f32, tf32 } = dtypes;
  const [shape, tile] = [
    [40, 72],
    [16, 32],
  ] as const;
  return {
    name: "copyAsync f32 as tf32",
    prepare: () => ({
      definition: kernel(
        {
          name: "rounded",
          grid: { i: cdiv(shape[0], tile[0]), j: cdiv(shape[1], tile[1]) },
          inputs: { x: tensor(f32, shape) },
          outputs: { out: tensor(tf32, shape), same: tensor(bool, shape) },
          scratch: { buffer: smem(tf32, tile), landed: barrier() },
        },
        ({ i, j, x, out, same, buffer, landed }) => {
          const here = [slice(i.mul(tile[0]), tile[0]), slice(j.mul(tile[1]), tile[1])] as const;
          copyAsync(x.at(...here), buffer, { barrier: landed });
          landed.wait();
          const rounded = buffer.load();
          const cast = x
            .at(...here)
            .load()
            .cast(tf32);
          out.at(...here).store(rounded);
          same.at(...here).store(rounded.eq(cast).or(cast.ne(cast)));
        },
      ),
      inputs: { x: anyNumbers(f32, shape, seed) },
      tolerance: exact,
    }),
  };
}

/** In and out again by TMA, block by block. */
function copyCase(dtype: DType, form: CopyForm, seed: number): MatrixCase {
  const { shape, tile } = form;
  const axes = ["i", "j", "k"].slice(0, shape.length);
  const grid = Object.fromEntries(
    axes.map((axis, index) => [axis, cdiv(shape[index] ?? 1, tile[index] ?? 1)]),
  );
  return {
    name: `copyAsync ${dtype.name} ${form.name}`,
    prepare: () => ({
      definition: kernel(
        {
          name: "carried",
          grid,
          inputs: { x: tensor(dtype, shape) },
          outputs: { out: tensor(dtype, shape), seen: tensor(dtype, shape) },
          scratch: { buffer: smem(dtype, tile), landed: barrier() },
        },
        (things: { readonly [name: string]: never }) => {
          const { x, out, seen, buffer, landed } = things as never as {
            readonly x: Window;
            readonly out: Window;
            readonly seen: Window;
            readonly buffer: Window;
            readonly landed: { wait(): void };
          };
          const here = axes.map((axis, index) => {
            const position = things[axis] as unknown as { mul(by: number): never };
            return slice(position.mul(tile[index] ?? 1), tile[index] ?? 1);
          });
          prefetch(x.at(...here) as never);
          prefetchMaps(x as never);
          copyAsync(x.at(...here) as never, buffer as never, { barrier: landed as never });
          landed.wait();
          seen.at(...here).store(buffer.load());
          copyAsync(buffer as never, out.at(...here) as never);
          commitGroup();
          waitGroup(0);
        },
      ),
      inputs: { x: anyNumbers(dtype, shape, seed) },
      tolerance: exact,
    }),
  };
}

interface Window {
  at(...indices: readonly unknown[]): Window;
  load(): unknown;
  store(value: unknown): void;
}

const copied = allFormats.filter(({ bits }) => bits >= 8);

/** Reductions that TMA makes in global memory. */
function reductionCases(): readonly MatrixCase[] {
  const { f16, bf16, f32, f64, u32, i64, u64 } = dtypes;
  const integers = [i32, u32, i64, u64];
  const extrema = [f16, bf16, ...integers];
  const kinds: { readonly [R in NonNullable<CopyOptions["reduction"]>]: readonly DType[] } = {
    add: [...extrema, f32, f64],
    min: extrema,
    max: extrema,
    inc: [u32],
    dec: [u32],
    and: integers,
    or: integers,
    xor: integers,
  };
  // f64 is added by copies without a map, which clip nothing.
  const rowsOf = (dtype: DType): number => (dtype === f64 ? 32 : 24);
  return (Object.keys(kinds) as (keyof typeof kinds)[]).flatMap((reduction) =>
    kinds[reduction].map((dtype, seed): MatrixCase => ({
      name: `copyAsync ${reduction} ${dtype.name}`,
      prepare: () => ({
        definition: kernel(
          {
            name: "combined",
            inputs: { x: tensor(dtype, [rowsOf(dtype), 64]) },
            inouts: { all: tensor(dtype, [rowsOf(dtype), 64]) },
            scratch: { buffer: smem(dtype, [16, 64]) },
            grid: { i: 2 },
          },
          ({ i, x, all, buffer }) => {
            const here = slice(i.mul(16), 16);
            buffer.store(x.at(here).load());
            commitShared();
            copyAsync(buffer, all.at(here) as never, { reduction });
            commitGroup();
            waitGroup(0);
          },
        ),
        inputs: {
          x: convertHost(ordinaryNumbers(i32, [rowsOf(dtype), 64], seed), dtype),
          all: convertHost(ordinaryNumbers(i32, [rowsOf(dtype), 64], seed + 9), dtype),
        },
        tolerance: exact,
      }),
    })),
  );
}

/** What is outside, as NaN. */
function nanFill(): readonly MatrixCase[] {
  const { f32, f16, bf16 } = dtypes;
  const one = (dtype: DType, width: number, seed: number): MatrixCase => ({
    name: `copyAsync filled with NaN ${dtype.name}${width === 64 ? "" : " by lanes"}`,
    prepare: () => ({
      definition: kernel(
        {
          name: "filled",
          inputs: { x: tensor(dtype, [10, width]) },
          outputs: { out: tensor(dtype, [16, 64]) },
          scratch: { buffer: smem(dtype, [16, 64]), landed: barrier() },
        },
        ({ x, out, buffer, landed }) => {
          const window = x.at(slice(0, 16), slice(0, 64));
          copyAsync(window, buffer, { barrier: landed, fill: "nan" });
          landed.wait();
          out.store(buffer.load());
        },
      ),
      inputs: { x: anyNumbers(dtype, [10, width], seed) },
      tolerance: exact,
    }),
  });
  // Rows of 51 elements are copied by lanes.
  return [f32, f16, bf16].flatMap((dtype, seed) => [one(dtype, 64, seed), one(dtype, 51, seed)]);
}

/** Windows that reach so far beyond their array that all of a register is outside, whatever the lane. */
function farOutside(): readonly MatrixCase[] {
  const { f32, f16, i8, u4, f64 } = dtypes;
  const reaches = [
    [40, 50, 64, 64],
    [1, 7, 1, 8],
    [2, 300, 4, 512],
  ] as const;
  return [f32, f16, i8, u4, f64].flatMap((dtype, seed) =>
    reaches.map(([rows, columns, height, width]): MatrixCase => ({
      name: `load filled ${dtype.name} ${height}x${width} of ${rows}x${columns}`,
      prepare: () => ({
        definition: kernel(
          {
            name: "outside",
            inputs: { x: tensor(dtype, [2 * rows, 2 * columns]) },
            outputs: { out: tensor(dtype, [height, width]) },
          },
          ({ x, out }) => {
            const view = x.at(slice(0, rows), slice(0, columns));
            out.store(view.at(slice(0, height), slice(0, width)).load({ fill: 3 }));
          },
        ),
        inputs: { x: anyNumbers(dtype, [2 * rows, 2 * columns], seed) },
        tolerance: exact,
      }),
    })),
  );
}

/** Windows that begin at a column which is no multiple of 16 bytes, or end outside. */
function oddStarts(): readonly MatrixCase[] {
  return copied
    .filter(({ bits }) => bits >= 8)
    .flatMap((dtype, seed) =>
      [1, 3, 80].map((start): MatrixCase => ({
        name: `copyAsync ${dtype.name} from column ${start}`,
        prepare: () => ({
          definition: kernel(
            {
              name: "odd_start",
              inputs: { x: tensor(dtype, [24, 96]) },
              outputs: { out: tensor(dtype, [8, 32]) },
              scratch: { buffer: smem(dtype, [8, 32]), landed: barrier() },
            },
            ({ x, out, buffer, landed }) => {
              copyAsync(x.at(slice(2, 8), slice(start, 32)), buffer, { barrier: landed });
              landed.wait();
              out.store(buffer.load());
            },
          ),
          inputs: { x: anyNumbers(dtype, [24, 96], seed) },
          tolerance: exact,
        }),
      })),
    );
}

/** What lanes write to global memory, read back by TMA. */
function committed(): MatrixCase {
  const { f32 } = dtypes;
  return {
    name: "copyAsync of what lanes wrote",
    prepare: () => ({
      definition: kernel(
        {
          name: "committed",
          inputs: { x: tensor(f32, [16, 64]) },
          inouts: { middle: tensor(f32, [16, 64]) },
          outputs: { out: tensor(f32, [16, 64]) },
          scratch: { buffer: smem(f32, [16, 64]), landed: barrier() },
        },
        ({ x, middle, out, buffer, landed }) => {
          middle.store(x.load().mul(2));
          commitGlobal();
          copyAsync(middle, buffer, { barrier: landed });
          landed.wait();
          out.store(buffer.load());
        },
      ),
      inputs: {
        x: ordinaryNumbers(f32, [16, 64], 1),
        middle: ordinaryNumbers(f32, [16, 64], 2),
      },
      tolerance: exact,
    }),
  };
}

export function updatingCases(): readonly MatrixCase[] {
  return [
    ...atomics(),
    contended(),
    ...sums(),
    ...copied.flatMap((dtype, seed) =>
      forms
        .filter(({ tile }) => ((tile.at(-1) ?? 0) * dtype.bits) % 128 === 0)
        .map((form) => copyCase(dtype, form, seed)),
    ),
    roundedCopyCase(7),
    ...reductionCases(),
    ...nanFill(),
    ...oddStarts(),
    ...farOutside(),
    committed(),
  ];
}
