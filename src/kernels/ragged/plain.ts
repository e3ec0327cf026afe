/** Products of rows in groups on any GPU, of any formats, sizes and strides: blocks of one thread that read memory themselves. */
import {
  tensor,
  assert,
  cdiv,
  constant,
  dim,
  kernel,
  loop,
  slice,
  when,
  zeros,
} from "../../lang/index.ts";
import type { KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { Location } from "../../support/location.ts";
import type { PlainConfiguration, ProductSizes } from "../matmul/configuration.ts";
import { alignedDimensions } from "../matmul/dimensions.ts";
import { finished, inputSpecs } from "../matmul/epilogue/epilogue.ts";
import { addStep, multipliedPart } from "../matmul/plain.ts";
import { blockScaleInputs, partScales, scaledDepth } from "../matmul/block-scales.ts";
import type { StepScales } from "../matmul/block-scales.ts";
import type { MatmulProblem } from "../matmul/problem.ts";
import { prologueSpecs, storedDepth } from "../matmul/prologue/prologue.ts";
import { tableSpecs, tileRows } from "./tile-scheduler.ts";
import type { Tables } from "./tile-scheduler.ts";

type Integer = Scalar<"i32">;

/** Rows of groups, each with a matrix of its own: a block makes a tile of what the tables say. */
export function plainDotKernel(
  problem: MatmulProblem,
  { rows, columns, depth }: PlainConfiguration,
  sizes: ProductSizes,
  location: Location,
): KernelDefinition {
  const dimensions = alignedDimensions(sizes);
  const { batch, m, n, k } = dimensions;
  const { major, prologues } = problem;
  const depthOfB = storedDepth(prologues.b, k);
  return kernel(
    {
      name: "ragged_dot_plain",
      grid: { tile: dim("most"), j: cdiv(n, columns) },
      inputs: {
        a: tensor(problem.a.dtype, major.a === "k" ? [m, k] : [k, m]),
        b: tensor(problem.b.dtype, [batch, ...(major.b === "n" ? [depthOfB, n] : [n, depthOfB])]),
        ...inputSpecs(problem, dimensions, location),
        ...(prologues.b && prologueSpecs(prologues.b, dimensions)),
        ...blockScaleInputs(problem, dimensions),
        ...tableSpecs(),
      },
      inouts: { out: tensor(problem.out.dtype, [m, n]) },
    },
    (argument) => {
      const { tile, j, a, b, out } = argument as unknown as {
        readonly [N in "tile" | "j"]: Integer;
      } & { readonly [N in "a" | "b" | "out"]: Ref };
      const tables = argument as unknown as Tables;
      when(tile.lt(tables.count.at(0).loadScalar()), () => {
        const { group, top, end } = tileRows(tables, tile);
        const left = j.mul(columns);
        const [down, across] = [slice(top, rows), slice(left, columns)];
        const ofGroup = b.at(group);
        const scales = (operand: "a" | "b", start: Integer, count: number, along: Integer) =>
          partScales(
            problem,
            argument,
            { operand, batch: group, start, count },
            along.div(scaledDepth),
          );
        const sums = summed(problem, cdiv(k, depth), [rows, columns], (step) => {
          const start = step.mul(depth);
          const along = slice(start, depth);
          const stored: Tile =
            major.b === "n"
              ? ofGroup.at(along, across).load()
              : ofGroup.at(across, along).transpose().load();
          const place = {
            ...{ argument, batch: group, along: start, start: left, count: columns },
            ...{ depth, rest: constant(dtypes.i32, 0).add(k).sub(start), sizes, location },
          };
          return [
            major.a === "k" ? a.at(down, along).load() : a.at(along, down).transpose().load(),
            multipliedPart(prologues.b, stored, place),
            {
              rows: scales("a", top, rows, start),
              columns: scales("b", left, columns, start),
            },
          ];
        });
        const piece = { batch: undefined, top, left, rows, columns };
        const done = finished(sums, piece, problem, argument as never, location);
        out.at(slice(top, rows, { end }), across).store(done);
      });
    },
  ) as unknown as KernelDefinition;
}

/** aᵀ · b of the rows of every group: a block makes a tile of one group's matrix, over the rows that the group has. */
export function outerKernel(
  problem: MatmulProblem,
  { rows, columns, depth }: PlainConfiguration,
  { m, n, k }: ProductSizes,
): KernelDefinition {
  const { n: width, m: height, k: length } = alignedDimensions({ m: k, n, k: m, batch: 1 });
  const g = dim("g");
  return kernel(
    {
      name: "ragged_outer",
      grid: { group: g, i: cdiv(height, rows), j: cdiv(width, columns) },
      inputs: {
        a: tensor(problem.a.dtype, [length, height]),
        b: tensor(problem.b.dtype, [length, width]),
        groupSizes: tensor(dtypes.i32, [g]),
      },
      outputs: { out: tensor(problem.out.dtype, [g, height, width]) },
    },
    ({ group, i, j, a, b, groupSizes, out }) => {
      const zero = constant(dtypes.i32, 0);
      // Sizes that are none may have a sum beyond i32, which would come around to one that fits.
      const rowsBefore = loop({ to: group, carry: constant(dtypes.i64, 0) }, (before, sum) =>
        sum.add(groupSizes.at(before).loadScalar().maximum(0).cast(dtypes.i64)),
      );
      const size = groupSizes.at(group).loadScalar().maximum(0);
      const most = zero.add(length).cast(dtypes.i64);
      assert(
        rowsBefore.add(size.cast(dtypes.i64)).le(most),
        "the groups of a ragged product have no more rows than there are",
      );
      const start = rowsBefore.cast(dtypes.i32);
      const end = start.add(size);
      const [down, across] = [slice(i.mul(rows), rows), slice(j.mul(columns), columns)];
      const steps = size.add(depth - 1).div(depth);
      const sums = summed(problem, steps, [rows, columns], (step) => {
        const along = slice(start.add(step.mul(depth)), depth, { end });
        return [a.at(along, down).load().transpose(), b.at(along, across).load()];
      });
      out.at(group, down, across).store(sums.cast(problem.out.dtype));
    },
  ) as unknown as KernelDefinition;
}

const noScales: StepScales = { rows: [], columns: [] };

function summed(
  problem: MatmulProblem,
  to: Integer | ReturnType<typeof cdiv>,
  shape: readonly number[],
  operands: (step: Integer) => readonly [left: Tile, right: Tile, scales?: StepScales],
): Tile {
  const start: Tile = zeros(problem.accumulator, shape);
  return loop({ to, carry: start }, (step, accumulator) => {
    const [left, right, scales = noScales] = operands(step);
    return addStep(problem, accumulator, left, right, scales);
  });
}
