/**
 * Products of pairs of blocks: simulator and emulator give the same numbers, those of exact sums of small integers, for every format and way that factors
 * lie. What is emitted is assembled where there is an assembler.
 */
import { describe, expect, test } from "vitest";
import {
  all,
  barrier,
  bf16,
  block,
  copyAsync,
  f16,
  f32,
  f8e4m3fn,
  f8e5m2,
  f8e8m0fnu,
  fromNumbers,
  i32,
  i8,
  kernel,
  open,
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
  union,
  when,
} from "tilewright";
import type { DType, DTypeName, HostArray, KernelDefinition } from "tilewright";
import { lower } from "../src/lower/stages.ts";
import { printPtx } from "../src/ptx/printer.ts";
import { targets } from "../src/targets/target.ts";
import { assemble } from "./support/accepted-assembly.ts";
import { hasPtxas } from "./support/assembler.ts";
import { takesAll, usually } from "./support/sample.ts";

interface Form {
  readonly a: DType;
  readonly b?: DType;
  readonly sum?: DType;
  /** Of the whole product: 256 or 128 rows. */
  readonly shape?: readonly [m: number, n: number, k: number];
  /** Whether the factors lie along k. */
  readonly alongK?: readonly [a: boolean, b: boolean];
  readonly aInTensorMemory?: boolean;
  /** Whether sums are loaded by the columns of both halves of the lanes. */
  readonly inHalves?: boolean;
  /** Whether the sums are the second member of a group of a union, whose first holds nothing. */
  readonly inUnion?: boolean;
}

const left = (row: number, column: number): number => (row * 7 + column * 3) % 5;
const right = (row: number, column: number): number => (row * 5 + column * 11) % 4;

function multiplying(form: Form): KernelDefinition {
  const { a, b = a, sum = f32, shape: [m, n, k] = [256, 32, 32] } = form;
  const {
    alongK: [leftAlong, rightAlong] = [true, true],
    aInTensorMemory = false,
    inHalves = false,
  } = form;
  const [rows, columns] = [m / 2, n / 2];
  const pairSums = tmem(sum, [rows, n], { pair: true });
  const before = tmem(f32, [128, 24], { pair: true });
  const other = tmem(f32, [128, 8], { pair: true });
  const swap = (along: boolean, outer: number, inner: number): readonly number[] =>
    along ? [outer, inner] : [inner, outer];
  return kernel(
    {
      name: "multiplying",
      grid: { i: 1 },
      cluster: { half: 2 },
      inputs: {
        x: tensor(a, swap(leftAlong, m, k)),
        y: tensor(b, swap(rightAlong, n, k)),
      },
      outputs: { out: tensor(sum, [m, n]) },
      scratch: {
        place: form.inUnion === true ? union({ before, sums: pairSums }, { other }) : pairSums,
        factor: tmem(a, [rows, aInTensorMemory ? k : 32], { packed: true, pair: true }),
        left: smem(a, swap(leftAlong, rows, k)),
        right: smem(b, swap(rightAlong, columns, k)),
        full: barrier({ arrivals: aInTensorMemory ? 1 : 2 }),
        stored: barrier({ arrivals: 2 }),
        done: barrier(),
      },
    },
    ({ half, x, y, out, place, factor, left: own, right: other, full, stored, done }) => {
      const sums = "sums" in place ? place.sums : place;
      const landed = { barrier: full, pair: true } as const;
      const [ofRows, ofColumns] = [block(half, rows), block(half, columns)];
      const mine = leftAlong ? x.at(ofRows, all) : x.at(all, ofRows);
      const theirs = rightAlong ? y.at(ofColumns, all) : y.at(all, ofColumns);
      if (aInTensorMemory) {
        factor.store(mine.load());
        stored.arrive({ peer: 0 });
      } else copyAsync(mine, own, landed);
      copyAsync(theirs, other, landed);
      const first = leftAlong ? own : own.transpose();
      const second = rightAlong ? other.transpose() : other;
      when(half.eq(0), () => {
        full.wait();
        if (aInTensorMemory) stored.wait();
        const from = aInTensorMemory ? factor : first;
        tcgen05Mma(sums, from, second, { adds: false, pair: true });
        tcgen05Mma(sums, from, second, { pair: true });
        tcgen05Commit(done, { multicast: "half" });
      });
      done.wait();
      if (rows === 64 && !inHalves) out.at(block(half, rows), all).store(sums.load());
      else if (inHalves) {
        // Each half of the lanes has half of the columns, of which so many are moved at once.
        const [from, to] = [sums.reshape([rows, 2, columns]), out.reshape([m, 2, columns])];
        for (let column = 0; column < columns; column += 16) {
          const part = slice(column, 16);
          to.at(block(half, rows), all, part).store(from.at(all, all, part).load());
        }
      } else
        for (let column = 0; column < n; column += 32) {
          const part = slice(column, 32);
          out.at(block(half, rows), part).store(sums.at(all, part).load());
        }
    },
  );
}

