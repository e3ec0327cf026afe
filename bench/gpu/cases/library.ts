/**
 * Operations of `tilewright/kernels` that memory bounds, at sizes of language models and of sorts: rows, sums along either axis,
 * running sums, orders, rows by number, random numbers. A rate counts what has to be read and written once.
 */
import { tensor, bf16, f32, i32, u32 } from "tilewright";
import type { Operation } from "tilewright";
import {
  gather,
  layerNorm,
  reduce,
  rmsNorm,
  scan,
  scatter,
  softmax,
  sort,
  topK,
} from "tilewright/kernels";
import type { BenchCase } from "../case.ts";
import { randomArray, randomIndices, randomWords } from "../random.ts";
import { crossEntropyCase, normBackwardCase } from "./gradients.ts";
import { besideCopy, libraryCase, requireNear } from "./library-case.ts";
import { mapCases } from "./library-maps.ts";
import { randomCases } from "./random.ts";
import { poolCase, uniqueCase } from "./windows.ts";

/** Softmax and norms of rows. */
export function rowsCase(
  op: "softmax" | "rms_norm" | "layer_norm",
  rows: number,
  columns: number,
): BenchCase {
  const x = tensor(bf16, [rows, columns]);
  const scale = bf16;
  const operations = {
    softmax: () => softmax({ x }),
    rms_norm: () => rmsNorm({ x, scale }),
    layer_norm: () => layerNorm({ x, scale }),
  };
  return besideCopy({
    name: `library ${op} bf16 ${rows}x${columns}`,
    task: { op, rows, columns, dtype: "bf16" },
    bytes: rows * columns * 4,
    operation: operations[op]() as unknown as Operation,
    arrays: (device, seed) => ({
      x: randomArray(device, bf16, [rows, columns], seed),
      ...(op !== "softmax" && { scale: randomArray(device, bf16, [columns], 5) }),
      out: device.allocate(bf16, [rows, columns]),
    }),
    check: async (numbers) => {
      const weights = op === "softmax" ? undefined : await numbers("scale");
      for (const row of [0, rows - 1]) {
        const found = await numbers("out", row);
        const expected = rowReference(op, await numbers("x", row));
        for (let column = 0; column < columns; column += 1) {
          const wanted = expected(column) * (weights?.[column] ?? 1);
          const bound = Math.abs(wanted) * 2 ** -7 + 1e-4;
          requireNear(`${op}[${row}, ${column}]`, found[column], wanted, bound);
        }
      }
    },
  });
}

/** What norms add to the variance by default. */
const defaultEpsilon = 1e-5;

function rowReference(op: string, row: Float64Array): (column: number) => number {
  const at = (column: number): number => row[column] ?? NaN;
  if (op === "softmax") {
    const largest = row.reduce((a, b) => Math.max(a, b));
    const sum = row.reduce((total, value) => total + Math.exp(value - largest), 0);
    return (column) => Math.exp(at(column) - largest) / sum;
  }
  const mean = op === "layer_norm" ? row.reduce((a, b) => a + b, 0) / row.length : 0;
  const square = row.reduce((total, value) => total + (value - mean) ** 2, 0) / row.length;

  return (column) => (at(column) - mean) / Math.sqrt(square + defaultEpsilon);
}

/** Sums along an axis. */
export function sumCase(rows: number, columns: number, axis: 0 | 1): BenchCase {
  const kept = axis === 0 ? columns : rows;
  return libraryCase({
    name: `library sum along ${axis === 0 ? "columns" : "rows"} bf16 ${rows}x${columns}`,
    task: { op: "sum", rows, columns, axis, dtype: "bf16" },
    bytes: rows * columns * 2,
    operation: reduce({
      x: tensor(bf16, [rows, columns]),
      axis: [axis],
      out: f32,
    }) as unknown as Operation,
    arrays: (device, seed) => ({
      x: randomArray(device, bf16, [rows, columns], seed),
      out: device.allocate(f32, [kept]),
    }),
    check: async (numbers) => {
      const [given, found] = [await numbers("x"), await numbers("out")];
      const [along, across] = axis === 0 ? [columns, 1] : [1, columns];
      for (const place of [0, kept - 1]) {
        let sum = 0;
        for (let index = 0; index < (axis === 0 ? rows : columns); index += 1)
          sum += given[place * across + index * along] ?? NaN;
        requireNear(`sum[${place}]`, found[place], sum, 1e-2);
      }
    },
  });
}

/** Running sums of one long row. */
export function scanCase(count: number): BenchCase {
  return libraryCase({
    name: `library scan f32 ${count}`,
    task: { op: "scan", count },
    bytes: count * 8,
    operation: scan({ x: tensor(f32, [count]) }) as unknown as Operation,
    arrays: (device, seed) => ({
      x: randomArray(device, f32, [count], seed),
      out: device.allocate(f32, [count]),
    }),
    check: async (numbers) => {
      const [given, found] = [await numbers("x"), await numbers("out")];
      let sum = 0;
      for (const [place, value] of given.slice(0, 1 << 16).entries()) {
        sum += value;
        requireNear(`scan[${place}]`, found[place], sum, 1e-2);
      }
    },
  });
}

/** Keys of one row in order; JAX sorts by CUB, PyTorch by CUB with places. */
export function sortCase(count: number): BenchCase {
  return libraryCase({
    name: `library sort u32 ${count}`,
    task: { op: "sort", count },
    bytes: count * 8,
    operation: sort({ x: tensor(u32, [count]) }) as unknown as Operation,
    arrays: (device, seed) => ({
      x: randomWords(device, count, seed),
      out: device.allocate(u32, [count]),
    }),
    check: async (numbers) => {
      const [given, found] = [await numbers("x"), await numbers("out")];
      const expected = Uint32Array.from(given).sort();
      for (const [place, value] of expected.entries())
        if (found[place] !== value)
          throw new Error(`sort[${place}] is ${found[place]}, not ${value}`);
    },
  });
}

