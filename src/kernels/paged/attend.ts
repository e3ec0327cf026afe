/**
 * Attention of some rows to a split of the cache. A block is a single program thread, of one warp where few heads share k and v;
 * it copies pages ahead into a ring, and multiplies what has arrived:
 *
 *   copy       tile 0  tile 1  tile 2 |                  tile 3 |                  tile 4
 *   multiply                          | q·k0 softmax ·v0        | q·k1 softmax ·v1 …
 *
 * Reading the cache takes far longer than computing with it, so nothing but the number of bytes in flight counts: a processor has
 * many such blocks, and no two of them wait for each other. Blocks of all heads of k and v work on the same tokens at the same
 * time, since these lie together in a page.
 */
import {
  cdiv,
  barrier,
  commitShared,
  constant,
  full,
  iota,
  kernel,
  launchNextKernel,
  loop,
  slice,
  smem,
  waitForPreviousKernel,
  when,
  whileLoop,
  zeros,
} from "../../lang/index.ts";
import type { KernelDefinition, LaunchSize, Ref, Scalar, Tile } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { addColumns, finishedRows, startingRows } from "../attention/softmax.ts";
import type { Exponents } from "../attention/scores.ts";
import type { Target } from "../../targets/target.ts";
import { powerOfTwoFrom } from "../support/sizes.ts";
import {
  blocksOf,
  packingOf,
  paddedHead,
  pagedArrays,
  pagedDimensions,
  partArrays,
} from "./arrays.ts";
import type { Packing, PagedDimensions, PagedForm } from "./arrays.ts";
import { copiesOf, copyFirst, copyNext } from "./producer.ts";
import type { CopyRefs, CopyWork, Cursor } from "./producer.ts";
import { inOrderOfLanes, inOrderOfMemory, widenedValues } from "./fp8-fragments.ts";
import { addedValues, productsOf, rowsOfSums, startingSums } from "./products.ts";
import { boundsOfSplit, mostTogether, sequenceTiles, tileCounts } from "./tile-scheduler.ts";
import type { Cost, Deal, Integer, Place } from "./tile-scheduler.ts";
import { cachedPages, isStrided } from "./strided-splits.ts";

interface Refs extends CopyRefs {
  readonly q: Ref<"bf16">;
  readonly out: Ref;
  readonly parts: Ref<"f32">;
  readonly weights: Ref<"f32">;
}

/** The rows of q in shared memory, of kernels that have them there. */
interface SharedQueries {
  readonly tileQ: Ref<"bf16">;
}

/** The arrays that a kernel may have been made without. */
interface OptionalRefs {
  readonly kScale: Ref<"f32"> | undefined;
  readonly vScale: Ref<"f32"> | undefined;
  readonly logSumExp: Ref<"f32"> | undefined;
}

export function optionalRef(
  { problem }: PagedForm,
  argument: unknown,
  name: keyof OptionalRefs,
): Ref<"f32"> | undefined {
  const named = argument as { readonly [name: string]: Ref<"f32"> };
  return problem[name] === undefined ? undefined : named[name];
}

interface Work extends CopyWork {
  readonly dimensions: PagedDimensions;
  readonly packing: Packing;
  readonly refs: Refs;
  readonly optional: OptionalRefs;
}

/** Consecutive tiles of one block of rows of one sequence. */
interface Segment {
  readonly sequence: Integer;
  readonly length: Integer;
  /** The first tile, and how many there are. */
  readonly first: Integer;
  readonly steps: Integer;
  /** Tiles of the split before the first. */
  readonly before: Integer;
  /** The first token of q, and the first head. */
  readonly token: Integer;
  readonly from: Integer;
}

/** Bytes of shared memory that a block takes. */
export function pagedBytes(form: PagedForm): number {
  const { problem, sizes, configuration } = form;
  const { rows, columns, stages } = configuration;
  const [d, e] = [paddedHead(sizes.d), paddedHead(sizes.e)];
  const queries = hasSharedQueries(form) ? rows * d * 2 : 0;
  const noted = isStrided(form) ? cachedPages(form) * 4 : 0;
  return queries + noted + stages * columns * (d + e) * (problem.k.dtype.bits / 8);
}

/** Blocks of FP8 of one warp that are meant for a processor, and the shared memory that the driver and the compiler take of each beside tiles. */
export const narrowBlocks = 8;
const besideTiles = 3072;

