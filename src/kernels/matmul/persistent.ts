/**
 * The product on wgmma and the copy engine. A block stays on its processor and takes tile after tile; one thread
 * copies, through a ring of pairs of tiles, and one or two multiply, 64 rows each:
 *
 *   copy        fill 0  fill 1  fill 2  wait empty 0, fill 0 …        goes on with the next tile at once
 *   multiply    wait full 0, wgmma …  arrive empty 0 …  store         while the copies of the next tile arrive
 *
 * The pieces of a finished tile go through two buffers in turn, so that one is written while the other leaves.
 */
import {
  accumulator,
  all,
  array,
  barrier,
  cdiv,
  commitGroup,
  commitShared,
  constant,
  copyAsync,
  dim,
  kernel,
  loop,
  setRegisters,
  slice,
  smem,
  waitGroup,
  warps,
  wgmma,
  when,
} from "../../lang/index.ts";
import type { KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { Location } from "../../support/location.ts";
import { rowBytes, threadRows } from "./configuration.ts";
import type { PersistentConfiguration, ProductSizes } from "./configuration.ts";
import { alignedDimensions } from "./dimensions.ts";
import { finished, inputSpecs } from "./epilogue.ts";
import { tileOrder } from "./order.ts";
import type { MatmulProblem } from "./problem.ts";

export interface PersistentForm {
  readonly problem: MatmulProblem;
  readonly configuration: PersistentConfiguration;
  readonly sizes: ProductSizes;
  /** Whether the copy engine can write the result, whose rows must begin at multiples of 16 bytes. */
  readonly copiesOut: boolean;
  readonly location: Location;
}

/** Elements of k in a tile. */
export function depthOf({ bits }: DType): number {
  return (rowBytes * 8) / bits;
}

/** Columns of a piece of the result: a row of 128 bytes. */
function pieceColumns({ bits }: DType, columns: number): number {
  return Math.min(columns, (rowBytes * 8) / bits);
}

export function persistentKernel(form: PersistentForm): KernelDefinition {
  const { problem, configuration, copiesOut, location } = form;
  const { multipliers, columns, stages, split } = configuration;
  const dimensions = alignedDimensions(form.sizes);
  const { batch, m, n, k } = dimensions;
  const workers = dim("workers");
  const { major, batched } = problem;
  const rows = multipliers * threadRows;
  const depth = depthOf(problem.a.dtype);
  const output = split === 1 ? problem.out.dtype : problem.accumulator;
  const piece = pieceColumns(output, columns);
  const layersA = batched.a ? [batch] : [];
  const layersB = batched.b ? [batch] : [];
  const layersOut = problem.sizes.batch === undefined && split === 1 ? [] : [dim("layers")];
  const names =
    multipliers === 2 ? (["copy", "first", "second"] as const) : (["copy", "first"] as const);
  return kernel(
    {
      name: "matmul",
      grid: { worker: workers },
      threads: names,
      inputs: {
        a: array(problem.a.dtype, [...layersA, ...(major.a === "k" ? [m, k] : [k, m])]),
        b: array(problem.b.dtype, [...layersB, ...(major.b === "n" ? [k, n] : [n, k])]),
        ...(split === 1 ? inputSpecs(problem, dimensions, location) : {}),
      },
      outputs: { out: array(output, [...layersOut, m, n]) },
      scratch: {
        tileA: smem(problem.a.dtype, [
          stages,
          ...(major.a === "k" ? [rows, depth] : [depth, rows]),
        ]),
        tileB: smem(problem.b.dtype, [
          stages,
          ...(major.b === "n" ? [depth, columns] : [columns, depth]),
        ]),
        ...(copiesOut && { result: smem(output, [multipliers, 2, threadRows, piece]) }),
        full: barrier({ count: stages, arrivals: 2 }),
        empty: barrier({ count: stages, arrivals: multipliers }),
      },
    },
    (argument) => {
      const { worker, a, b, out, tileA, tileB, full, empty } = argument;
      const zero = constant(dtypes.i32, 0);
      const layers = problem.sizes.batch === undefined ? 1 : batch;
      const { tiles, place } = tileOrder({ batch: layers, split, m, n, rows, columns });
      const allSteps = zero.add(cdiv(k, depth));
      const each = split === 1 ? allSteps : allSteps.add(split - 1).div(split);
      const range = (part: Scalar<"i32">) => {
        const from = split === 1 ? zero : part.mul(each).minimum(allSteps);
        return { from, steps: split === 1 ? allSteps : each.minimum(allSteps.sub(from)) };
      };
      const following = (slot: Scalar<"i32">): Scalar<"i32"> => {
        const next = slot.add(1);
        return next.eq(stages).select(zero, next);
      };
      const own = { from: worker, to: tiles, step: zero.add(workers) };

      argument.copy(() => {
        if (multipliers === 2) setRegisters(40);
        warps((warp) => {
          when(warp.eq(0), () => {
            loop({ ...own, carry: { slot: zero, count: zero } }, (tile, before) => {
              const { batch: layer, part, top, left } = place(tile);
              const { from, steps } = range(part);
              return loop({ to: steps, carry: before }, (step, { slot, count }) => {
                when(count.ge(stages), () => {
                  empty.at(slot).wait();
                });
                const along = slice(from.add(step).mul(depth), depth);
                const [down, across] = [slice(top, rows), slice(left, columns)];
                const ofA = batched.a ? a.at(layer) : a;
                const ofB = batched.b ? b.at(layer) : b;
                const landed = { barrier: full.at(slot) };
                copyAsync(
                  major.a === "k" ? ofA.at(down, along) : ofA.at(along, down),
                  tileA.at(slot),
                  landed,
                );
                copyAsync(
                  major.b === "n" ? ofB.at(along, across) : ofB.at(across, along),
                  tileB.at(slot),
                  landed,
                );
                return { slot: following(slot), count: count.add(1) };
              });
            });
          });
        });
      });

      const multiply = (index: number): void => {
        if (multipliers === 2) setRegisters(232);
        const mine = slice(index * threadRows, threadRows);
        const rowsOf = (slot: Scalar<"i32">): Ref =>
          major.a === "k" ? tileA.at(slot, mine) : tileA.at(slot, all, mine).transpose();
        const columnsOf = (slot: Scalar<"i32">): Ref =>
          major.b === "n" ? tileB.at(slot) : tileB.at(slot).transpose();
        loop({ ...own, carry: { slot: zero, last: zero } }, (tile, before) => {
          const { batch: layer, part, top, left } = place(tile);
          const { steps } = range(part);
          const initial = {
            sum: accumulator(problem.accumulator as DType<"f32">, [threadRows, columns]),
            ...before,
          };
          const { sum, slot, last } = loop({ to: steps, carry: initial }, (step, carried) => {
            full.at(carried.slot).wait();
            const running = wgmma(
              carried.sum,
              rowsOf(carried.slot),
              columnsOf(carried.slot),
            ).waitPending(1);
            // The product of the step before is over, so its tiles may be replaced.
            when(step.gt(0), () => {
              empty.at(carried.last).arrive();
            });
            return { sum: running, slot: following(carried.slot), last: carried.slot };
          });
          const product: Tile = sum.wait();
          when(steps.gt(0), () => {
            empty.at(last).arrive();
          });
          const target = targetOf(out, layer, part, split, layersOut.length > 0);
          for (let left_ = 0; left_ < columns; left_ += piece) {
            const corner = { top: top.add(index * threadRows), left: left.add(left_) };
            const sums = product.slice([0, left_], [threadRows, piece]);
            const at = { batch: layer, ...corner, rows: threadRows, columns: piece };
            const done =
              split === 1 ? finished(sums, at, problem, argument as never, location) : sums;
            const window = target.at(slice(corner.top, threadRows), slice(corner.left, piece));
            storePiece(window, done, resultOf(argument), index, left_ / piece);
          }
          return { slot, last };
        });
        if (copiesOut) waitGroup(0, { read: true });
      };
      argument.first(() => {
        multiply(0);
      });
      if ("second" in argument)
        (argument as unknown as { second: (body: () => void) => void }).second(() => {
          multiply(1);
        });
    },
  ) as unknown as KernelDefinition;
}

function resultOf(argument: object): Ref | undefined {
  return "result" in argument ? (argument.result as Ref) : undefined;
}

/** The matrix of the result that a tile belongs to. */
function targetOf(
  out: Ref,
  layer: Scalar<"i32">,
  part: Scalar<"i32">,
  split: number,
  layered: boolean,
): Ref {
  if (!layered) return out;
  return out.at(split === 1 ? layer : layer.mul(split).add(part));
}

/** By the copy engine through one of two buffers, or by the lanes themselves. */
function storePiece(
  window: Ref,
  piece: Tile,
  result: Ref | undefined,
  index: number,
  turn: number,
): void {
  if (result === undefined) {
    window.store(piece);
    return;
  }
  // The piece before the last has left its buffer.
  waitGroup(1, { read: true });
  const buffer = result.at(index, turn % 2);
  buffer.store(piece);
  commitShared();
  copyAsync(buffer, window);
  commitGroup();
}
