/**
 * Products that the compiler makes in tensor memory: with sums that a loop carries or that it does not, of factors that are copied, computed or transposed, in every
 * format that it takes. Sums of small integers are exact, on the simulator and on the emulator.
 */
import { describe, expect, test } from "vitest";
import {
  all,
  bf16,
  block,
  dot,
  f32,
  f8e4m3fn,
  fromNumbers,
  i32,
  i8,
  kernel,
  loop,
  open,
  tensor,
  toNumbers,
  zeros,
} from "tilewright";
import type { DType, HostArray, Scalar, Tile } from "tilewright";
import { lower } from "../src/lower/stages.ts";
import { printPtx } from "../src/ptx/printer.ts";
import { targets } from "../src/targets/target.ts";
import { assemble } from "./support/accepted-assembly.ts";
import { hasPtxas } from "./support/assembler.ts";

const left = (row: number, column: number): number => ((row * 7 + column * 3) % 5) - 2;
const right = (row: number, column: number): number => ((row * 5 + column * 11) % 4) - 1;

function matrix(
  dtype: DType,
  [rows, columns]: readonly [number, number],
  of: (row: number, column: number) => number,
  turned: boolean,
): HostArray {
  const shape = turned ? [columns, rows] : [rows, columns];
  const across = shape[1] ?? 1;
  const values = Array.from({ length: rows * columns }, (_, at) => {
    const [first, second] = [Math.floor(at / across), at % across];
    return turned ? of(second, first) : of(first, second);
  });
  return fromNumbers(dtype, shape, values);
}

type Multiplied = (x: Tile<"bf16">, y: Tile<"bf16">, accumulator: Tile<"f32">) => Tile<"f32">;
const plainly: Multiplied = (x, y, accumulator) => dot(x, y, { accumulator });

describe("a dot adds up in tensor memory", () => {
  interface Form {
    readonly name: string;
    readonly shape: readonly [m: number, n: number, k: number];
    readonly dtype?: DType;
    /** Whether factors lie by columns. */
    readonly turned?: boolean;
    readonly steps?: number;
    readonly multiplied?: Multiplied;
    readonly instructions: number;
  }
  const forms: readonly Form[] = [
    { name: "96 columns", shape: [128, 96, 32], instructions: 2 },
    { name: "48 columns of 64 rows", shape: [64, 48, 32], instructions: 2 },
    {
      name: "FP8 by columns, promoted",
      shape: [128, 64, 64],
      dtype: f8e4m3fn,
      turned: true,
      instructions: 2,
    },
    { name: "integers", shape: [64, 32, 64], dtype: i8, instructions: 2 },
    {
      name: "factors that are computed",
      shape: [128, 32, 32],
      multiplied: (x, y, accumulator) =>
        dot(x.minimum(x.add(1)), y.maximum(y.sub(1)), { accumulator }),
      instructions: 2,
    },
    {
      name: "tiles that are transposed",
      shape: [64, 32, 32],
      turned: true,
      multiplied: (x, y, accumulator) => dot(x, y, { accumulator }),
      instructions: 2,
    },
    {
      name: "a sum that is changed in the loop",
      shape: [128, 128, 128],
      multiplied: (x, y, accumulator) => plainly(x, y, accumulator.mul(1).add(accumulator.mul(0))),
      instructions: 8,
    },
    { name: "one product", shape: [128, 128, 128], steps: 1, instructions: 8 },
  ];
  test.each(forms)("of $name", async (form) => {
    const { shape, dtype = bf16, turned = false, steps = 2, multiplied = plainly } = form;
    const [m, n, k] = shape;
    const depth = k * steps;
    const sums = dtype === i8 ? i32 : f32;
    const definition = kernel(
      {
        name: "products",
        inputs: {
          x: tensor(dtype, turned ? [depth, m] : [m, depth]),
          y: tensor(dtype, turned ? [n, depth] : [depth, n]),
        },
        outputs: { out: tensor(sums, [m, n]) },
      },
      ({ x, y, out }) => {
        const product = (step: Scalar<"i32"> | number, accumulator: Tile): Tile => {
          const along = block(step as Scalar<"i32">, k);
          const a = turned ? x.at(along, all).load().transpose() : x.at(all, along).load();
          const b = turned ? y.at(all, along).load().transpose() : y.at(along, all).load();
          return multiplied(a as never, b as never, accumulator as never);
        };
        const none: Tile = zeros(sums, [m, n]);
        out.store(
          (steps === 1 ? product(0, none) : loop({ to: steps, carry: none }, product)) as never,
        );
      },
    );
    const ptx = printPtx(lower(definition.kernel, targets.sm_100a).module);
    expect(ptx.match(/tcgen05\.mma/g)?.length).toBe(form.instructions);
    expect(ptx).not.toContain("mma.sync");
    if (hasPtxas) expect(assemble(ptx, "sm_100a")).toBe("");
    const inputs = {
      x: matrix(dtype, [m, depth], left, turned),
      y: matrix(dtype, [depth, n], right, turned),
    };
    const expected = Array.from({ length: m * n }, (_value, at) => {
      let total = 0;
      for (let each = 0; each < depth; each += 1)
        total += left(Math.floor(at / n), each) * right(each, at % n);
      return total;
    });
    for (const kind of ["simulator", "emulator"] as const) {
      const device = await open(kind, { target: "sm_100a" });
      const { out } = await device.run(definition, inputs as never);
      device.dispose();
      expect([...toNumbers(out as never)], kind).toEqual(expected);
    }
  });
});