/**
 * Places for tiles of values. Those of FP8 are more than tiles are in flight, so that no more blocks than are meant have room on a processor: where 12 had it, they
 * lay unevenly there, and one sequence of 64k took 39.4 µs instead of 37.4.
 */
function placesOfValues(form: PagedForm, target: Target): number {
  const { sizes, configuration } = form;
  const { warps, columns, stages } = configuration;
  const [d, e] = [paddedHead(sizes.d), paddedHead(sizes.e)];
  // Wider heads mostly have no registers for more blocks, and what the compiler adds for them is more.
  if (!isNarrow(form) || warps > 1 || Math.max(d, e) > 128) return stages;
  const room = Math.floor(target.sharedMemoryPerProcessor / narrowBlocks) - besideTiles;
  return Math.max(stages, Math.floor((room - stages * columns * d) / (columns * e)));
}

/**
 * Whether the rows of q wait in shared memory: where the tensor cores read keys from there, too. In registers they would be read in
 * every round of a loop and written in none, and the assembler of CUDA 13.0 gives such registers of `wgmma` away within the loop
 * (heads of 16 with values of 64 were wrong on an H200); keys of FP8 are converted in registers, and multiplied by `mma.sync`.
 */
function hasSharedQueries({ problem, configuration: { rows, warps } }: PagedForm): boolean {
  return rows === 64 && warps === 4 && problem.k.dtype.bits === 16;
}

export function attendKernel(form: PagedForm, target: Target): KernelDefinition {
  const { problem, sizes, configuration } = form;
  const { rows, warps, columns, stages } = configuration;
  const dimensions = pagedDimensions();
  const { inputs, outputs } = pagedArrays(form, dimensions);
  const packing = packingOf(sizes, configuration);
  const format = problem.k.dtype;
  return kernel(
    {
      name: "paged_attention",
      grid: { split: dimensions.splits, head: sizes.kv },
      warps,
      inputs,
      // Which of them a split writes is known on the device alone.
      inouts: { ...outputs, ...partArrays(form, dimensions) },
      scratch: {
        ...(hasSharedQueries(form) && {
          tileQ: smem(problem.q.dtype, [rows, paddedHead(sizes.d)]),
        }),
        tileK: smem(format, [stages, columns, paddedHead(sizes.d)]),
        tileV: smem(format, [placesOfValues(form, target), columns, paddedHead(sizes.e)]),
        ...(isStrided(form) && { noted: smem(dtypes.i32, [cachedPages(form)]) }),
        arrived: barrier({ count: stages, arrivals: 2 * copiesOf(form) }),
      },
    },
    (argument) => {
      waitForPreviousKernel();
      launchNextKernel();
      const { split, head } = argument as unknown as {
        readonly [N in "split" | "head"]: Integer;
      };
      const refs = argument as unknown as Refs;
      const refOf = (name: keyof OptionalRefs) => optionalRef(form, argument, name);
      const optional = {
        ...{ kScale: refOf("kScale"), vScale: refOf("vScale") },
        logSumExp: refOf("logSumExp"),
      };
      const { columns } = form.configuration;
      const tiles = cdiv(dimensions.most.mul(form.sizes.size), columns);
      const deal = dealOf(form, dimensions, packing, refs.lengths, tiles);
      const { begin, end } = boundsOfSplit(deal, split);
      const known = { form, dimensions, packing, refs, optional, head, deal, end };
      attendSplit({ ...known, most: dimensions.most, begin: begin.tile }, split, begin);
    },
  ) as unknown as KernelDefinition;
}

/**
 * What beginning another sequence takes beside a tile of the bytes that a block has in flight: q comes then, and what was summed goes. Of FP8, q is brought
 * into the range of f16, too.
 */
export function costOf(form: PagedForm): Cost {
  return { tile: 2, beginning: isNarrow(form) ? 2 : 1 };
}

