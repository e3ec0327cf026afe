/**
 * The k best of a piece of a row, with one read of it and little sorting. A piece is held in the registers of a block. Each thread finds
 * the best of its own elements, and the k-th best of these is a bound: the k best of the piece are no worse.
 *
 *   threads        0        1        2        3             k = 2
 *   elements       9 3 1    4 7 2    1 0 5    2 8 6
 *   best           9        7        5        8             the second best of them is 8: at least two elements are as good
 *   candidates     9                          8             8 and better; from at most k threads, so never many
 *
 * Candidates are compacted into shared memory by a scan over the piece, in order. Of elements equal to the bound the first k are
 * candidates, so equal numbers cannot flood the buffer. The candidates, seldom more than 3k / 2, are then sorted, as many at a time as fit
 * beside the k best so far.
 *
 * Keys are ordered by rank: the least key is the best.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import {
  tensor,
  cdiv,
  concatenate,
  dim,
  full,
  iota,
  kernel,
  loop,
  slice,
  smem,
} from "../../lang/index.ts";
import type { KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { alignedDimension, powerOfTwoFrom } from "../support/sizes.ts";
import { greatestKey, keyFormat, keysOf, numbersOf } from "./sortable-keys.ts";
import { bitNames } from "./radix-rank.ts";

const { i32 } = dtypes;

export interface SelectForm {
  readonly dtype: DType;
  readonly k: number;
  readonly least: boolean;
  /** Elements of a piece, and warps that hold it: powers of two. */
  readonly piece: number;
  readonly warps: number;
}

/** More would leave too little between the wanted and a piece. */
export const mostSelected = 512;

/** Elements of a thread, and of a piece at most. */
function laneElements({ bits }: DType): number {
  return bits === 64 ? 8 : 16;
}
const mostWarps = 8;

/** Pieces of rows of some length: as large as rows are, up to what a block holds well. */
export function choosePiece(
  dtype: DType,
  k: number,
  length: number,
): Pick<SelectForm, "piece" | "warps"> {
  const each = 32 * laneElements(dtype);
  const least = Math.max(each, 2 * powerOfTwoFrom(k));
  const piece = Math.min(mostWarps * each, Math.max(least, powerOfTwoFrom(length)));
  return { piece, warps: piece / each };
}

/** Elements of a group, which has a best of its own: those of a thread, or fewer where k is more than half the threads. */
function groupsOf(form: SelectForm): number {
  return Math.max(32 * form.warps, 2 * powerOfTwoFrom(form.k));
}

/** Most candidates: all of k − 1 groups, and k of those equal to the bound. */
function mostCandidates(form: SelectForm): number {
  return (form.k - 1) * (form.piece / groupsOf(form)) + form.k;
}

/** Arrays: x [rows, width], and with `positions` where its elements were; values and indices, [rows, pieces, k]. */
export function selectKernel(
  form: SelectForm,
  length: number,
  hasPositions: boolean,
): KernelDefinition {
  const { dtype, k, piece, warps } = form;
  const [rows, width] = [dim("rows"), alignedDimension("width", length)];
  const results = [rows, cdiv(width, piece), k];
  const room = mostCandidates(form);
  return kernel(
    {
      name: hasPositions ? "select_merge" : "select_best",
      grid: { row: rows, part: cdiv(width, piece) },
      warps,
      inputs: {
        x: tensor(dtype, [rows, width]),
        ...(hasPositions && { positions: tensor(i32, [rows, width]) }),
      },
      outputs: { values: tensor(dtype, results), indices: tensor(i32, results) },
      scratch: { keys: smem(keyFormat(dtype), [room]), from: smem(i32, [room]) },
    },
    ({ row, part, x, values, indices, keys, from, ...given }) => {
      const own = keysOfPiece(form, x.at(row), part.mul(piece), width);
      const count = gather(form, own, boundOf(form, own), { keys, from });
      const best = sortCandidates(form, { keys, from }, count);
      const position = best.position.slice([0], [k]).add(part.mul(piece));
      const positions = given.positions;
      values.at(row, part).store(numbersOf(best.key.slice([0], [k]), dtype, !form.least));
      // What is beyond the end has no place; it is left behind before the last stage.
      const place = positions?.at(row, position).load({ where: position.lt(width) });
      indices.at(row, part).store(place ?? position);
    },
  );
}