function matrix<D extends DTypeName>(
  dtype: DType<D>,
  [rows, columns]: readonly [number, number],
  of: (row: number, column: number) => number,
) {
  const values = Float64Array.from({ length: rows * columns }, (_, at) =>
    of(Math.floor(at / columns), at % columns),
  );
  return fromNumbers(dtype, [rows, columns], values);
}

/** Of sm_103a there are no integers. */
function targetsOf({ kind }: DType): readonly ("sm_100a" | "sm_103a")[] {
  return kind === "float" ? ["sm_100a", "sm_103a"] : ["sm_100a"];
}

async function run(form: Form): Promise<void> {
  const { a, b = a, shape: [m, n, k] = [256, 32, 32], alongK = [true, true] } = form;
  const expected = Array.from({ length: m * n }, (_, at) => {
    let total = 0;
    for (let each = 0; each < k; each += 1)
      total += left(Math.floor(at / n), each) * right(each, at % n);
    return 2 * total;
  });
  const inputs = {
    x: alongK[0] ? matrix(a, [m, k], left) : matrix(a, [k, m], (row, column) => left(column, row)),
    y: alongK[1]
      ? matrix(b, [n, k], (row, column) => right(column, row))
      : matrix(b, [k, n], right),
  };
  await check(multiplying(form), inputs, expected, targetsOf(a));
}

/** Simulator and emulator give what is expected, and the assembler takes what is emitted. */
async function check(
  definition: KernelDefinition,
  inputs: { readonly [name: string]: HostArray },
  expected: readonly number[],
  assembled: readonly ("sm_100a" | "sm_103a")[],
): Promise<void> {
  for (const kind of ["simulator", "emulator"] as const) {
    const device = await open(kind, { target: "sm_100a" });
    try {
      const results = await device.run(definition, inputs as never);
      const out = (results as { readonly [name: string]: HostArray })["out"];
      expect([...toNumbers(out ?? expect.fail())], kind).toEqual(expected);
    } finally {
      device.dispose();
    }
  }
  if (hasPtxas)
    for (const target of takesAll ? assembled : assembled.slice(0, 1))
      expect(assemble(printPtx(lower(definition.kernel, targets[target]).module), target)).toBe("");
}