/** What of the form the dealing of tiles depends on. */
export function dealOf(
  form: PagedForm,
  dimensions: PagedDimensions,
  packing: Packing,
  lengths: Ref<"i32">,
  tiles?: LaunchSize,
): Deal {
  const { problem, configuration } = form;
  const { b, s } = dimensions;
  const { columns, splits } = configuration;
  const hasOneBlock = form.sizes.s <= packing.tokens && packing.parts === 1;
  const together = Math.min(mostTogether, powerOfTwoFrom(form.sizes.b));
  const deal = {
    ...{ lengths, b, s, window: problem.window, columns, cost: costOf(form), splits },
    ...(tiles !== undefined && { tiles }),
    apart: isStrided(form) ? splits : 1,
    blocks: hasOneBlock ? constant(dtypes.i32, 1) : blocksOf(dimensions, packing),
    ...{ hasOneBlock, isAlone: hasOneBlock && form.sizes.b === 1, together },
  };
  return deal.isAlone || form.sizes.b > together
    ? deal
    : { ...deal, counts: tileCounts(deal, constant(dtypes.i32, 0)) };
}

/** All segments of a split. */
function attendSplit(work: Work, split: Integer, place: Place): void {
  const { packing, refs, deal, begin, end } = work;
  const takesTurn = deal.apart > 1;
  const cursor = copyFirst(work, split, place);
  whileLoop(
    { ...place, cursor },
    ({ tile }) => tile.lt(end),
    ({ sequence, before, tile, cursor: reached }) => {
      const length = refs.lengths.at(sequence).loadScalar().maximum(0);
      const { first, count } = sequenceTiles(deal, length);
      const inSequence = takesTurn ? split : tile.sub(before.mul(deal.blocks));
      const block = deal.hasOneBlock ? constant(dtypes.i32, 0) : inSequence.div(count);
      const inBlock = inSequence.sub(block.mul(count));
      const steps = takesTurn ? end : count.sub(inBlock).minimum(end.sub(tile));
      const part = block.rem(packing.parts);
      const segment: Segment = {
        ...{ sequence, length, steps, before: tile.sub(begin) },
        first: first.add(inBlock),
        token: block.div(packing.parts).mul(packing.tokens),
        from: work.head.mul(packing.group).add(part.mul(packing.heads)),
      };
      const further = attendSegment(work, segment, reached, {
        isWhole: steps.eq(count),
        store: (rows) => {
          storeRows(work, segment, rows);
        },
        leave: (rows) => {
          leaveRows(work, segment, { split, inBlock }, rows);
        },
      });
      const next = tile.add(steps);
      const after = before.add(count);
      const isOver = next.ge(after.mul(deal.blocks));
      return {
        sequence: isOver.select(sequence.add(1), sequence),
        before: isOver.select(after, before),
        tile: next,
        cursor: further,
      };
    },
  );
}

/** Rows that are finished, as far as the tiles of a segment go. */
interface Rows {
  readonly values: Tile<"f32">;
  readonly logSumExp: Tile<"f32">;
}

/** What becomes of the rows of a segment. */
interface Ending {
  readonly isWhole: Scalar<"bool">;
  readonly store: (rows: Rows) => void;
  readonly leave: (rows: Rows) => void;
}

function attendSegment(
  work: Work,
  segment: Segment,
  cursor: Cursor,
  { isWhole, store, leave }: Ending,
): Cursor {
  const { form, refs, optional, head } = work;
  const { configuration } = form;
  const { rows, stages } = configuration;
  const { steps } = segment;
  const format = multipliedFormat(form);
  const zero = constant(dtypes.i32, 0);
  const holds = holdsTiles(form);
  const { queries, unit } = loadedQueries(work, segment, format);
  const start = {
    ...startingRows(rows, zero, undefined),
    ...{ sums: startingSums(form), cursor },
  };
  const end = loop({ to: steps, carry: start }, (step, { sums, cursor: reached, ...before }) => {
    const slot = segment.before.add(step).and(stages - 1);
    refs.arrived.at(slot).wait();
    const passed = work.deal.apart > 1 ? step.mul(work.deal.apart) : step;
    const left = segment.first.add(passed).mul(configuration.columns);
    // The next copy overwrites what was read; it is asked for before anything else is waited for, the q of another sequence too.
    const copied = (): Cursor => {
      commitShared();
      return when(
        reached.tile.lt(work.end),
        () => copyNext(work, reached),
        () => reached,
      );
    };
    if (holds) clearUnwritten(work, segment, slot, left);
    const keys = loadedKeys(work, slot);
    const held = holds ? refs.tileV.at(slot).load() : undefined;
    const early = holds ? copied() : undefined;
    const products = productsOf(form, queries(), keys.cast(format));
    const added = addColumns(exponents(work, segment, products, unit, left), before, {
      dtype: format,
      lift: 0,
    });
    if (!holds) clearUnwritten(work, segment, slot, left);
    const values = widened(work, held ?? refs.tileV.at(slot).load(), format);
    const next = addedValues(form, sums, added.change, added.powers, values);
    const further = early ?? copied();
    return { ...added.rows, sums: next, cursor: further };
  });
  const sums = rowsOfSums(form, end.sums);
  const scaled =
    optional.vScale === undefined ? sums : sums.mul(optional.vScale.at(head).loadScalar());
  const { values: summed, logSumExp } = finishedRows(scaled, end);
  const values = isNarrow(form) ? inOrderOfMemory(summed, configuration.warps) : summed;
  const done = { values, logSumExp };
  when(
    isWhole,
    () => {
      store(done);
    },
    () => {
      leave(done);
    },
  );
  return end.cursor;
}

