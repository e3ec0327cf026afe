/**
 * Where the rows and columns of a block lie. Batches have an axis of their own; sequences of different lengths lie one behind the
 * other along s and t instead, and offsets on the device say where each begins:
 *
 *   offsets of q   0 3 3 8            sequence 0: rows 0 to 2     1: none     2: rows 3 to 7
 *
 * How many blocks of rows a sequence has is known on the device alone, but never more than the numbers between its first block and
 * that of the next, where a sequence i that begins at row r has its first at ⌊r / size⌋ + i. So the number of blocks follows from sizes,
 * a block finds its sequence by halving the list, and of each sequence one block at most has nothing to do:
 *
 *   blocks of 2    sequence 0 from 0/2 + 0 = 0    1 from 3/2 + 1 = 2    2 from 3/2 + 2 = 3    the rest from 8/2 + 3 = 7
 *
 * What lies behind the last offset is one more sequence, which sees nothing and is seen by nobody.
 */
import { dtypes } from "../../formats/dtype.ts";
import { addSizes, floorDivSize } from "../../ir/size.ts";
import type { Dimension, Size } from "../../ir/size.ts";
import { cdiv, constant, slice, whileLoop } from "../../lang/index.ts";
import type { Ref, Scalar, Slice } from "../../lang/index.ts";

type Index = Scalar<"i32">;

/** Positions of an axis that belong together: all of them, or `count` from one on. */
export interface Span {
  readonly count: Index;
  readonly from?: Index;
}

/** What a block works on. */
export interface Sequence {
  /** Its number, and where it is along the first axis of the arrays. */
  readonly batch: Index;
  readonly memory: Index;
  /** Rows of q, and of k and v. */
  readonly rows: Span;
  readonly columns: Span;
}

/** Positions of a span for lanes: those behind it load as zero and are not stored. */
export function inSpan({ from, count }: Span, start: Index, size: number): Slice {
  return from === undefined
    ? slice(start, size)
    : slice(from.add(start), size, { end: from.add(count) });
}

/** Positions from a place of a span on, for TMA, which brings what lies behind it, too. */
export function fromSpan({ from }: Span, start: Index, size: number): Slice {
  return slice(from === undefined ? start : from.add(start), size);
}

/** Where sequences begin along one axis. */
interface Beginnings {
  readonly starts: Ref<"i32">;
  readonly ends: Index;
  /** The size of the axis. */
  readonly size: Index;
}

/** The offsets of a kernel's sequences, along rows and columns. */
export interface Offsets {
  readonly q: Beginnings;
  readonly k: Beginnings;
}

function beginnings(argument: unknown, along: "q" | "k", size: Dimension, ends: Dimension) {
  const { [`${along}Offsets` as const]: starts } = argument as {
    readonly [N in "qOffsets" | "kOffsets"]: Ref<"i32">;
  };
  const zero = constant(dtypes.i32, 0);
  return { starts, ends: zero.add(ends), size: zero.add(size) };
}

/** Sizes that rows and columns are divided by; `ends` of kernels with offsets. */
type Dimensions = { readonly [N in "s" | "t"]: Dimension } & {
  readonly ends: Dimension | undefined;
};

/** The offsets of a kernel that has some. */
export function offsetsOf(argument: unknown, { s, t, ends }: Dimensions): Offsets | undefined {
  if (ends === undefined) return undefined;
  return { q: beginnings(argument, "q", s, ends), k: beginnings(argument, "k", t, ends) };
}

/** Blocks of `each` positions that sequences have at most, those of the rest among them. */
function blocksOfSequences(size: Size, ends: Size, each: number): Size {
  return addSizes(floorDivSize(size, each), ends);
}

function startAt({ starts, size }: Beginnings, place: Index): Index {
  return starts.at(place).loadScalar().maximum(0).minimum(size);
}

/** The number of a sequence's first block. */
export function firstBlock(of: Beginnings, sequence: Index, each: number): Index {
  return startAt(of, sequence).div(each).add(sequence);
}

/** The positions of a sequence; the rest has some only where it is told. */
function spanOf(of: Beginnings, sequence: Index, hasRest: boolean): Span {
  const from = startAt(of, sequence);
  const next = sequence.add(1);
  const isLast = next.ge(of.ends);
  const end = startAt(of, isLast.select(sequence, next));
  return {
    from,
    count: isLast
      .select(hasRest ? of.size : from, end)
      .sub(from)
      .maximum(0),
  };
}