/** The keys of a piece, [threads, elements of a thread]; beyond the end, the greatest key. */
function keysOfPiece(
  form: SelectForm,
  row: Ref,
  start: Scalar<"i32">,
  width: ReturnType<typeof alignedDimension>,
): Tile<"u32"> {
  const { dtype, piece, warps } = form;
  const shape = [32 * warps, piece / (32 * warps)];
  // Neighbours belong to one thread, so that a scan in order takes few steps between threads.
  const lanes = [...bitNames("L", 5), ...bitNames("W", Math.log2(warps))].join(" ");
  const own = bitNames("R", Math.log2(laneElements(dtype))).join(" ");
  const loaded = row.at(slice(start, piece)).load().reshape(shape);
  const beyond = full(keyFormat(dtype), [1, 1], greatestKey(dtype));
  const isIn = positionsOf(form).add(start).lt(width);
  return isIn.select(keysOf(loaded.layoutCast(`(${lanes} | ${own})`), !form.least), beyond);
}

/** Where the elements of a piece are in it. */
function positionsOf({ piece, warps }: SelectForm): Tile<"i32"> {
  const each = piece / (32 * warps);
  const shape = [32 * warps, each];
  return iota(i32, shape, { axis: 0 })
    .mul(each)
    .add(iota(i32, shape, { axis: 1 }));
}

/** The k-th best of the groups' best. */
function boundOf(form: SelectForm, keys: Tile<"u32">): Tile<"u32"> {
  const groups = groupsOf(form);
  const best = keys.reshape([groups, form.piece / groups]).min({ axis: 1 });
  return best
    .sort({ axis: 0 })
    .slice([form.k - 1], [1])
    .reshape([1, 1]);
}

interface Candidates {
  readonly keys: Ref<"u32">;
  readonly from: Ref<"i32">;
}

/** Elements equal to the bound are counted above those that are better. */
const tie = 2 ** 16;

/** Puts candidates into shared memory in their order, and tells how many there are. */
function gather(
  form: SelectForm,
  keys: Tile<"u32">,
  bound: Tile<"u32">,
  into: Candidates,
): Scalar<"i32"> {
  const [isBetter, isTie] = [keys.lt(bound), keys.eq(bound)];
  const constantOf = (value: number): Tile<"i32"> => full(i32, [1, 1], value);
  const own = isBetter.select(constantOf(1), isTie.select(constantOf(tie), constantOf(0)));
  const running = own.reshape([form.piece]).cumsum({ axis: 0 }).reshape(own.shape);
  const before = running.sub(own);
  const [better, ties] = [before.and(tie - 1), before.shr(16)];
  const where = isBetter.or(isTie.and(ties.lt(form.k)));
  const goal = better.add(ties.minimum(form.k));
  into.keys.at(goal).store(keys, { where });
  into.from.at(goal).store(positionsOf(form), { where });
  const all = own.sum();
  return all.and(tie - 1).add(all.shr(16).minimum(form.k));
}

/** The best of the candidates, in order; positions are those in the piece. */
function sortCandidates(
  { dtype, k }: SelectForm,
  { keys, from }: Candidates,
  count: Scalar<"i32">,
): { readonly key: Tile<"u32">; readonly position: Tile<"i32"> } {
  const width = powerOfTwoFrom(k);
  const numbers = iota(i32, [width], { axis: 0 });
  const taken = (start: Scalar<"i32"> | number) => {
    const at = numbers.add(start);
    const where = at.lt(count);
    return {
      key: keys.at(at).load({ where, fill: greatestKey(dtype) }),
      position: from.at(at).load({ where }),
    };
  };
  // Even where all candidates are in the first part, it has to be sorted.
  const steps = count.sub(1).div(width).maximum(1);
  return loop({ to: steps, carry: taken(0) }, (step, best) => {
    const more = taken(step.add(1).mul(width));
    const both = concatenate([best.key, more.key], { axis: 0 });
    const [sorted, positions] = both.sortWith(
      [concatenate([best.position, more.position], { axis: 0 })],
      { axis: 0 },
    );
    return { key: sorted.slice([0], [width]), position: positions.slice([0], [width]) };
  });
}
