/** Rows by index, sums of rows by index, and transposes: elements of 32 bits. */
import { transpose4 } from "../products/packing.ts";
import { i32, load, op, read } from "../loops/builder.ts";
import type { ModuleBuilder } from "../loops/builder.ts";
import type { Callee, Expression } from "../loops/ir.ts";

const words = (names: readonly string[]) => names.map(() => "i32" as const);

/** Parameters: table, indices, target, count, bytes of a row. Every index names a row of the table. */
export function defineGatherRows(module: ModuleBuilder): Callee {
  const names = ["table", "indices", "target", "count", "rowBytes"];
  return module.define(
    "gather_rows",
    words(names),
    [],
    (builder, table, indices, target, count, rowBytes) => {
      if (!table || !indices || !target || !count || !rowBytes)
        throw new Error(`a gather takes ${names.join(", ")}`);
      const to = builder.variable(target, "to");
      const end = i32.add(indices, i32.mul(count, i32.of(4)));
      builder.countedLoop(indices, end, 4, (at) => {
        const row = i32.mul(load("i32.load", at), rowBytes);
        builder.run(op("memory.copy", read(to), i32.add(table, row), rowBytes));
        builder.set(to, i32.add(read(to), rowBytes));
      });
    },
    { names },
  );
}

/**
 * Parameters: table, indices, updates, count, elements of a row, first and end of the rows that are this caller's. Each row of updates is
 * added to the row of the table that its index names, in order; others than the caller's are left to others, so that nobody waits.
 */
export function defineScatterAddRows(module: ModuleBuilder): Callee {
  const names = ["table", "indices", "updates", "count", "elements", "first", "end"];
  return module.define(
    "scatter_add_rows",
    words(names),
    [],
    (builder, table, indices, updates, count, elements, ...range) => {
      const [first, end] = range;
      if (!table || !indices || !updates || !count || !elements || !first || !end)
        throw new Error(`a scatter takes ${names.join(", ")}`);
      const from = builder.variable(updates, "from");
      const rowBytes = builder.keep(i32.mul(elements, i32.of(4)));
      const wholeBytes = builder.keep(op("i32.and", rowBytes, i32.of(-16)));
      const size = builder.keep(i32.sub(end, first));
      const last = i32.add(indices, i32.mul(count, i32.of(4)));
      builder.countedLoop(indices, last, 4, (at) => {
        const index = builder.keep(load("i32.load", at));
        builder.if(op("i32.lt_u", i32.sub(index, first), size), () => {
          const row = builder.keep(i32.add(table, i32.mul(index, rowBytes)));
          const shift = builder.keep(i32.sub(read(from), row));
          const middle = builder.keep(i32.add(row, wholeBytes));
          builder.countedLoop(row, middle, 16, (place) => {
            const update = load("v128.load", i32.add(place, shift));
            const sum = op("f32x4.add", load("v128.load", place), update);
            builder.store("v128.store", place, sum);
          });
          builder.countedLoop(middle, i32.add(row, rowBytes), 4, (place) => {
            const update = load("f32.load", i32.add(place, shift));
            builder.store("f32.store", place, op("f32.add", load("f32.load", place), update));
          });
        });
        builder.set(from, i32.add(read(from), rowBytes));
      });
    },
    { names },
  );
}

/**
 * Parameters: source, target, rows, columns, and the bytes between rows of the source and of the target. Strips of 16 columns: a cache line of
 * the source is read whole while it is there.
 */
export function defineTranspose(module: ModuleBuilder): Callee {
  const names = ["source", "target", "rows", "columns", "sourceRow", "targetRow"];
  return module.define(
    "transpose",
    words(names),
    [],
    (builder, source, target, rows, columns, sourceRow, targetRow) => {
      if (!source || !target || !rows || !columns || !sourceRow || !targetRow)
        throw new Error(`a transpose takes ${names.join(", ")}`);
      const at = (base: Expression, row: Expression, stride: Expression, column: Expression) =>
        i32.add(i32.add(base, i32.mul(row, stride)), i32.mul(column, i32.of(4)));
      const strip = 16;
      const wholeRows = builder.keep(op("i32.and", rows, i32.of(-4)));
      const wholeColumns = builder.keep(op("i32.and", columns, i32.of(-strip)));
      builder.countedLoop(i32.of(0), wholeColumns, strip, (column) =>
        builder.countedLoop(i32.of(0), wholeRows, 4, (row) => {
          const lines = [builder.keep(at(source, row, sourceRow, column))];
          const targets = builder.variable(at(target, column, targetRow, row), "targets");
          for (let line = 1; line < 4; line++)
            lines.push(builder.keep(i32.add(lines[line - 1] ?? source, sourceRow)));
          for (let part = 0; part < strip; part += 4) {
            const loaded = lines.map((line) => builder.keep(load("v128.load", line, 4 * part)));
            for (const turned of transpose4(builder, loaded)) {
              builder.store("v128.store", read(targets), turned);
              builder.set(targets, i32.add(read(targets), targetRow));
            }
          }
        }),
      );
      const single = (rowBegin: Expression, columnBegin: Expression, rowEnd: Expression): void =>
        builder.countedLoop(rowBegin, rowEnd, 1, (row) =>
          builder.countedLoop(columnBegin, columns, 1, (column) => {
            const value = load("i32.load", at(source, row, sourceRow, column));
            builder.store("i32.store", at(target, column, targetRow, row), value);
          }),
        );
      single(i32.of(0), wholeColumns, wholeRows);
      single(wholeRows, i32.of(0), rows);
    },
    { names },
  );
}
