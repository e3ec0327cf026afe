/**
 * The innermost loop of matrix products: a block of C, `rows` by `columns`, in registers, to which each step adds a column of A
 * times a row of B.
 *
 *          b b b b  b b b b         4 × 8 of f32: 8 accumulators, 2 vectors of B, 4 of A in all lanes, which is 14 of the
 *     a    c c c c  c c c c         15 registers that engines have. Older V8 puts all loads of a body first, so that rolled
 *     a    c c c c  c c c c         loops of this shape are the fastest there, and unrolled ones or 6 × 8 spill; newer V8
 *     a    c c c c  c c c c         needs one vector of A at a time, and 6 × 8 is the fastest.
 *     a    c c c c  c c c c
 *
 * Integers of 8 bits are widened to 16 and come in pairs of steps, which one instruction multiplies and adds, exactly. Columns that fill no vector are loaded with what lies behind them, and not stored.
 */
import { i32, load, op, read, splat } from "../loops/builder.ts";
import type { FunctionBuilder, ModuleBuilder } from "../loops/builder.ts";
import type { Callee, Expression, Local } from "../loops/ir.ts";

/** What is multiplied and summed: words of i32, or pairs of i16 that are summed in i32. */
export type ProductNumbers = "f32" | "f64" | "i32" | "pairs";

/** Columns of C in a vector. */
export const vectorColumns: { readonly [N in ProductNumbers]: number } = {
  f32: 4,
  f64: 2,
  i32: 4,
  pairs: 4,
};
/** Bytes of an element of C, and of what a step takes of a row of A. */
export const numberBytes: { readonly [N in ProductNumbers]: number } = {
  f32: 4,
  f64: 8,
  i32: 4,
  pairs: 4,
};

/** Applied to sums before they are stored: a vector of row `row` from column `column` on. */
export type Epilogue = (
  builder: FunctionBuilder,
  sums: Expression,
  row: Expression,
  column: Expression,
) => Expression;

export interface MicroKernel {
  readonly numbers: ProductNumbers;
  readonly rows: number;
  readonly columns: number;
  /** Bytes from a row of A to the next, and from a step to the next. */
  readonly aRow: number;
  readonly aStep: number;
  /** Bytes from a step of B to the next; its columns are neighbours. */
  readonly bStep: number;
  /** Bytes from a row of C to the next; a parameter where it is not known. */
  readonly cRow?: number;
  /** Whether sums begin with what C holds, or with zero. */
  readonly accumulates: boolean;
  readonly relaxed: boolean;
  readonly epilogue?: Epilogue;
}

/** Parameters: a, b, c, steps; then the row stride of C where it is not known, then row and column where there is an epilogue. */
export function defineMicroKernel(module: ModuleBuilder, kernel: MicroKernel): Callee {
  const { numbers, rows, columns, cRow, epilogue } = kernel;
  const names = ["a", "b", "c", "steps"];
  if (cRow === undefined) names.push("stride");
  if (epilogue !== undefined) names.push("row", "column");
  return module.define(
    `product_${numbers}_${rows}x${columns}`,
    names.map(() => "i32" as const),
    [],
    (builder, a, b, c, steps, ...others) => {
      if (a === undefined || b === undefined || c === undefined || steps === undefined)
        throw new Error("a product takes a, b, c and steps");
      const stride = cRow === undefined ? others.shift() : i32.of(cRow);
      const block = new Block(builder, kernel, rowAddresses(builder, kernel, c, stride));
      block.begin();
      block.multiply(a, b, steps);
      block.store(others);
    },
    { names },
  );
}

interface RowAddress {
  readonly address: Expression;
  readonly offset: number;
}

/** Known strides are offsets of one address. */
function rowAddresses(
  builder: FunctionBuilder,
  { rows, cRow }: MicroKernel,
  c: Expression,
  stride: Expression | undefined,
): readonly RowAddress[] {
  if (stride === undefined) throw new Error("a product without a stride of C");
  let address = c;
  return Array.from({ length: rows }, (_, row) => {
    if (cRow !== undefined) return { address: c, offset: row * cRow };
    if (row > 0) address = builder.keep(i32.add(address, stride), "c");
    return { address, offset: 0 };
  });
}

