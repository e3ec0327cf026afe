/**
 * Products of tiles, whose sizes and strides are known: C += A·B, or C = A·B, in memory. Blocks of C go through micro-kernels, one for
 * whole blocks and others for what is left of rows and columns:
 *
 *        8   8   8  3
 *     4  ■   ■   ■  ▪      down a strip of columns first, so that its part of B stays in the first cache
 *     4  ■   ■   ■  ▪
 *     2  ▪   ▪   ▪  ▪
 */
import { i32 } from "../loops/builder.ts";
import type { FunctionBuilder, ModuleBuilder } from "../loops/builder.ts";
import type { Callee, Expression } from "../loops/ir.ts";
import { defineMicroKernel, numberBytes, vectorColumns } from "./micro-kernel.ts";
import type { Epilogue, MicroKernel, ProductNumbers } from "./micro-kernel.ts";

export interface BlockShape {
  readonly rows: number;
  readonly columns: number;
}

/** What engines keep in registers: two vectors of columns, and 4 rows; newer ones keep 6 (`micro-kernel.ts`). */
export function blockShape(numbers: ProductNumbers, rows: 4 | 6 = 4): BlockShape {
  return { rows, columns: 2 * vectorColumns[numbers] };
}

export interface TileProduct {
  readonly numbers: ProductNumbers;
  readonly m: number;
  readonly n: number;
  /** Steps: of i32 half as many as K, rounded up. */
  readonly steps: number;
  /** Bytes between rows and steps of A; of B between steps, its columns being neighbours; between rows of C. */
  readonly aRow: number;
  readonly aStep: number;
  readonly bStep: number;
  readonly cRow: number;
  /** Bytes by which a row moves on where a block begins, and a column: other than within a block where panels are packed. */
  readonly aBlockRow?: number;
  readonly bBlockColumn?: number;
  readonly accumulates: boolean;
  readonly relaxed: boolean;
  readonly shape?: BlockShape;
  readonly epilogue?: Epilogue;
}

interface Span {
  readonly begin: number;
  readonly count: number;
  readonly size: number;
}

/** Whole blocks, and what is left. */
function spans(extent: number, size: number): readonly Span[] {
  const whole = Math.floor(extent / size);
  const rest = extent - whole * size;
  return [
    { begin: 0, count: whole, size },
    { begin: whole * size, count: rest === 0 ? 0 : 1, size: rest },
  ].filter(({ count }) => count > 0);
}

/** A function of the addresses of A, B and C. */
export function defineTileProduct(module: ModuleBuilder, product: TileProduct): Callee {
  const { numbers, m, n, steps, shape = blockShape(numbers), epilogue } = product;
  const { aRow, aStep, bStep, cRow, accumulates, relaxed } = product;
  const bytes = numberBytes[numbers];
  const { aBlockRow = aRow, bBlockColumn = bytes } = product;
  const columns = spans(n, shape.columns);
  const rows = spans(m, shape.rows);
  const kernels = columns.map((column) =>
    rows.map((row) => {
      const known = { numbers, aRow, aStep, bStep, cRow, accumulates, relaxed };
      const kernel: MicroKernel = { ...known, rows: row.size, columns: column.size };
      return defineMicroKernel(module, epilogue === undefined ? kernel : { ...kernel, epilogue });
    }),
  );
  return module.define(
    `product_${numbers}_${m}x${n}x${steps}`,
    ["i32", "i32", "i32"],
    [],
    (builder, a, b, c) => {
      if (a === undefined || b === undefined || c === undefined)
        throw new Error("a product takes a, b and c");
      columns.forEach((column, columnIndex) =>
        overSpan(builder, column, (j) => {
          rows.forEach((row, rowIndex) =>
            overSpan(builder, row, (i) => {
              const kernel = kernels[columnIndex]?.[rowIndex];
              if (kernel === undefined) return;
              const place = i32.add(i32.mul(i, i32.of(cRow)), i32.mul(j, i32.of(bytes)));
              builder.call(
                kernel,
                i32.add(a, i32.mul(i, i32.of(aBlockRow))),
                i32.add(b, i32.mul(j, i32.of(bBlockColumn))),
                i32.add(c, place),
                i32.of(steps),
                ...(epilogue === undefined ? [] : [i, j]),
              );
            }),
          );
        }),
      );
    },
    { names: ["a", "b", "c"] },
  );
}

function overSpan(
  builder: FunctionBuilder,
  { begin, count, size }: Span,
  body: (at: Expression) => void,
): void {
  if (count === 1) return body(i32.of(begin));
  builder.countedLoop(i32.of(begin), i32.of(begin + count * size), size, body);
}
