/**
 * Products of the rows of groups on wgmma and TMA. A block stays on its processor and takes tile after tile of the matrices
 * of all groups; one warp copies 64 rows at a time of both operands, and each of two consumers has 64 rows of the tile:
 *
 *   copy        rows 0 to 63 of the group   64 to 127   …   the next tile's      a ring of slots
 *   consumer    aᵀ · b   aᵀ · b   …   store                                      64 columns of a by 256 of b
 *
 * The last rows that are copied may reach into the next group, and are cleared where they do. Where groups begin is found by a
 * launch before.
 */
import {
  accumulator,
  all,
  tensor,
  assert,
  barrier,
  cdiv,
  commitGroup,
  commitShared,
  constant,
  copyAsync,
  dim,
  gridSize,
  iota,
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
import type { Barrier, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { Target } from "../../targets/target.ts";
import { threadRows } from "../matmul/configuration.ts";
import type { ProductSizes } from "../matmul/configuration.ts";
import { alignedDimensions } from "../matmul/dimensions.ts";
import { notBefore, planeOrder } from "../matmul/scheduler/tile-scheduler.ts";
import type { MatmulProblem } from "../matmul/problem.ts";
import { hasSumsInFlight } from "../../targets/product-instructions.ts";

type Integer = Scalar<"i32">;
type Half = "bf16";

/** Tiles of the matrices: 128 rows by so many columns. */
export interface WarpSpecializedOuter {
  readonly kernel: "warp-specialized";
  readonly columns: 128 | 256;
}

const consumerNames = ["first", "second"] as const;
const tileHeight = consumerNames.length * threadRows;
/** Rows of a group that a step takes, and steps in flight. */
const [depth, stages] = [64, 4];
/** Columns of a piece that leaves together. */
const pieceColumns = 64;
const registers = { copy: 24, consumer: 240 } as const;

/** Why the kernel cannot be used, in words for a note; undefined where it can. */
export function warpSpecializedOuterProblem(
  { a, out }: MatmulProblem,
  { k, n }: Pick<ProductSizes, "k" | "n">,
  target: Target,
): string | undefined {
  if (!hasSumsInFlight(target) || !target.features.includes("tma"))
    return `${target.name} has no wgmma`;
  if (a.dtype !== dtypes.bf16 && a.dtype !== dtypes.f16)
    return `wgmma does not read columns of ${a.dtype.name}`;
  const along = 128 / Math.min(a.dtype.bits, out.dtype.bits);
  for (const [name, size] of Object.entries({ k, n }))
    if (size % along !== 0)
      return `${name} = ${size} keeps TMA out: pad it to ${Math.ceil(size / along) * along}`;
  return undefined;
}

/** Groups whose starts a block finds. */
const groupsTogether = 64;

/** The row at which each group begins. Of a nothing is read: it says how many rows there are. */
export function groupStartsKernel({ a }: MatmulProblem): KernelDefinition {
  const [rows, width, g] = [dim("rows"), dim("width"), dim("g")];
  return kernel(
    {
      name: "ragged_starts",
      grid: { list: cdiv(g, groupsTogether) },
      inputs: { a: tensor(a.dtype, [rows, width]), groupSizes: tensor(dtypes.i32, [g]) },
      outputs: { starts: tensor(dtypes.i32, [g]) },
    },
    ({ list, groupSizes, starts }) => {
      const sizesOf = (chunk: Integer): Tile<"i32"> =>
        groupSizes
          .at(slice(chunk.mul(groupsTogether), groupsTogether))
          .load()
          .maximum(0);
      // Sizes that are none may have a sum beyond i32, which would come around to one that fits.
      const sumOf = (sizes: Tile<"i32">) => sizes.cast(dtypes.i64).sum();
      const before = loop({ to: list, carry: constant(dtypes.i64, 0) }, (chunk, sum) =>
        sum.add(sumOf(sizesOf(chunk))),
      );
      const own = sizesOf(list);
      const end = before.add(sumOf(own));
      const most = constant(dtypes.i32, 0).add(rows).cast(dtypes.i64);
      assert(end.le(most), "the groups of a ragged product have no more rows than there are");
      starts
        .at(slice(list.mul(groupsTogether), groupsTogether))
        .store(own.cumsum({ axis: 0 }).sub(own).add(before.cast(dtypes.i32)));
    },
  );
}

interface Refs {
  readonly a: Ref<Half>;
  readonly b: Ref<Half>;
  readonly groupSizes: Ref<"i32">;
  readonly starts: Ref<"i32">;
  readonly out: Ref;
  readonly tileA: Ref<Half>;
  readonly tileB: Ref<Half>;
  readonly tileOut: Ref;
  readonly full: Barrier;
  readonly empty: Barrier;
  readonly cleared: Barrier;
}

/** A tile of one group's matrix, and the rows that it is the sum over. */
interface OuterTile {
  readonly group: Integer;
  readonly top: Integer;
  readonly left: Integer;
  readonly start: Integer;
  readonly size: Integer;
  readonly steps: Integer;
}

/** What the threads of the kernel share. */
interface Work {
  readonly problem: MatmulProblem;
  readonly columns: number;
  readonly refs: Refs;
  readonly count: Integer;
  readonly tileOf: (turn: Integer) => OuterTile;
}

export function warpSpecializedOuterKernel(
  problem: MatmulProblem,
  { columns }: WarpSpecializedOuter,
  { m, n, k }: ProductSizes,
): KernelDefinition {
  const { n: width, m: height, k: length } = alignedDimensions({ m: k, n, k: m, batch: 1 });
  const g = dim("g");
  const format = problem.a.dtype;
  return kernel(
    {
      name: "ragged_outer",
      grid: { worker: dim("workers") },
      threads: ["copy", ...consumerNames],
      inputs: {
        a: tensor(format, [length, height]),
        b: tensor(format, [length, width]),
        ...{ groupSizes: tensor(dtypes.i32, [g]), starts: tensor(dtypes.i32, [g]) },
      },
      outputs: { out: tensor(problem.out.dtype, [g, height, width]) },
      scratch: {
        tileA: smem(format, [stages, depth, tileHeight]),
        tileB: smem(format, [stages, depth, columns]),
        tileOut: smem(problem.out.dtype, [consumerNames.length, threadRows, pieceColumns]),
        full: barrier({ count: stages, arrivals: 2 }),
        empty: barrier({ count: stages, arrivals: consumerNames.length }),
        cleared: barrier({ arrivals: consumerNames.length }),
      },
    },
    (argument) => {
      const { worker } = argument as unknown as { readonly worker: Integer };
      const refs = argument as unknown as Refs;
      const zero = constant(dtypes.i32, 0);
      const plane = planeOrder(zero.add(cdiv(height, tileHeight)), zero.add(cdiv(width, columns)));
      const workers = gridSize("worker");
      const work: Work = {
        ...{ problem, columns, refs },
        count: plane.tiles.mul(zero.add(g)).sub(worker).add(workers).sub(1).div(workers),
        tileOf: (turn) => {
          const number = turn.mul(workers).add(worker);
          const group = number.div(plane.tiles);
          const { i, j } = plane.place(number.sub(group.mul(plane.tiles)));
          // Groups of more rows than there are stop the launch before this one, and do not keep it going.
          const most = zero.add(length);
          const size = refs.groupSizes.at(group).loadScalar().maximum(0).minimum(most);
          return {
            ...{
              group: notBefore(group),
              top: notBefore(i.mul(tileHeight)),
              left: notBefore(j.mul(columns)),
            },
            ...{ start: refs.starts.at(group).loadScalar(), size },
            steps: size.add(depth - 1).div(depth),
          };
        },
      };
      const threads = argument as unknown as {
        readonly [name: string]: (body: () => void) => void;
      };
      threads["copy"]?.(() => {
        copyRows(work);
      });
      consumerNames.forEach((name, part) => {
        threads[name]?.(() => {
          multiplyRows(work, part);
        });
      });
    },
  ) as unknown as KernelDefinition;
}

/** One warp keeps the ring full, tile after tile. */
function copyRows({ columns, refs, count, tileOf }: Work): void {
  const { a, b, tileA, tileB, full, empty } = refs;
  setRegisters(registers.copy);
  warps((warp) => {
    when(warp.eq(0), () => {
      loop({ to: count, carry: constant(dtypes.i32, 0) }, (turn, done) => {
        const { top, left, start, steps } = tileOf(turn);
        loop(steps, (step) => {
          const passed = done.add(step);
          const slot = passed.and(stages - 1);
          when(passed.ge(stages), () => {
            empty.at(slot).wait();
          });
          const rows = slice(start.add(step.mul(depth)), depth);
          const barrierOfSlot = { barrier: full.at(slot) };
          copyAsync(a.at(rows, slice(top, tileHeight)), tileA.at(slot), barrierOfSlot);
          copyAsync(b.at(rows, slice(left, columns)), tileB.at(slot), barrierOfSlot);
        });
        return done.add(steps);
      });
    });
  });
}

/** 64 rows of each tile. */
function multiplyRows(work: Work, part: number): void {
  setRegisters(registers.consumer);
  loop({ to: work.count, carry: constant(dtypes.i32, 0) }, (turn, done) => {
    const tile = work.tileOf(turn);
    storePieces(work, part, tile, sumOfRows(work, part, tile, done));
    return done.add(tile.steps);
  });
  waitGroup(0, { read: true });
}

function sumOfRows(
  { columns, refs }: Work,
  part: number,
  { size, steps }: OuterTile,
  done: Integer,
): Tile<"f32"> {
  const { tileA, tileB, full, empty } = refs;
  const slotOf = (step: Integer): Integer => done.add(step).and(stages - 1);
  const start = accumulator(dtypes.f32, [threadRows, columns]);
  const sums = loop({ to: steps, carry: start }, (step, sum) => {
    const slot = slotOf(step);
    full.at(slot).wait();
    const left = size.sub(step.mul(depth));
    when(left.lt(depth), () => {
      clearOthers(refs, part, slot, left, columns);
    });
    const own = tileA.at(slot, all, slice(part * threadRows, threadRows)).transpose();
    const running = wgmma(sum, own, tileB.at(slot)).waitPending(1);
    // The product of the step before is over, so its rows may be replaced.
    when(step.ge(1), () => {
      empty.at(slotOf(step.sub(1))).arrive();
    });
    return running;
  }).wait();
  when(steps.ge(1), () => {
    empty.at(slotOf(steps.sub(1))).arrive();
  });
  return sums;
}

/** Rows behind a group belong to another one, and may be no numbers. Each consumer clears half of both operands for both. */
function clearOthers(
  { tileA, tileB, cleared }: Refs,
  part: number,
  slot: Integer,
  left: Integer,
  columns: number,
): void {
  const isBehind = iota(dtypes.i32, [depth, 1], { axis: 0 }).ge(left);
  for (const [tile, width] of [
    [tileA, tileHeight],
    [tileB, columns],
  ] as const) {
    const half = width / consumerNames.length;
    tile.at(slot, all, slice(part * half, half)).store(0, { where: isBehind });
  }
  commitShared();
  cleared.arrive();
  cleared.wait();
}

/** By TMA, piece by piece through shared memory. */
function storePieces(
  { problem, columns, refs }: Work,
  part: number,
  { group, top, left }: OuterTile,
  sums: Tile<"f32">,
): void {
  const buffer = refs.tileOut.at(part);
  const down = slice(notBefore(top.add(part * threadRows)), threadRows);
  for (let column = 0; column < columns; column += pieceColumns) {
    const piece = sums.slice([0, column], [threadRows, pieceColumns]);
    waitGroup(0, { read: true }); // what the piece before left there
    buffer.store(piece.cast(problem.out.dtype));
    commitShared();
    copyAsync(buffer, refs.out.at(group, down, slice(notBefore(left.add(column)), pieceColumns)));
    commitGroup();
  }
}
