/**
 * Whole products C = A·B of any sizes and strides, in blocks for the caches:
 *
 *   B    steps × columns     384 × 1024      packed once for all rows             second cache and beyond
 *   A    rows × steps         96 × 384       packed for a block of columns        second cache
 *   b    steps × 8           of packed B     stays while a strip of C is made     first cache
 *
 * Sums go to C and come back where K is longer than a block; an epilogue is applied with the last one. Blocks at the lower and right edge
 * are computed whole, in a buffer of their own.
 */
import type { DType } from "../../formats/dtype.ts";
import { i32, load, op, select } from "../loops/builder.ts";
import type { FunctionBuilder, ModuleBuilder } from "../loops/builder.ts";
import type { Callee, Expression } from "../loops/ir.ts";
import { defineIntegerPacking } from "./integer-packing.ts";
import { defineMicroKernel, numberBytes } from "./micro-kernel.ts";
import type { Epilogue, MicroKernel, ProductNumbers } from "./micro-kernel.ts";
import { definePacking, packingSlack } from "./packing.ts";
import { isPaired } from "./panels.ts";
import type { Packing } from "./panels.ts";
import { blockShape } from "./tile-product.ts";
import type { BlockShape } from "./tile-product.ts";

export interface Product {
  /** Formats of A and B, an element a slot; C is f64 of f64, i32 of integers of at most 32 bits, and f32 of other floats. */
  readonly a: DType;
  readonly b: DType;
  readonly relaxed: boolean;
  readonly shape?: BlockShape;
  readonly epilogue?: Epilogue;
}

/** Rows and columns are multiples of those of every micro-kernel. */
const blocks = { rows: 96, steps: 384, columns: 1024 } as const;

/** In what products of two formats are summed; undefined where they are not. */
export function productNumbers({ a, b }: Pick<Product, "a" | "b">): ProductNumbers | undefined {
  if (a.kind === "float" && b.kind === "float") {
    if (a.name === "f64" || b.name === "f64") return a === b ? "f64" : undefined;
    return "f32";
  }
  if (a.kind === "float" || b.kind === "float" || a.bits > 32 || b.bits > 32) return undefined;
  return isPaired(a) && isPaired(b) ? "pairs" : "i32";
}

function requiredNumbers(product: Product): ProductNumbers {
  const numbers = productNumbers(product);
  if (numbers !== undefined) return numbers;
  throw new Error(`no product of ${product.a.name} and ${product.b.name}`);
}

/** A function that packs an operand of such a product. */
export function defineOperandPacking(
  module: ModuleBuilder,
  numbers: ProductNumbers,
  packing: Packing,
): Callee {
  return numbers === "pairs"
    ? defineIntegerPacking(module, packing)
    : definePacking(module, packing);
}

interface Scratch {
  readonly b: number;
  readonly edge: number;
  readonly bytes: number;
}

/** Packed A, then packed B, then a block of C. */
function scratchOf(numbers: ProductNumbers, { rows, columns }: BlockShape): Scratch {
  const bytes = numberBytes[numbers];
  const aligned = (size: number): number => Math.ceil(size / 64) * 64;
  const b = aligned(blocks.rows * blocks.steps * bytes + packingSlack(rows, bytes));
  const edge = b + aligned(blocks.steps * blocks.columns * bytes + packingSlack(columns, bytes));
  return { b, edge, bytes: edge + aligned(rows * columns * bytes) };
}

/** Bytes of scratch that a product wants, aligned to 64. */
export function productScratchBytes(product: Product): number {
  const numbers = requiredNumbers(product);
  return scratchOf(numbers, product.shape ?? blockShape(numbers)).bytes;
}