/** The sequence that a block of `each` positions belongs to, by halving the list, and which of its blocks it is. */
function findBlock(
  of: Beginnings,
  block: Index,
  each: number,
): { readonly sequence: Index; readonly block: Index; readonly span: Span } {
  const { low } = whileLoop(
    { low: constant(dtypes.i32, 0), high: of.ends.sub(1) },
    ({ low: from, high }) => from.lt(high),
    ({ low: from, high }) => {
      const middle = from.add(high).add(1).div(2);
      const isBehind = firstBlock(of, middle, each).gt(block);
      return { low: isBehind.select(from, middle), high: isBehind.select(middle.sub(1), high) };
    },
  );
  return {
    sequence: low,
    block: block.sub(firstBlock(of, low, each)),
    span: spanOf(of, low, true),
  };
}

/** What a block of `each` positions along q or k works on, and which of its sequence's blocks it is. */
export function sequenceOfBlock(
  offsets: Offsets,
  along: "q" | "k",
  place: Index,
  each: number,
): { readonly sequence: Sequence; readonly block: Index } {
  const { sequence, block, span } = findBlock(offsets[along], place, each);
  const other = spanOf(offsets[along === "q" ? "k" : "q"], sequence, false);
  const [rows, columns] = along === "q" ? [span, other] : [other, span];
  return { sequence: { batch: sequence, memory: constant(dtypes.i32, 0), rows, columns }, block };
}

/** Blocks of rows of a grid that has an axis for batches, too. */
export function rowBlocks({ s, ends }: Omit<Dimensions, "t">, rows: number): Size {
  return ends === undefined ? cdiv(s, rows) : blocksOfSequences(s, ends, rows);
}

/** Blocks of columns. */
export function columnBlocks({ t, ends }: Dimensions, columns: number): Size {
  return ends === undefined ? cdiv(t, columns) : blocksOfSequences(t, ends, columns);
}

interface GridPlace {
  readonly batch: Index;
  readonly block: Index;
}

/** What a block of the grid works on, with offsets or without. */
function sequenceAt(
  argument: unknown,
  dimensions: Dimensions,
  place: GridPlace,
  along: "q" | "k",
  each: number,
): { readonly sequence: Sequence; readonly block: Index } {
  const offsets = offsetsOf(argument, dimensions);
  return offsets === undefined
    ? wholeBatch(dimensions, place)
    : sequenceOfBlock(offsets, along, place.block, each);
}

/** What a block of rows of the grid works on, and its first row. */
export function rowsOfBlock(
  argument: unknown,
  dimensions: Dimensions,
  place: GridPlace,
  rows: number,
): { readonly sequence: Sequence; readonly top: Index } {
  const { sequence, block } = sequenceAt(argument, dimensions, place, "q", rows);
  return { sequence, top: block.mul(rows) };
}

/** The rows of a block of the grid, for kernels that look at no columns. */
export function rowSpanOfBlock(
  argument: unknown,
  { s, ends }: Omit<Dimensions, "t">,
  { batch, block }: GridPlace,
  rows: number,
): { readonly memory: Index; readonly span: Span; readonly top: Index } {
  const zero = constant(dtypes.i32, 0);
  if (ends === undefined)
    return { memory: batch, span: { count: zero.add(s) }, top: block.mul(rows) };
  const found = findBlock(beginnings(argument, "q", s, ends), block, rows);
  return { memory: zero, span: found.span, top: found.block.mul(rows) };
}

/** Where the rows of the last sequence end: what lies behind it is nobody's, and may be no numbers. */
export function rowsEnd(argument: unknown, { s, ends }: Omit<Dimensions, "t">): Index {
  if (ends === undefined) return constant(dtypes.i32, 0).add(s);
  const of = beginnings(argument, "q", s, ends);
  return startAt(of, of.ends.sub(1));
}

/** What a block of columns of the grid works on, and its first column. */
export function columnsOfBlock(
  argument: unknown,
  dimensions: Dimensions,
  place: GridPlace,
  columns: number,
): { readonly sequence: Sequence; readonly left: Index } {
  const { sequence, block } = sequenceAt(argument, dimensions, place, "k", columns);
  return { sequence, left: block.mul(columns) };
}

/** A batch with an axis of its own. */
export function wholeBatch(
  { s, t }: Pick<Dimensions, "s" | "t">,
  { batch, block }: GridPlace,
): { readonly sequence: Sequence; readonly block: Index } {
  const zero = constant(dtypes.i32, 0);
  const [rows, columns] = [{ count: zero.add(s) }, { count: zero.add(t) }];
  return { sequence: { batch, memory: batch, rows, columns }, block };
}
