/** Rows are gathered by index. The table has 16 rows; the indices come from somewhere else. */
import { array, f32, i32, kernel } from "tilewright";

export const gather = kernel(
  {
    name: "gather",
    grid: { i: 8 },
    inputs: { table: array(f32, [16, 64]), rows: array(i32, [8]) },
    outputs: { out: array(f32, [8, 64]) },
  },
  ({ i, table, rows, out }) => {
    const row = rows.at(i).loadScalar();
    out.at(i).store(table.at(row.add(12)).load());
  },
);
