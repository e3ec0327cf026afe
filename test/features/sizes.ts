/** Sizes known at launch where numbers are given. */
import {
  block,
  cdiv,
  constant,
  dim,
  f32,
  iota,
  kernel,
  loop,
  smem,
  tensor,
  zeros,
} from "tilewright";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type { Feature } from "./feature.ts";

const [rows, n] = [dim("rows"), dim("n")];
const [height, width] = [3, 77];
const numbers = Array.from({ length: height * width }, (_, index) => (index % 13) - 6);

/** A size where types want a number. */
const wrong = (size: unknown): number => size as number;

export const sizeFeatures: readonly Feature[] = [
  {
    name: "Sizes known at launch where numbers are given",
    written: ["block(i, n)", "loop({ to: cdiv(n, 64)", "constant(f32, n)"],
    page: "language.md#the-specification",
    cases: () => [
      {
        name: "windows, bounds of loops, operands, grids and shapes of arrays",
        kernel: () =>
          kernel(
            {
              name: "sums_and_sizes",
              grid: { i: rows },
              inputs: { x: tensor(f32, [rows, n]) },
              outputs: { sums: tensor(f32, [rows]), sizes: tensor(f32, [rows]) },
            },
            ({ i, x, sums, sizes }) => {
              const row = x.reshape([rows.mul(n)]).at(block(i, n));
              const total = loop({ to: cdiv(n, 16), carry: zeros(f32, [16]) }, (k, sum) =>
                sum.add(row.at(block(k, 16)).load()),
              );
              sums.at(i).store(total.sum());
              sizes
                .at(i)
                .store(constant(f32, n).add(i.lt(rows.sub(1)).select(constant(f32, 0), 0.5)));
            },
          ),
        inputs: { x: fromNumbers(f32, [height, width], numbers) },
        expected: {
          sums: Array.from({ length: height }, (_, row) =>
            numbers.slice(width * row, width * row + width).reduce((sum, value) => sum + value, 0),
          ),
          sizes: [width, width, width + 0.5],
        },
        targets: ["sm_80", "sm_90a", "sm_120a"],
      },
    ],
    refused: [
      {
        code: "TW1008",
        by: () =>
          kernel({ name: "tile", inputs: { x: tensor(f32, [n]) } }, () => {
            iota(f32, [wrong(n)], { axis: 0 });
          }),
      },
      {
        code: "TW2041",
        by: () =>
          kernel({ name: "memory", scratch: { s: smem(f32, [wrong(n)]) } }, () => undefined),
      },
    ],
  },
];