/** Parameters of a whole product; strides are in bytes, columns of C are neighbours. */
export const productParameters = [
  "a",
  "b",
  "c",
  "m",
  "n",
  "k",
  "aRow",
  "aStep",
  "bStep",
  "bColumn",
  "cRow",
  "scratch",
] as const;
export function defineProduct(module: ModuleBuilder, product: Product): Callee {
  const numbers = requiredNumbers(product);
  const shape = product.shape ?? blockShape(numbers);
  const bytes = numberBytes[numbers];
  const packA = defineOperandPacking(module, numbers, { from: product.a, lines: shape.rows });
  const packB = defineOperandPacking(module, numbers, { from: product.b, lines: shape.columns });
  const strip = defineStrip(module, product, numbers, shape);
  const scratch = scratchOf(numbers, shape);
  return module.define(
    "product",
    productParameters.map(() => "i32" as const),
    [],
    (builder, ...given) => {
      const p = parametersOf(productParameters, given);
      const packedB = builder.keep(i32.add(p("scratch"), i32.of(scratch.b)));
      const inBlocks = (
        extent: Expression,
        size: number,
        body: (begin: Expression, count: Expression) => void,
      ): void =>
        builder.countedLoop(i32.of(0), extent, size, (begin) => {
          const left = builder.keep(i32.sub(extent, begin));
          body(begin, builder.keep(least(left, size)));
        });
      // Without steps C is what an empty sum is.
      const steps = builder.keep(select(p("k"), p("k"), i32.of(1)));
      inBlocks(p("n"), blocks.columns, (column, columns) =>
        inBlocks(steps, blocks.steps, (step) => {
          const here = builder.keep(least(builder.keep(i32.sub(p("k"), step)), blocks.steps));
          const fromB = at(at(p("b"), step, p("bStep")), column, p("bColumn"));
          builder.call(packB, fromB, packedB, columns, here, p("bColumn"), p("bStep"));
          const isFirst = builder.keep(op("i32.eqz", step));
          const isLast = builder.keep(op("i32.ge_u", i32.add(step, here), p("k")));
          inBlocks(p("m"), blocks.rows, (row, rows) => {
            const fromA = at(at(p("a"), row, p("aRow")), step, p("aStep"));
            builder.call(packA, fromA, p("scratch"), rows, here, p("aRow"), p("aStep"));
            const c = at(i32.add(p("c"), i32.mul(column, i32.of(bytes))), row, p("cRow"));
            const packed =
              numbers === "pairs" ? op("i32.shr_u", i32.add(here, i32.of(1)), i32.of(1)) : here;
            const edge = i32.add(p("scratch"), i32.of(scratch.edge));
            builder.call(
              strip,
              p("scratch"),
              packedB,
              c,
              rows,
              columns,
              packed,
              p("cRow"),
              edge,
              isFirst,
              isLast,
              row,
              column,
            );
          });
        }),
      );
    },
    { exported: true, names: productParameters },
  );
}

/** Parameters by name. */
function parametersOf<N extends string>(
  names: readonly N[],
  given: readonly Expression[],
): (name: N) => Expression {
  return (name) => {
    const found = given[names.indexOf(name)];
    if (found === undefined) throw new Error(`parameter ${name} is missing`);
    return found;
  };
}

function least(value: Expression, bound: number): Expression {
  return select(op("i32.lt_u", value, i32.of(bound)), value, i32.of(bound));
}

function at(base: Expression, index: Expression, stride: Expression): Expression {
  return i32.add(base, i32.mul(index, stride));
}

const stripParameters = [
  "a",
  "b",
  "c",
  "rows",
  "columns",
  "steps",
  "stride",
  "edge",
  "isFirst",
  "isLast",
  "row",
  "column",
] as const;

interface KernelPair {
  readonly zero: Callee;
  readonly more: Callee;
}

/** Micro-kernels whose sums begin with zero and with more, before the last block of steps and for it. */
function stripKernels(
  module: ModuleBuilder,
  { relaxed, epilogue }: Pick<Product, "relaxed" | "epilogue">,
  numbers: ProductNumbers,
  shape: BlockShape,
): { readonly plain: KernelPair; readonly last: KernelPair } {
  const bytes = numberBytes[numbers];
  const kernel = (accumulates: boolean, last: boolean): Callee => {
    const plain: MicroKernel = {
      numbers,
      ...shape,
      aRow: bytes,
      aStep: shape.rows * bytes,
      bStep: shape.columns * bytes,
      accumulates,
      relaxed,
    };
    const isWith = last && epilogue !== undefined;
    return defineMicroKernel(module, isWith ? { ...plain, epilogue } : plain);
  };
  const pairOf = (last: boolean): KernelPair => ({
    zero: kernel(false, last),
    more: kernel(true, last),
  });
  const plain = pairOf(false);
  return { plain, last: epilogue === undefined ? plain : pairOf(true) };
}

