/**
 * Products of any shape, strides and formats against sums in f64 or exact integers. Guard words around C and scratch stay what they
 * are. `TILEWRIGHT_CASES=all npx vitest run src/cpu/products` takes many more shapes.
 */
import { describe, expect, test } from "vitest";
import { takesAll } from "../../../test/support/sample.ts";
import { hasRelaxedSimd, runModule } from "../../../test/support/vector-function.ts";
import { convertElements } from "../../formats/convert.ts";
import {
  allocateElements,
  bf16,
  f16,
  f32,
  f64,
  f8e4m3fn,
  i16,
  i32 as i32Words,
  i8,
  u8,
} from "../../formats/dtype.ts";
import type { DType, Elements } from "../../formats/dtype.ts";
import { Random } from "../../support/random.ts";
import { i32, ModuleBuilder, op, splat, vector } from "../loops/builder.ts";
import { emitModule } from "../loops/emit.ts";
import { loopPressures, vectorRegisters } from "../loops/vectors.ts";
import { numberBytes } from "./micro-kernel.ts";
import type { Epilogue } from "./micro-kernel.ts";
import { defineProduct, productNumbers, productScratchBytes } from "./product.ts";
import type { Product } from "./product.ts";
import { blockShape, defineTileProduct } from "./tile-product.ts";

const memory = { minimum: 1, maximum: 65536, shared: false };
const forms = hasRelaxedSimd ? [false, true] : [false];

interface Matrix {
  readonly dtype: DType;
  readonly values: Float64Array;
  readonly bytes: Uint8Array;
  /** Bytes between rows and between columns. */
  readonly row: number;
  readonly column: number;
}

type Order = "rows" | "columns" | "strided";

/** Random elements as memory holds them; strided ones have gaps of NaN or of the greatest integer. */
function matrix(dtype: DType, rows: number, columns: number, order: Order, random: Random): Matrix {
  const gap = order === "strided" ? 3 : 1;
  const [rowStep, columnStep] = order === "columns" ? [1, rows] : [columns * gap, gap];
  const count = rows * columns * gap;
  const isFloat = dtype.kind === "float";
  const numbers = Float64Array.from({ length: count }, () =>
    order === "strided" ? (isFloat ? NaN : 127) : 0,
  );
  const drawn = new Float64Array(rows * columns);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const value = isFloat
        ? random.normal()
        : random.below(256) - (dtype.kind === "signed" ? 128 : 0);
      numbers[row * rowStep + column * columnStep] = value;
    }
  const elements: Elements = allocateElements(dtype, count);
  convertElements(f64, dtype, numbers, elements);
  const back = new Float64Array(count);
  convertElements(dtype, f64, elements, back);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      drawn[row * columns + column] = back[row * rowStep + column * columnStep] ?? 0;
  const size = dtype.bits / 8;
  const bytes = new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength);
  return { dtype, values: drawn, bytes, row: rowStep * size, column: columnStep * size };
}

const guard = 0xa5;
const modules = new Map<string, WebAssembly.Module>();

/** The module of a product, compiled once. */
function emitted(product: Product): WebAssembly.Module {
  const key = JSON.stringify({ ...product, a: product.a.name, b: product.b.name });
  const known = modules.get(key);
  if (known !== undefined) return known;
  const module = new ModuleBuilder({ memory });
  defineProduct(module, product);
  const compiled = new WebAssembly.Module(emitModule(module.finish()));
  modules.set(key, compiled);
  return compiled;
}

interface Shape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

