/**
 * Operations of `tilewright/kernels` that go through an array once and change each element, or each row, by itself: casts, rotary
 * embeddings, gated layers, quantised rows, permuted axes. All that bounds them is memory, so each is told as a part of a plain copy
 * that moves as many bytes, in the same rounds.
 */
import { tensor, bf16, f32, f8e4m3fn, i8 } from "tilewright";
import { fp8Block128x128, fp8Block1x128, mxfp4, mxfp6e3m2, mxfp8e4m3, nvfp4 } from "tilewright";
import type { DTypeName, Operation, ScaledFormat } from "tilewright";
import { cast, copy, gated, permute, quantize, quantizeBlocks, rotary } from "tilewright/kernels";
import type { BenchCase } from "../case.ts";
import { randomArray } from "../random.ts";
import { besideCopy, libraryCase, requireNear } from "./library-case.ts";

function copyCase(rows: number, columns: number): BenchCase {
  return libraryCase({
    name: `library copy bf16 ${rows}x${columns}`,
    task: { op: "copy", count: rows * columns, dtype: "bf16" },
    bytes: rows * columns * 4,
    operation: copy({ x: tensor(bf16, [rows, columns]) }) as unknown as Operation,
    arrays: (device, seed) => ({
      x: randomArray(device, bf16, [rows, columns], seed),
      out: device.allocate(bf16, [rows, columns]),
    }),
    check: async (numbers) => {
      const [given, found] = [await numbers("x", rows - 1), await numbers("out", rows - 1)];
      for (const [column, value] of given.entries())
        requireNear(`copy[${column}]`, found[column], value, 0);
    },
  });
}

function castCase(from: "bf16" | "f32", to: "bf16" | "f32", rows: number, columns: number) {
  const formats = { bf16, f32 };
  const [given, made] = [formats[from], formats[to]];
  return besideCopy({
    name: `library cast ${from} to ${to} ${rows}x${columns}`,
    task: { op: "cast", rows, columns, dtype: from, out: to },
    bytes: rows * columns * 6,
    operation: cast({ x: tensor(given, [rows, columns]), out: made }) as unknown as Operation,
    arrays: (device, seed) => ({
      x: randomArray(device, given, [rows, columns], seed),
      out: device.allocate(made, [rows, columns]),
    }),
    check: async (numbers) => {
      const [x, found] = [await numbers("x", rows - 1), await numbers("out", rows - 1)];
      const bound = to === "bf16" ? 2 ** -8 : 0;
      for (const [column, value] of x.entries())
        requireNear(`cast[${column}]`, found[column], value, Math.abs(value) * bound);
    },
  });
}

/** Heads of 128 at as many positions as there are rows; angles are of f32. */
function rotaryCase(rows: number, columns: number): BenchCase {
  const [head, half] = [128, 64];
  const shape = [rows, columns / head, head];
  const angles = [rows, half];
  return besideCopy({
    name: `library rotary bf16 ${shape.join("x")}`,
    task: { op: "rotary", rows, heads: columns / head, head, dtype: "bf16" },
    bytes: rows * columns * 4 + rows * half * 8,
    operation: rotary({ x: tensor(bf16, shape), cos: f32, sin: f32 }) as unknown as Operation,
    arrays: (device, seed) => ({
      x: randomArray(device, bf16, shape, seed),
      cos: randomArray(device, f32, angles, seed + 1),
      sin: randomArray(device, f32, angles, seed + 2),
      out: device.allocate(bf16, shape),
    }),
    check: async (numbers) => {
      const row = rows - 1;
      const [x, found] = [await numbers("x", row), await numbers("out", row)];
      const [cos, sin] = [await numbers("cos", row), await numbers("sin", row)];
      for (const [place, value] of x.entries()) {
        const [isFirst, angle] = [place % head < half, place % half];
        const other = x[isFirst ? place + half : place - half] ?? NaN;
        const turns = (sin[angle] ?? NaN) * other;
        const wanted = value * (cos[angle] ?? NaN) + (isFirst ? -turns : turns);
        requireNear(`rotary[${place}]`, found[place], wanted, Math.abs(wanted) * 2 ** -8 + 1e-5);
      }
    },
  });
}

/** SwiGLU of rows that are a gate and a value. */
function gatedCase(rows: number, columns: number): BenchCase {
  const half = columns / 2;
  return besideCopy({
    name: `library SwiGLU bf16 ${rows}x${columns}`,
    task: { op: "swiglu", rows, columns, dtype: "bf16" },
    bytes: rows * columns * 3,
    operation: gated({
      x: tensor(bf16, [rows, columns]),
      activation: "silu",
    }) as unknown as Operation,
    arrays: (device, seed) => ({
      x: randomArray(device, bf16, [rows, columns], seed),
      out: device.allocate(bf16, [rows, half]),
    }),
    check: async (numbers) => {
      const [x, found] = [await numbers("x", rows - 1), await numbers("out", rows - 1)];
      for (const [column, value] of found.entries()) {
        const gate = x[column] ?? NaN;
        const wanted = (gate / (1 + Math.exp(-gate))) * (x[column + half] ?? NaN);
        requireNear(`SwiGLU[${column}]`, value, wanted, Math.abs(wanted) * 2 ** -7 + 1e-5);
      }
    },
  });
}