/** Packed blocks of A and B to a block of C. */
function defineStrip(
  module: ModuleBuilder,
  product: Product,
  numbers: ProductNumbers,
  shape: BlockShape,
): Callee {
  const bytes = numberBytes[numbers];
  const { epilogue } = product;
  const { plain, last } = stripKernels(module, product, numbers, shape);
  const copy = defineCopy(module, bytes);
  return module.define(
    "strip",
    stripParameters.map(() => "i32" as const),
    [],
    (builder, ...given) => {
      const p = parametersOf(stripParameters, given);
      const [rows, columns, steps, stride] = [p("rows"), p("columns"), p("steps"), p("stride")];
      const [edge, isFirst] = [p("edge"), p("isFirst")];
      const run = (
        ...block: readonly [Expression, Expression, Expression, Expression, Expression, Expression]
      ): void => {
        const [aAt, bAt, cAt, cRow, i, j] = block;
        const operands = [aAt, bAt, cAt, steps, cRow];
        const places = () => [i32.add(p("row"), i), i32.add(p("column"), j)];
        const start = (pair: KernelPair, more: () => readonly Expression[]): void =>
          builder.if(
            isFirst,
            () => void builder.call(pair.zero, ...operands, ...more()),
            () => void builder.call(pair.more, ...operands, ...more()),
          );
        if (epilogue === undefined) start(plain, () => []);
        else
          builder.if(
            p("isLast"),
            () => start(last, places),
            () => start(plain, () => []),
          );
      };
      const aBytes = builder.keep(i32.mul(steps, i32.of(bytes)));
      builder.countedLoop(i32.of(0), columns, shape.columns, (j) => {
        const bAt = builder.keep(at(p("b"), j, aBytes));
        const width = builder.keep(least(builder.keep(i32.sub(columns, j)), shape.columns));
        builder.countedLoop(i32.of(0), rows, shape.rows, (i) => {
          const aAt = builder.keep(at(p("a"), i, aBytes));
          const cAt = builder.keep(at(i32.add(p("c"), i32.mul(j, i32.of(bytes))), i, stride));
          const height = builder.keep(least(builder.keep(i32.sub(rows, i)), shape.rows));
          const isWhole = op(
            "i32.and",
            op("i32.eq", width, i32.of(shape.columns)),
            op("i32.eq", height, i32.of(shape.rows)),
          );
          builder.if(
            isWhole,
            () => run(aAt, bAt, cAt, stride, i, j),
            () => {
              const edgeRow = i32.of(shape.columns * bytes);
              builder.call(copy, cAt, edge, height, width, stride, edgeRow);
              run(aAt, bAt, edge, edgeRow, i, j);
              builder.call(copy, edge, cAt, height, width, edgeRow, stride);
            },
          );
        });
      });
    },
    { names: stripParameters },
  );
}

/** Copies rows of few elements: source, target, rows, columns, and the strides of both. */
function defineCopy(module: ModuleBuilder, bytes: number): Callee {
  const [loadName, storeName] =
    bytes === 8 ? (["i64.load", "i64.store"] as const) : (["i32.load", "i32.store"] as const);
  const names = ["source", "target", "rows", "columns", "from", "to"];
  return module.define(
    "copy",
    names.map(() => "i32" as const),
    [],
    (builder: FunctionBuilder, source, target, rows, columns, from, to) => {
      if (!source || !target || !rows || !columns || !from || !to) return;
      const width = builder.keep(i32.mul(columns, i32.of(bytes)));
      builder.countedLoop(i32.of(0), rows, 1, (row) => {
        const first = builder.keep(at(source, row, from));
        const shift = builder.keep(i32.sub(at(target, row, to), first));
        builder.countedLoop(first, i32.add(first, width), bytes, (place) =>
          builder.store(storeName, i32.add(place, shift), load(loadName, place)),
        );
      });
    },
    { names },
  );
}