function check(
  product: Product,
  { m, n, k }: Shape,
  [aOrder, bOrder]: readonly [Order, Order],
  random: Random,
): void {
  const a = matrix(product.a, m, k, aOrder, random);
  const b = matrix(product.b, k, n, bOrder, random);
  const numbers = productNumbers(product) ?? "f32";
  const bytes = numberBytes[numbers];
  const aligned = (size: number): number => Math.ceil(size / 64) * 64 + 64;
  const bAt = aligned(a.bytes.length);
  const cAt = bAt + aligned(b.bytes.length);
  const cRow = n * bytes + 8;
  const scratchAt = cAt + aligned(m * cRow);
  const scratchBytes = productScratchBytes(product);
  const source = new Uint8Array(scratchAt + scratchBytes + 64).fill(guard);
  source.set(a.bytes);
  source.set(b.bytes, bAt);
  const operands = [0, bAt, cAt, m, n, k, a.row, a.column, b.row, b.column, cRow, scratchAt];
  const after = runModule(emitted(product), source, 64, (exports) =>
    exports["product"]?.(...operands),
  );
  const view = new DataView(after.buffer);
  const read = (at: number): number =>
    numbers === "f64"
      ? view.getFloat64(at, true)
      : numbers === "f32"
        ? view.getFloat32(at, true)
        : view.getInt32(at, true);
  const unit = numbers === "f64" ? 2 ** -52 : 2 ** -23;
  for (let row = 0; row < m; row++) {
    for (let column = 0; column < n; column++) {
      let sum = 0;
      let size = 0;
      for (let step = 0; step < k; step++) {
        const term = (a.values[row * k + step] ?? 0) * (b.values[step * n + column] ?? 0);
        sum += term;
        size += Math.abs(term);
      }
      const got = read(cAt + row * cRow + column * bytes);
      // Each of k additions rounds, and the reference as well.
      const bound = numbers === "i32" || numbers === "pairs" ? 0 : (k + 2) * unit * size;
      if (!(Math.abs(got - sum) <= bound))
        expect.fail(
          `${m}×${n}×${k} of ${product.a.name}, ${aOrder} ${bOrder}: [${row}, ${column}] is ${got}, not ${sum}`,
        );
    }
    const behind = after.subarray(cAt + row * cRow + n * bytes, cAt + (row + 1) * cRow);
    expect(behind.every((byte) => byte === guard)).toBe(true);
  }
  const end = scratchAt + scratchBytes;
  expect(after.subarray(end, end + 64).every((byte) => byte === guard)).toBe(true);
}

const edges = takesAll
  ? [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 95, 96, 97]
  : [1, 5, 8, 17];
const orders = ["rows", "columns", "strided"] as const;

describe.each(forms)("products, relaxed %s", (relaxed) => {
  test("sizes around blocks, strides of every kind", () => {
    const random = new Random(7);
    for (const m of edges)
      for (const n of edges)
        for (const k of takesAll ? [0, 1, 2, 5, 64] : [0, 1, 13]) {
          const pick = (): Order => orders[random.below(3)] ?? "rows";
          check({ a: f32, b: f32, relaxed }, { m, n, k }, [pick(), pick()], random);
        }
  });

  test("blocks of 6 rows, as newer engines like them", () => {
    const random = new Random(14);
    for (const dtype of [f32, bf16, f64]) {
      const shape = blockShape(dtype === f64 ? "f64" : "f32", 6);
      for (const order of orders)
        check(
          { a: dtype, b: dtype, relaxed, shape },
          { m: 25, n: 19, k: 42 },
          [order, order],
          random,
        );
    }
  });

  test("longer than the blocks of every side", () => {
    check({ a: f32, b: f32, relaxed }, { m: 5, n: 1030, k: 390 }, ["rows", "rows"], new Random(8));
    check(
      { a: f32, b: f32, relaxed },
      { m: 197, n: 9, k: 385 },
      ["rows", "columns"],
      new Random(9),
    );
  });

  test.each([f64, f16, bf16, f8e4m3fn])("of $name", (dtype) => {
    const random = new Random(10);
    for (const order of orders)
      for (const shape of [
        { m: 9, n: 13, k: 35 },
        { m: 4, n: 8, k: 400 },
      ])
        check({ a: dtype, b: dtype, relaxed }, shape, [order, order], random);
  });
});

test.each([
  [i8, i8],
  [u8, u8],
  [i8, u8],
  [i16, i8],
  [i32Words, u8],
])("integers are exact: $0.name by $1.name", (a, b) => {
  const random = new Random(11);
  for (const order of orders)
    for (const shape of [
      { m: 9, n: 13, k: 35 },
      { m: 4, n: 8, k: 769 },
      { m: 3, n: 2, k: 1 },
    ])
      check({ a, b, relaxed: false }, shape, [order, order], random);
});