class Block {
  readonly #builder: FunctionBuilder;
  readonly #kernel: MicroKernel;
  readonly #addresses: readonly RowAddress[];
  readonly #sums: Local[][] = [];

  constructor(builder: FunctionBuilder, kernel: MicroKernel, addresses: readonly RowAddress[]) {
    this.#builder = builder;
    this.#kernel = kernel;
    this.#addresses = addresses;
  }

  get #vectors(): number {
    const { numbers, columns } = this.#kernel;
    return Math.ceil(columns / vectorColumns[numbers]);
  }

  begin(): void {
    const { accumulates } = this.#kernel;
    for (const { address, offset } of this.#addresses)
      this.#sums.push(
        Array.from({ length: this.#vectors }, (_, vector) =>
          this.#builder.variable(
            accumulates ? load("v128.load", address, offset + 16 * vector) : splat("i32x4", 0),
            "sum",
          ),
        ),
      );
  }

  multiply(a: Expression, b: Expression, steps: Expression): void {
    const { aRow, aStep, bStep, numbers } = this.#kernel;
    const builder = this.#builder;
    const splatLoad = numbers === "f64" ? "v128.load64_splat" : "v128.load32_splat";
    const next = builder.variable(b, "b");
    const end = i32.add(a, i32.mul(steps, i32.of(aStep)));
    builder.countedLoop(
      a,
      end,
      aStep,
      (at) => {
        const right = Array.from({ length: this.#vectors }, (_, vector) =>
          builder.keep(load("v128.load", read(next), 16 * vector), "right"),
        );
        this.#sums.forEach((sums, row) => {
          const left = builder.keep(load(splatLoad, at, row * aRow), "left");
          sums.forEach((sum, vector) => {
            const factor = right[vector];
            if (factor !== undefined) builder.set(sum, this.#added(left, factor, read(sum)));
          });
        });
        builder.set(next, i32.add(read(next), i32.of(bStep)));
      },
      "step",
    );
  }

  #added(left: Expression, right: Expression, sum: Expression): Expression {
    const { numbers, relaxed } = this.#kernel;
    if (numbers === "pairs") return op("i32x4.add", op("i32x4.dot_i16x8_s", left, right), sum);
    if (numbers === "i32") return op("i32x4.add", op("i32x4.mul", left, right), sum);
    const shape = numbers === "f32" ? "f32x4" : "f64x2";
    return relaxed
      ? op(`${shape}.relaxed_madd`, left, right, sum)
      : op(`${shape}.add`, op(`${shape}.mul`, left, right), sum);
  }

  store([row, column]: readonly Expression[]): void {
    const { columns, numbers, epilogue } = this.#kernel;
    const builder = this.#builder;
    const per = vectorColumns[numbers];
    this.#sums.forEach((sums, index) => {
      const target = this.#addresses[index];
      if (target === undefined) return;
      sums.forEach((sum, vector) => {
        const value =
          epilogue === undefined || row === undefined || column === undefined
            ? read(sum)
            : epilogue(
                builder,
                read(sum),
                i32.add(row, i32.of(index)),
                i32.add(column, i32.of(vector * per)),
              );
        const lanes = Math.min(per, columns - vector * per);
        storeLanes(builder, numbers, lanes, target, 16 * vector, value);
      });
    });
  }
}

/** The first lanes of a vector. */
function storeLanes(
  builder: FunctionBuilder,
  numbers: ProductNumbers,
  lanes: number,
  { address, offset }: RowAddress,
  behind: number,
  value: Expression,
): void {
  const at = offset + behind;
  if (lanes === vectorColumns[numbers]) return builder.store("v128.store", address, value, at);
  if (numbers === "f64") return builder.storeLane("v128.store64_lane", 0, address, value, at);
  const kept = builder.keep(value);
  if (lanes >= 2) builder.storeLane("v128.store64_lane", 0, address, kept, at);
  if (lanes % 2 === 1)
    builder.storeLane("v128.store32_lane", lanes - 1, address, kept, at + 4 * (lanes - 1));
}