const others: readonly [string, Form][] = [
  ["tf32", { a: tf32 }],
  ["i8 by u8", { a: i8, b: u8, sum: i32 }],
  ["128 rows", { a: bf16, shape: [128, 64, 32] }],
  ["bf16", { a: bf16 }],
  ["f16 into f16", { a: f16, sum: f16 }],
  ["e4m3 by e5m2", { a: f8e4m3fn, b: f8e5m2 }],
  ["256 columns", { a: bf16, shape: [256, 256, 16] }],
  ["b by rows", { a: bf16, alongK: [true, false] }],
  ["both across", { a: f16, alongK: [false, false], shape: [256, 64, 32] }],
  ["128 rows, 256 columns", { a: f16, shape: [128, 256, 16] }],
  ["128 rows into f16", { a: f16, sum: f16, shape: [128, 32, 32] }],
  ["224 columns, a in tensor memory", { a: f16, shape: [256, 224, 32], aInTensorMemory: true }],
  ["FP8 in tensor memory", { a: f8e4m3fn, shape: [128, 32, 64], aInTensorMemory: true }],
  ["tf32 in tensor memory", { a: tf32, shape: [128, 32, 32], aInTensorMemory: true }],
];

describe("products of a pair", () => {
  test.each<[string, Form]>([
    ["160 columns, a by columns", { a: bf16, alongK: [false, true], shape: [256, 160, 16] }],
    ["128 rows, 160 columns", { a: bf16, shape: [128, 160, 16], inHalves: true }],
    ["128 rows, both across", { a: f16, alongK: [false, false], shape: [128, 128, 16] }],
    ["a in tensor memory", { a: bf16, shape: [256, 64, 32], aInTensorMemory: true }],
    ["128 rows, a in tensor memory", { a: bf16, shape: [128, 64, 32], aInTensorMemory: true }],
    ["sums in a union", { a: bf16, shape: [128, 64, 32], inUnion: true }],
    ...(takesAll ? others : []),
  ])("of %s", async (_, form) => {
    await run(form);
  });
});

/** Scales as they lie in memory: atoms of 128 rows by 4 blocks. */
function atoms(rows: number, blocks: number, of: (row: number, block: number) => number) {
  const shape = [Math.ceil(rows / 128), Math.ceil(blocks / 4), 32, 16] as const;
  const values = new Float64Array(shape[0] * shape[1] * 512).fill(1);
  for (let row = 0; row < rows; row += 1)
    for (let each = 0; each < blocks; each += 1) {
      const atom = (row >> 7) * shape[1] + (each >> 2);
      values[atom * 512 + (row & 31) * 16 + ((row >> 5) & 3) * 4 + (each & 3)] = of(row, each);
    }
  return fromNumbers(f8e8m0fnu, shape, values);
}

/** Scales of columns in halves: of each four blocks an atom of the first half's 128 rows, and behind it one of the second's. */
function halvedAtoms(n: number, blocks: number, of: (column: number, block: number) => number) {
  const words = Math.ceil(blocks / 4);
  const values = new Float64Array(words * 1024).fill(1);
  for (let column = 0; column < n; column += 1)
    for (let each = 0; each < blocks; each += 1) {
      const [second, row] = column < n / 2 ? [0, column] : [512, column - n / 2];
      const at = (each >> 2) * 1024 + second + (row & 31) * 16 + (row >> 5) * 4 + (each & 3);
      values[at] = of(column, each);
    }
  return fromNumbers(f8e8m0fnu, [1, words, 64, 16], values);
}

const leftScale = (row: number, each: number): number => 2 ** (((row + 3 * each) % 5) - 2);
const rightScale = (row: number, each: number): number => 2 ** (((2 * row + each) % 5) - 2);

interface Scaling {
  /** Of the whole product. */
  readonly m: 128 | 256;
  readonly n: number;
  readonly k: number;
  readonly collective: boolean;
}

/**
 * Products with scales: those of the own rows of a, and those of all columns of b, which one copy brings to both blocks. Of 128 rows, each half of the
 * columns of b has scales in either half of the lanes.
 */