test("an epilogue sees each sum once, with its row and column", () => {
  // max(sum + row + 100·column, 0)
  const epilogue: Epilogue = (builder, sums, row, column) => {
    const first = op("f32.convert_i32_u", op("i32.add", row, op("i32.mul", column, i32.of(100))));
    const start = op("f32x4.splat", first);
    const lanes = builder.keep(op("f32x4.mul", vector("f32x4", [0, 1, 2, 3]), splat("f32x4", 100)));
    return op(
      "f32x4.pmax",
      splat("f32x4", 0),
      op("f32x4.add", sums, op("f32x4.add", start, lanes)),
    );
  };
  const [m, n, k] = [6, 11, 500];
  const module = new ModuleBuilder({ memory });
  const product: Product = { a: f32, b: f32, relaxed: false, epilogue };
  defineProduct(module, product);
  const random = new Random(12);
  const a = matrix(f32, m, k, "rows", random);
  const b = matrix(f32, k, n, "rows", random);
  const source = new Uint8Array(65536 * 40);
  source.set(a.bytes);
  source.set(b.bytes, 65536);
  const operands = [0, 65536, 131072, m, n, k, 4 * k, 4, 4 * n, 4, 4 * n, 196608];
  const after = runModule(emitModule(module.finish()), source, 64, (exports) =>
    exports["product"]?.(...operands),
  );
  const results = new Float32Array(after.buffer, 131072, m * n);
  results.forEach((got, index) => {
    const [row, column] = [Math.floor(index / n), index % n];
    let sum = row + 100 * column;
    for (let step = 0; step < k; step++)
      sum += (a.values[row * k + step] ?? 0) * (b.values[step * n + column] ?? 0);
    expect(Math.abs(got - Math.max(sum, 0))).toBeLessThan(2e-3);
  });
});

test("tiles: C += A·B with what is left of rows and columns", () => {
  const [m, n, k] = [10, 19, 12];
  const module = new ModuleBuilder({ memory });
  const callee = defineTileProduct(module, {
    numbers: "f32",
    m,
    n,
    steps: k,
    aRow: 4 * k,
    aStep: 4,
    bStep: 4 * n,
    cRow: 4 * n,
    accumulates: true,
    relaxed: false,
  });
  module.define(
    "run",
    ["i32", "i32", "i32"],
    [],
    (builder, ...operands) => {
      builder.call(callee, ...operands);
    },
    { exported: true },
  );
  const random = new Random(13);
  const [a, b, c] = [
    matrix(f32, m, k, "rows", random),
    matrix(f32, k, n, "rows", random),
    matrix(f32, m, n, "rows", random),
  ];
  const source = new Uint8Array(12288).fill(guard);
  source.set(a.bytes);
  source.set(b.bytes, 4096);
  source.set(c.bytes, 8192);
  const after = runModule(emitModule(module.finish()), source, 64, (exports) =>
    exports["run"]?.(0, 4096, 8192),
  );
  const results = new Float32Array(after.buffer, 8192, m * n);
  results.forEach((got, index) => {
    let sum = c.values[index] ?? 0;
    for (let step = 0; step < k; step++)
      sum +=
        (a.values[Math.floor(index / n) * k + step] ?? 0) * (b.values[step * n + (index % n)] ?? 0);
    expect(Math.abs(got - sum)).toBeLessThan(1e-5);
  });
  expect(after.subarray(8192 + 4 * m * n, 12288).every((byte) => byte === guard)).toBe(true);
});

test("the innermost loop fits the registers of every engine", () => {
  for (const dtype of [f32, f64, i8]) {
    const module = new ModuleBuilder({ memory });
    defineProduct(module, { a: dtype, b: dtype, relaxed: true });
    const kernels = module
      .finish()
      .functions.filter(({ callee }) => callee.name.startsWith("product_"));
    expect(kernels.length).toBeGreaterThan(0);
    for (const kernel of kernels)
      for (const pressure of loopPressures(kernel)) {
        expect(pressure.live).toBeLessThanOrEqual(vectorRegisters);
        expect(pressure.carriedAndLoads).toBeLessThanOrEqual(vectorRegisters);
      }
  }
});