/** Whether the cache is of FP8. */
function isNarrow({ problem }: PagedForm): boolean {
  return problem.k.dtype.bits === 8;
}

/** Bytes of a tile, and of a token, that a warp has registers for beside q and what it sums. */
const [heldBytes, heldToken] = [8192, 384];

/** Whether a tile is read whole before it is multiplied, so that the next copy is asked for at once: one of FP8, by a single warp. */
function holdsTiles(form: PagedForm): boolean {
  const { sizes, configuration } = form;
  const token = paddedHead(sizes.d) + paddedHead(sizes.e);
  return (
    isNarrow(form) &&
    configuration.warps === 1 &&
    token <= heldToken &&
    configuration.columns * token <= heldBytes
  );
}

/** In which products are made: FP8 is exact in f16, which it becomes faster than bf16. */
function multipliedFormat(form: PagedForm): DType<"bf16"> {
  return (isNarrow(form) ? dtypes.f16 : form.problem.q.dtype) as DType<"bf16">;
}

/**
 * The rows of q, and what their products have to be multiplied by: numbers of bf16 that f16 has not are brought near 1 first, by a
 * power of two for each row.
 */
function loadedQueries(
  work: Work,
  segment: Segment,
  format: DType<"bf16">,
): { readonly queries: () => Tile<"bf16">; readonly unit: Tile<"f32"> | undefined } {
  const { rows } = work.form.configuration;
  const d = paddedHead(work.form.sizes.d);
  const stored = rowsOfQ(work, segment, work.refs.q, d).load().reshape([rows, d]) as Tile<"bf16">;
  const read = isNarrow(work.form) ? inOrderOfLanes(stored) : stored;
  if (hasSharedQueries(work.form)) {
    const { tileQ } = work.refs as Refs & SharedQueries;
    tileQ.store(read);
    commitShared();
    return { queries: () => tileQ.load(), unit: undefined };
  }
  if (format === read.dtype) return { queries: () => read, unit: undefined };
  const exact = read.cast(dtypes.f32);
  const high = exact.abs().max({ axis: 1, keepDims: true });
  const exponent = high.eq(0).select(zeros(dtypes.f32, [rows, 1]), high.log2().floor());
  const queries = exact.mul(exponent.neg().exp2()).cast(format);
  return { queries: () => queries, unit: exponent.exp2() };
}

/** A tile of keys, [d, tokens]. */
function loadedKeys({ form, refs }: Work, slot: Integer): Tile {
  const keys = refs.tileK.at(slot);
  return isNarrow(form) ? inOrderOfLanes(keys.load()).transpose() : keys.transpose().load();
}

/** A tile of values as it is multiplied: of 16 bits as mma.sync takes them from `ldmatrix`, which no other load comes near. */
function widened({ form }: Work, values: Tile, format: DType<"bf16">): Tile<"bf16"> {
  const { warps } = form.configuration;
  if (isNarrow(form)) return widenedValues(values, format, warps);
  return (warps === 1 ? values.layoutCast("(R0 L0 L1 R1 | L2 L3 L4)") : values) as Tile<"bf16">;
}

/** The rows of a segment in q, or of another array like it: [tokens, heads, width]. */
function rowsOfQ({ packing, head }: Work, segment: Segment, array: Ref, width: number): Ref {
  const { sequence, token, from } = segment;
  const end = head.add(1).mul(packing.group);
  return array.at(
    sequence,
    slice(token, packing.tokens),
    slice(from, packing.heads, { end }),
    slice(0, width),
  );
}