function scaling({ m, n, k, collective }: Scaling): KernelDefinition {
  const words = Math.ceil(k / 128);
  const rows = m / 2;
  const ofColumns = m === 128 ? [1, words, 64, 16] : [Math.ceil(n / 128), words, 32, 16];
  const columnRows = m === 128 ? 256 : 128 * Math.ceil(n / 128);
  const pair = true;
  return kernel(
    {
      name: "scaling",
      grid: { i: 1 },
      cluster: { half: 2 },
      inputs: {
        x: tensor(f8e4m3fn, [m, k]),
        y: tensor(f8e5m2, [n, k]),
        xScales: tensor(f8e8m0fnu, [2, words, 32, 16]),
        yScales: tensor(f8e8m0fnu, ofColumns),
      },
      outputs: { out: tensor(f32, [m, n]) },
      scratch: {
        sums: tmem(f32, [rows, n], { pair }),
        a: smem(f8e4m3fn, [rows, k]),
        b: smem(f8e5m2, [n / 2, k]),
        first: smem(f8e8m0fnu, [1, words, 32, 16]),
        second: smem(f8e8m0fnu, ofColumns),
        aScales: tmem(f8e8m0fnu, [128, 4 * words], { scales: true, pair }),
        bScales: tmem(f8e8m0fnu, [columnRows, 4 * words], {
          scales: m === 128 ? "halves" : true,
          pair,
        }),
        full: barrier({ arrivals: 4 }),
        done: barrier(),
      },
    },
    ({ half, x, y, xScales, yScales, out, sums, a, b, ...scratch }) => {
      const { first, second, aScales, bScales, full, done } = scratch;
      const landed = { barrier: full, pair };
      copyAsync(x.at(block(half, rows), all), a, landed);
      copyAsync(y.at(block(half, n / 2), all), b, landed);
      copyAsync(xScales.at(block(half, 1), all, all, all), first, landed);
      const toBoth = { ...landed, multicast: "half" };
      if (collective) copyAsync(yScales, second, { ...toBoth, collective });
      else
        when(half.eq(1), () => {
          copyAsync(yScales, second, toBoth);
        });
      when(half.eq(0), () => {
        full.wait();
        tcgen05Copy(first, aScales, { pair });
        tcgen05Copy(second, bScales, { pair });
        tcgen05Mma(sums, a, b.transpose(), { adds: false, pair, scales: [aScales, bScales] });
        tcgen05Commit(done, { multicast: "half" });
      });
      done.wait();
      if (m === 128) out.at(block(half, rows), all).store(sums.load());
      else
        for (let column = 0; column < n; column += 32) {
          const part = slice(column, 32);
          out.at(block(half, rows), part).store(sums.at(all, part).load());
        }
    },
  );
}

describe("products of a pair with scales", () => {
  test.each(
    usually<Scaling>(
      [
        { m: 256, n: 32, k: 64, collective: true },
        { m: 128, n: 64, k: 160, collective: false },
      ],
      [
        { m: 256, n: 160, k: 192, collective: false },
        { m: 128, n: 256, k: 64, collective: true },
        { m: 128, n: 16, k: 32, collective: true },
      ],
    ),
  )("$m rows, $n columns, k $k, scales of b by a collective copy: $collective", async (form) => {
    const { m, n, k } = form;
    const inputs = {
      x: matrix(f8e4m3fn, [m, k], left),
      y: matrix(f8e5m2, [n, k], (row, column) => right(column, row)),
      // Of 64 rows in each block, atoms have as many more that nobody reads.
      xScales: atoms(256, k / 32, (row, each) =>
        leftScale(m === 256 ? row : 64 * (row >> 7) + (row & 63), each),
      ),
      yScales: (m === 128 ? halvedAtoms : atoms)(n, k / 32, rightScale),
    };
    const expected = Array.from({ length: m * n }, (_, at) => {
      const [row, column] = [Math.floor(at / n), at % n];
      let total = 0;
      for (let each = 0; each < k; each += 1)
        total +=
          left(row, each) *
          right(each, column) *
          leftScale(row, each >> 5) *
          rightScale(column, each >> 5);
      return total;
    });
    await check(scaling(form), inputs, expected, ["sm_100a", "sm_103a"]);
  });
});