/** The best of long rows. */
export function topCase(rows: number, columns: number, k: number): BenchCase {
  return libraryCase({
    name: `library top ${k} of rows f32 ${rows}x${columns}`,
    task: { op: "topk", rows, columns, k, dtype: "f32" },
    bytes: rows * columns * 4,
    operation: topK({ x: tensor(f32, [rows, columns]), k }) as unknown as Operation,
    arrays: (device, seed) => ({
      x: randomArray(device, f32, [rows, columns], seed),
      values: device.allocate(f32, [rows, k]),
      indices: device.allocate(i32, [rows, k]),
    }),
    check: async (numbers) => {
      const [given, found] = [await numbers("x"), await numbers("values")];
      const best = given.slice(0, columns).sort().reverse().slice(0, k);
      for (const [place, value] of best.entries())
        requireNear(`top[${place}]`, found[place], value, 0);
    },
  });
}

interface Table {
  readonly vocabulary: number;
  readonly tokens: number;
  readonly width: number;
}

/** Rows of a table by number. */
export function embeddingCase({ vocabulary, tokens, width }: Table): BenchCase {
  const [x, indices] = [tensor(bf16, [vocabulary, width]), tensor(i32, [tokens])];
  return libraryCase({
    name: `library embedding bf16 ${tokens} of ${vocabulary}x${width}`,
    task: { op: "embedding", vocabulary, tokens, width, dtype: "bf16" },
    bytes: tokens * width * 4,
    operation: gather({ x, indices }) as unknown as Operation,
    arrays: (device, seed) => ({
      x: randomArray(device, bf16, [vocabulary, width], seed),
      indices: randomIndices(device, tokens, vocabulary, seed),
      out: device.allocate(bf16, [tokens, width]),
    }),
    check: async (numbers) => {
      const [table, found, ids] = [
        await numbers("x"),
        await numbers("out"),
        await numbers("indices"),
      ];
      for (let token = 0; token < tokens; token += 101)
        requireNear(
          `row ${token}`,
          found[token * width],
          table[(ids[token] ?? 0) * width] ?? NaN,
          0,
        );
    },
  });
}

/** The gradient of an embedding: f32 rows added by number, atomically or in order. */
export function scatterCase(
  { vocabulary, tokens, width }: Table,
  deterministic: boolean,
): BenchCase {
  const [out, indices] = [tensor(f32, [vocabulary, width]), tensor(i32, [tokens])];
  const order = deterministic ? "in order" : "in any order";
  return libraryCase({
    name: `library scatter-add ${order} f32 ${tokens} into ${vocabulary}x${width}`,
    task: { op: "scatter_add", vocabulary, tokens, width, dtype: "f32" },
    bytes: tokens * width * 12,
    operation: scatter({ out, indices, combine: "add", deterministic }) as unknown as Operation,
    arrays: (device, seed) => ({
      indices: randomIndices(device, tokens, vocabulary, seed),
      updates: randomArray(device, f32, [tokens, width], seed),
      out: randomArray(device, f32, [vocabulary, width], seed + 7),
    }),
    // The array is updated by every launch, so that only tests on small arrays know what it should be.
    check: async (numbers) => {
      const found = await numbers("out");
      if (found.some((value) => !Number.isFinite(value)))
        throw new Error("scatter made no numbers");
    },
  });
}

const table = { vocabulary: 50_304, tokens: 65_536, width: 2048 } as const;

/** By part; each ends within ten minutes. */
export const libraryParts: readonly (readonly [string, readonly BenchCase[]])[] = [
  [
    "library-rows",
    [
      rowsCase("softmax", 16_384, 8192),
      rowsCase("layer_norm", 16_384, 8192),
      rowsCase("rms_norm", 16_384, 8192),
      rowsCase("softmax", 1024, 131_072),
    ],
  ],
  ["library-maps", mapCases(16_384, 8192)],
  [
    "library-short-rows",
    [
      rowsCase("softmax", 524_288, 256),
      rowsCase("softmax", 131_072, 781),
      rowsCase("softmax", 65_536, 1000),
      rowsCase("softmax", 8, 8192),
      rowsCase("layer_norm", 8, 8192),
    ],
  ],
  [
    "library-long-rows",
    [
      rowsCase("softmax", 2048, 65_536),
      rowsCase("softmax", 512, 262_144),
      rowsCase("softmax", 8, 65_536),
      rowsCase("layer_norm", 8, 65_536),
    ],
  ],
  [
    "library-gradients",
    [
      normBackwardCase("layer_norm_backward", 16_384, 8192),
      normBackwardCase("rms_norm_backward", 16_384, 8192),
      crossEntropyCase(4096, 131_072),
    ],
  ],
  ["library-sums", [sumCase(16_384, 8192, 1), sumCase(16_384, 8192, 0), scanCase(2 ** 28)]],
  [
    "library-order",
    [
      sortCase(2 ** 26),
      topCase(64, 131_072, 8),
      topCase(64, 131_072, 64),
      uniqueCase(2 ** 24, 2 ** 16),
    ],
  ],
  ["library-pooling", [poolCase("max", 64, 112, 64), poolCase("average", 64, 112, 64)]],
  ["library-moves", [embeddingCase(table), scatterCase(table, false), scatterCase(table, true)]],
  ["library-random", randomCases(2 ** 28)],
];