/** Rows in 8 bits, with a scale each. */
function quantizeCase(to: "i8" | "f8e4m3fn", rows: number, columns: number): BenchCase {
  const formats = { i8, f8e4m3fn };
  return besideCopy({
    name: `library quantize bf16 to ${to} ${rows}x${columns}`,
    task: { op: "quantize", rows, columns, dtype: "bf16", out: to },
    bytes: rows * columns * 3 + rows * 4,
    operation: quantize({
      x: tensor(bf16, [rows, columns]),
      out: formats[to] as typeof i8,
    }) as unknown as Operation,
    arrays: (device, seed) => ({
      x: randomArray(device, bf16, [rows, columns], seed),
      out: device.allocate<DTypeName>(formats[to], [rows, columns]),
      scale: device.allocate(f32, [rows]),
    }),
    check: async (numbers) => {
      const row = rows - 1;
      const [x, found] = [await numbers("x", row), await numbers("out", row)];
      const [scale = NaN] = await numbers("scale", row);
      const most = x.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0);
      requireNear("scale", scale, most / (to === "i8" ? 127 : 448), most * 1e-5);
      for (const [column, value] of x.entries()) {
        const apart = to === "i8" ? scale / 2 : Math.abs(value) / 16 + scale * 2 ** -10;
        const wanted = (found[column] ?? NaN) * scale;
        requireNear(`quantize[${column}]`, wanted, value, apart * 1.001 + 1e-6);
      }
    },
  });
}

/** Rows in a format with scales of blocks. */
function quantizeBlocksCase(format: ScaledFormat, rows: number, columns: number): BenchCase {
  const { name, element, scale, block, largest } = format;
  const [across, along] = block;
  const counts = [Math.ceil(rows / across), Math.ceil(columns / along)] as const;
  const scales = counts[0] * counts[1];
  return besideCopy({
    name: `library quantizeBlocks bf16 to ${name} ${rows}x${columns}`,
    task: { op: "quantizeBlocks", rows, columns, dtype: "bf16", out: name },
    bytes: rows * columns * (2 + element.bits / 8) + (scales * scale.bits) / 8,
    operation: quantizeBlocks({ x: tensor(bf16, [rows, columns]), format }) as unknown as Operation,
    arrays: (device, seed) => ({
      x: randomArray(device, bf16, [rows, columns], seed),
      out: device.allocate<DTypeName>(element, [rows, columns]),
      scale: device.allocate<DTypeName>(scale, counts),
      ...(format.hasGlobalScale && { globalScale: randomArray(device, f32, [1], seed) }),
    }),
    check: async (numbers) => {
      const row = rows - 1;
      const [x, found] = [await numbers("x", row), await numbers("out", row)];
      const own = await numbers("scale", Math.floor(row / across));
      const [global = 1] = format.hasGlobalScale ? await numbers("globalScale") : [1];
      for (const [column, value] of x.entries()) {
        const step = (own[Math.floor(column / along)] ?? NaN) * Math.abs(global);
        const wanted = (found[column] ?? NaN) * step * Math.sign(global);
        // An eighth of the largest element is the coarsest step, and scales of eight bits are rounded themselves.
        requireNear(`quantizeBlocks[${column}]`, wanted, value, step * largest * 0.2);
      }
    },
  });
}

/** Axes exchanged. */
function permuteCase(rows: number, columns: number): BenchCase {
  return besideCopy({
    name: `library permute bf16 ${rows}x${columns}`,
    task: { op: "permute", rows, columns, dtype: "bf16" },
    bytes: rows * columns * 4,
    operation: permute({
      x: tensor(bf16, [rows, columns]),
      permutation: [1, 0],
    }) as unknown as Operation,
    arrays: (device, seed) => ({
      x: randomArray(device, bf16, [rows, columns], seed),
      out: device.allocate(bf16, [columns, rows]),
    }),
    check: async (numbers) => {
      const [given, found] = [await numbers("x"), await numbers("out")];
      for (let at = 0; at < rows * columns; at += 997)
        requireNear(
          `permute[${at}]`,
          found[at],
          given[(at % rows) * columns + Math.floor(at / rows)] ?? NaN,
          0,
        );
    },
  });
}

/** All at one size. */
export function mapCases(rows: number, columns: number): readonly BenchCase[] {
  return [
    copyCase(rows, columns),
    castCase("bf16", "f32", rows, columns),
    castCase("f32", "bf16", rows, columns),
    rotaryCase(rows, columns),
    gatedCase(rows, columns),
    quantizeCase("i8", rows, columns),
    quantizeCase("f8e4m3fn", rows, columns),
    ...Object.values({ mxfp8e4m3, mxfp6e3m2, mxfp4, nvfp4, fp8Block1x128, fp8Block128x128 }).map(
      (format) => quantizeBlocksCase(format, rows, columns),
    ),
    permuteCase(rows, columns),
  ];
}