/** Values of tokens behind the last one are anything, also no numbers; their weights are zero, and so have they to be. */
function clearUnwritten({ form, refs }: Work, { length }: Segment, slot: Integer, left: Integer) {
  const { columns } = form.configuration;
  when(left.add(columns).gt(length), () => {
    const token = iota(dtypes.i32, [columns, 1], { axis: 0 }).add(left);
    refs.tileV.at(slot).store(0, { where: token.ge(length) });
  });
}

/** The scores of a tile of products, -∞ where a row does not see a token. */
function exponents(
  { form, optional: { kScale }, dimensions, packing, head }: Work,
  { length, token }: Segment,
  products: Tile<"f32">,
  unit: Tile<"f32"> | undefined,
  left: Integer,
): Exponents {
  const { problem, sizes, configuration } = form;
  const { rows, columns } = configuration;
  const { softCap, window } = problem;
  const scale = problem.scale ?? 1 / Math.sqrt(sizes.d);
  // The largest product is the largest score where the scale is more than 0.
  const isPlain = scale > 0 && softCap === undefined && kScale === undefined && unit === undefined;
  const byHead = kScale?.at(head).loadScalar().mul(scale) ?? scale;
  const scores = isPlain ? products : products.mul(unit === undefined ? byHead : unit.mul(byHead));
  const capped =
    softCap === undefined
      ? scores
      : scores
          .mul(1 / softCap)
          .tanh()
          .mul(softCap);
  // Positions of the rows of the first and the last token.
  const top = length.sub(constant(dtypes.i32, 0).add(dimensions.s)).add(token);
  const bottom = top.add(packing.tokens - 1);
  const column = iota(dtypes.i32, [1, columns], { axis: 1 }).add(left);
  const row = () => iota(dtypes.i32, [rows, 1], { axis: 0 }).div(packing.heads).add(top);
  const { left: back, right: ahead } = window;
  const edges: { readonly crossed: Scalar<"bool">; readonly seen: () => Tile<"bool"> }[] = [
    { crossed: left.add(columns).gt(length), seen: () => column.lt(length) },
  ];
  if (ahead !== undefined)
    edges.push({
      crossed: left.add(columns - 1 - ahead).gt(top),
      seen: () => column.sub(ahead).le(row()),
    });
  if (back !== undefined)
    edges.push({
      crossed: left.add(back).lt(bottom),
      seen: () => column.add(back).ge(row()),
    });
  const crossed = edges.map((edge) => edge.crossed).reduce((sum, each) => sum.or(each));
  const unseen = full(dtypes.f32, [rows, columns], -Infinity);
  const masked = when(
    crossed,
    () => edges.reduce((kept, edge) => edge.seen().select(kept, unseen), capped),
    () => capped,
  );
  return { scores: masked, scale: Math.LOG2E * (isPlain ? scale : 1) };
}

/** Rows whose sequence this split has whole. */
function storeRows(work: Work, segment: Segment, { values, logSumExp }: Rows): void {
  const { form, packing, refs, optional } = work;
  const { tokens, heads } = packing;
  const e = paddedHead(form.sizes.e);
  const result = values.cast(form.problem.out.dtype).reshape([tokens, heads, e]);
  rowsOfQ(work, segment, refs.out, e).store(result);
  const end = work.head.add(1).mul(packing.group);
  optional.logSumExp
    ?.at(segment.sequence, slice(segment.from, heads, { end }), slice(segment.token, tokens))
    .store(logSumExp.reshape([tokens, heads]).transpose());
}

/** Rows of which other splits have a part: the first place is for the ends of sequences, the second for their beginnings. */
function leaveRows(
  { form, dimensions, packing, refs, head }: Work,
  { token }: Segment,
  { split, inBlock }: { readonly split: Integer; readonly inBlock: Integer },
  { values, logSumExp }: Rows,
): void {
  const { rows } = form.configuration;
  const place = inBlock.eq(0).cast(dtypes.i32);
  // Rows of tokens that q has not are nobody's, and most of a tile where few heads share k and v.
  const end = constant(dtypes.i32, 0).add(dimensions.s).sub(token).mul(packing.heads).minimum(rows);
  refs.parts
    .at(split, head, place, slice(0, rows, { end }), slice(0, paddedHead(form.sizes.e)))
    .store(values);
  refs.weights.at(split, head, place, slice(0, rows, { end })).store(logSumExp.reshape([rows]));
}
