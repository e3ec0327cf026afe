/** The sum of every column: each block adds up some rows, and the last statement adds the parts. Or does it? */
import { all, tensor, f32, kernel, slice } from "tilewright";

const [rows, columns] = [256, 128];

export const columnSum = kernel(
  {
    name: "columnSum",
    grid: { i: rows / 64 },
    inputs: { x: tensor(f32, [rows, columns]) },
    inouts: { total: tensor(f32, [columns]) },
  },
  ({ i, x, total }) => {
    const part = x
      .at(slice(i.mul(64), 64), all)
      .load()
      .sum({ axis: 0 });
    const before = total.load();
    total.store(before.add(part));
  },
);
