/**
 * What the steps of a tile come to: one product of two tiles in shared memory a step, begun as soon as they are there, and the slot given
 * back once it is over.
 *
 *   | sums        | where                                                  | products in flight                   |
 *   |-------------|--------------------------------------------------------|--------------------------------------|
 *   | `plain`     | both factors are read from shared memory               | the next is begun before one is over |
 *   | `round`     | likewise, the first step in the loop, too              | likewise                             |
 *   | `held`      | lanes hold a factor in registers                       | one                                  |
 *   | `promoted`  | sums of a step are added to others in f32              | one, the other thread's meanwhile    |
 *   | `corrected` | likewise, of the greatest of several terms             | all of a step                        |
 */
import {
  accumulator,
  commitShared,
  constant,
  loop,
  slice,
  wgmma,
  when,
  zeros,
} from "../../../lang/index.ts";
import type { Accumulator, Ref, Scalar, Tile } from "../../../lang/index.ts";
import type { Segment } from "../../../lang/pipeline/stream-k.ts";
import { dtypes } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import { addScaled, partScales, scalesTravel, slotScales } from "../block-scales.ts";
import type { StepScales } from "../block-scales.ts";
import { threadRows } from "../configuration.ts";
import { computedRows, quickRows } from "./prologue-operand.ts";
import { following } from "./producer.ts";
import { doubleSums } from "./f64.ts";
import { heldRows, orderedSums } from "./register-operand.ts";
import { notBefore } from "../scheduler/tile-scheduler.ts";
import type { TilePlace } from "../scheduler/tile-scheduler.ts";
import type { Work } from "../kernel-context.ts";
import { prologueOf } from "../problem.ts";
import type { Prologue } from "../prologue/prologue.ts";
import { slotParts } from "../f32-emulation.ts";
import type { Term } from "../f32-emulation.ts";
import { columnsOfTile, rowsOfTile } from "./operands.ts";
import type { Side, Sides } from "./operands.ts";
import { unpackedMetadata } from "../weights/sparse-weights.ts";
import { letFirstEnd, letSecondEnd } from "./ping-pong.ts";
import { widest } from "../tile-shapes.ts";

/** Whether lanes hold a part of what is multiplied in registers: an operand that a prologue makes, one that lies across k, or metadata. */
function holdsOperand({ form: { problem }, sides }: Work): boolean {
  return problem.sparse || sides.rows.held || prologueOf(problem) !== undefined;
}

/** How the products of steps are added up. */
export function sumsFor(work: Work): (...given: Parameters<typeof plainSums>) => Sums {
  const { recipe } = work.form;
  if (recipe.issuer === "warp")
    return (_, segment, first, index) =>
      doubleSums(work, segment, first, index, (slot) => {
        release(work, slot);
      });
  if (recipe.promoted) return recipe.terms.length > 1 ? correctedSums : promotedSums;
  return holdsOperand(work) ? heldSums : plainSums;
}

/** Tells every block that fills it that a slot has been read. */
function release({ empty, form, metadata }: Work, slot: Scalar<"i32">): void {
  const { cluster } = form.configuration;
  // TMA overwrites metadata that lanes have read.
  if (metadata !== undefined) commitShared();
  if (cluster === 1) empty.at(slot).arrive();
  else for (let peer = 0; peer < cluster; peer += 1) empty.at(slot).arrive({ peer });
}

/** What the steps of a segment come to, where the tile lies, and the slot after the last one. */
interface Sums {
  readonly product: Tile;
  readonly place: TilePlace;
  readonly slot: Scalar<"i32">;
}

/** What is done besides while tensor cores multiply. */
interface Meanwhile {
  readonly atFirst: () => void;
  /** Of the second and following steps. */
  readonly atStep: (step: Scalar<"i32">) => void;
  readonly atLast: (place: TilePlace) => void;
}

/** Which thread multiplies, the number of the step in the whole of k, and where its tile lies, where that is asked for. */
interface Turn {
  readonly index: Scalar<"i32">;
  readonly step: Scalar<"i32">;
  readonly place: () => TilePlace;
  /** Whether the product is added to the sums, where it may begin them. */
  readonly adds?: Scalar<"bool">;
  /** Whether what a prologue gives is made by its quick way. */
  readonly quick?: boolean;
  /** The slot of the columns, where it is not that of the rows. */
  readonly columnsIn?: Scalar<"i32">;
}

/** Waits until the tiles of a slot are there. Sums that begin with them are made then: zeros are none that are multiplied at once. */
function waitFull({ full }: Work, slot: Scalar<"i32">): void {
  full.at(slot).wait();
}

/** Adds the product of the tiles in a slot. */
function multiplySlot(
  work: Work,
  sum: Accumulator<"f32">,
  slot: Scalar<"i32">,
  { index, step, place, adds, quick = false, columnsIn = slot }: Turn,
): Accumulator<"f32"> {
  const { sides, leftTiles, rightTiles } = work;
  const isPart = work.shapes.columns < work.form.configuration.columns;
  const mine = slice(index.mul(threadRows), threadRows);
  const rows = rowsOfTile(sides.rows, leftTiles, slot, mine);
  const { prologue } = sides.rows;
  const computed = (of: Prologue): Tile<"bf16"> => {
    const { batch, top } = place();
    return computedRows(work, quick ? { ...of, compute: (of.quick ?? of).compute } : of, rows, {
      ...{ slot, mine, batch, along: step.mul(work.shapes.depth) },
      top: notBefore(top).add(index.mul(threadRows)),
    });
  };
  const uncomputed = sides.rows.held ? (heldRows(rows) as Tile) : rows;
  return wgmma(
    sum,
    prologue === undefined ? uncomputed : computed(prologue),
    columnsOfTile(sides.columns, rightTiles, columnsIn, isPart ? work.shapes.columns : undefined),
    {
      accumulation: "fast",
      ...(work.metadata && { sparse: rowsMetadata(work, work.metadata.tiles.at(slot, index)) }),
      ...(adds && { adds, rolled: rollsProducts(work) }),
    },
  );
}

/** Multiplications and additions of a product from which on half a percent of it is worth 50 ms of the assembler's. */
const longProduct = 3e11;

/**
 * Whether the products of a step are a loop. Four wgmma of 256 columns are half of the assembler's work. One in a loop is committed by itself, and takes
 * ten instructions: 4096 × 4096 × 16384 took 0.5 % longer for it, 5120 × 13824 × 5120 2 % with threads that end tiles in order, 4096³ up to 1 %.
 */
function rollsProducts({ form: { problem, recipe, sizes }, shapes }: Work): boolean {
  const isLong = 2 * sizes.batch * sizes.m * sizes.n * sizes.k >= longProduct;
  return (
    shapes.columns === widest && recipe.a.bits === 16 && problem.epilogue === undefined && !isLong
  );
}

/** The metadata of a thread's rows, which go with what is multiplied. */
function rowsMetadata({ form }: Work, stored: Ref): Tile<"u16"> {
  return unpackedMetadata(stored.load() as Tile<"u16">, form.recipe.b.bits);
}

function sumType({ form }: Work): DType<"f32"> {
  return form.problem.accumulator as DType<"f32">;
}

function sumShape({ shapes }: Work): readonly [rows: number, columns: number] {
  return [threadRows, shapes.columns];
}

/**
 * Whether sums begin with zeros even where they need not be anything: registers that nobody writes would keep those of the tile before
 * while an epilogue needs them. It then worked on one number after the other, and a tile's GELU took 6700 cycles instead of 3700.
 */
function endsSums({ form: { problem } }: Work): boolean {
  return problem.epilogue !== undefined;
}

/** Sums before there are any, as a tile. */
function emptyProduct(work: Work): Tile<"f32"> {
  return zeros(sumType(work), sumShape(work));
}

function emptySums(work: Work): Accumulator<"f32"> {
  return accumulator(sumType(work), sumShape(work));
}

/**
 * One sum, in the registers of the tensor cores. Something may be done while they multiply the first step, each of the others, and the last one; in
 * the first, it is found out where the tile lies, which takes divisions, unless a prologue asks for it before.
 */
export function plainSums(
  work: Work,
  { tile, from, steps }: Segment,
  first: Scalar<"i32">,
  index: Scalar<"i32">,
  { atFirst, atStep, atLast }: Meanwhile,
): Sums {
  const { stages } = work.form.configuration;
  const place = once(() => work.place(tile));
  waitFull(work, first);
  const started = multiplySlot(work, emptySums(work), first, { index, step: from, place });
  const found = place();
  const own = ownSteps(work, found, index, steps);
  atFirst();
  const { sum, slot, last } = loop(
    {
      from: 1,
      to: own,
      carry: { sum: started.waitPending(1), slot: following(first, stages), last: first },
    },
    (step, carried) => {
      const turn = { index, step: from.add(step), place };
      letFirstEnd(work, index, step, steps);
      waitFull(work, carried.slot);
      const begun = multiplySlot(work, carried.sum, carried.slot, turn);
      atStep(step);
      const running = begun.waitPending(1);
      // The product of the step before is over, so its tiles may be replaced.
      release(work, carried.last);
      return { sum: running, slot: following(carried.slot, stages), last: carried.slot };
    },
  );
  letSecondEnd(work, index);
  atLast(found);
  const product = sum.wait();
  // Nothing comes to the slots of a block's only tile any more.
  if (!work.isOnce) release(work, last);
  return {
    product,
    place: found,
    slot: own === steps ? slot : passSlots(work, slot, index, { from: own, to: steps }, atStep),
  };
}

/**
 * Steps of a tile that a thread multiplies: where the rows of a group end before its own, nobody asks for their sums, and one is as good as all. Tensor
 * cores are the other threads' then, which end the tile in half the time.
 */
function ownSteps(
  work: Work,
  place: TilePlace,
  index: Scalar<"i32">,
  steps: Scalar<"i32">,
): Scalar<"i32"> {
  return rowsOfThread(work, place, index)?.select(steps, steps.minimum(1)) ?? steps;
}

/** Whether a thread has rows of a tile whose group may end before them; undefined where all have. */
export function rowsOfThread(
  { form: { dealt, configuration } }: Work,
  { top, end }: TilePlace,
  index: Scalar<"i32">,
): Scalar<"bool"> | undefined {
  const { consumers, swapAB } = configuration;
  if (dealt === undefined || end === undefined || swapAB || consumers === 1) return undefined;
  return notBefore(top).add(index.mul(threadRows)).lt(end);
}

/** Gives the slots of the other steps back as they come, and does what is done besides in them. */
function passSlots(
  work: Work,
  first: Scalar<"i32">,
  index: Scalar<"i32">,
  steps: { readonly from: Scalar<"i32">; readonly to: Scalar<"i32"> },
  atStep: Meanwhile["atStep"],
): Scalar<"i32"> {
  return loop({ ...steps, carry: first }, (step, slot) => {
    letFirstEnd(work, index, step, steps.to);
    waitFull(work, slot);
    release(work, slot);
    atStep(step);
    return following(slot, work.form.configuration.stages);
  });
}

/**
 * Likewise, with the first step among the others, which begins the sums and finds out where the tile lies. The driver's assembler takes some
 * 20 ms for each wgmma of 256 columns in a text, and this one has half as many; and some for each register that is written.
 */
export function roundSums(
  work: Work,
  { tile, from, steps }: Segment,
  first: Scalar<"i32">,
  index: Scalar<"i32">,
  { atStep, atLast }: Pick<Meanwhile, "atStep" | "atLast">,
): Sums {
  const { stages } = work.form.configuration;
  const zero = constant(dtypes.i32, 0);
  const { sum, slot, last, place } = loop(
    {
      to: steps,
      carry: {
        sum: endsSums(work)
          ? emptySums(work)
          : accumulator(sumType(work), sumShape(work), "anything"),
        slot: first,
        last: first,
        place: { batch: zero, top: zero, left: zero },
      },
    },
    (step, carried) => {
      const isLater = step.gt(0);
      const turn = { index, step: from.add(step), place: () => carried.place, adds: isLater };
      letFirstEnd(work, index, step, steps);
      waitFull(work, carried.slot);
      const begun = multiplySlot(work, carried.sum, carried.slot, turn);
      const place = when(
        isLater,
        () => {
          atStep(step);
          return carried.place;
        },
        () => {
          const { batch, top, left } = work.place(tile);
          return { batch, top, left };
        },
      );
      const running = begun.waitPending(1);
      // The product of the step before is over, so its tiles may be replaced.
      when(isLater, () => {
        release(work, carried.last);
      });
      return { sum: running, slot: following(carried.slot, stages), last: carried.slot, place };
    },
  );
  letSecondEnd(work, index);
  atLast(place);
  const product = sum.wait();
  release(work, last);
  return { product, place, slot };
}

/**
 * Likewise, where lanes hold an operand. Tensor cores that two threads share read registers long after a product was begun,
 * so each product is waited for before lanes make what the next one takes.
 */
function heldSums(
  work: Work,
  { tile, from, steps }: Segment,
  first: Scalar<"i32">,
  index: Scalar<"i32">,
): Sums {
  const { form } = work;
  const [dtype, extents] = [sumType(work), sumShape(work)];
  const place = work.place(tile);
  const sumsOf = (quick: boolean) =>
    loop({ to: steps, carry: { product: emptyProduct(work), slot: first } }, (step, carried) => {
      const turn = { index, step: from.add(step), place: () => place, quick };
      const sum = accumulator(dtype, extents, carried.product);
      waitFull(work, carried.slot);
      const done = multiplySlot(work, sum, carried.slot, turn).wait();
      release(work, carried.slot);
      return { product: done, slot: following(carried.slot, form.configuration.stages) };
    });
  const quick = quickRows(work, { from, steps }, place, index);
  const { product, slot } =
    quick === undefined
      ? sumsOf(false)
      : when(
          quick.isThere,
          () => {
            const { product: parts, slot: after } = sumsOf(true);
            return { product: parts.mul(1 / quick.factor), slot: after };
          },
          () => sumsOf(false),
        );
  const ordered = work.sides.rows.held ? orderedSums(product) : product;
  return { product: ordered, place, slot };
}

/** What a function gives, found when it is first asked for. */
function once<T extends object>(find: () => T): () => T {
  let found: T | undefined;
  return () => (found ??= find());
}

/** A sum for each step, which is added to others in f32; meanwhile the other thread multiplies. */
function promotedSums(
  work: Work,
  { tile, from, steps }: Segment,
  first: Scalar<"i32">,
  index: Scalar<"i32">,
): Sums {
  const { stages } = work.form.configuration;
  const place = work.place(tile);
  const none: Tile<"f32"> = zeros(dtypes.f32, sumShape(work));
  const travels = scalesTravel(work.form.problem, work.form.sizes.k);
  const ofStep = (step: Scalar<"i32">, slot?: Scalar<"i32">) =>
    scalesOfStep(work, place, index, from.add(step), slot);
  const nothing: StepScales = { rows: [], columns: [] };
  const before = travels ? nothing : ofStep(constant(dtypes.i32, 0));
  const start = { product: none, slot: first, scales: before };
  const { product, slot } = loop({ to: steps, carry: start }, (step, carried) => {
    const turn = { index, step: from.add(step), place: () => place };
    waitFull(work, carried.slot);
    const begun = multiplySlot(work, emptySums(work), carried.slot, turn);
    // What else there is to do is done while tensor cores multiply. From memory scales are asked for a step before they are used.
    const own = travels ? ofStep(step, carried.slot) : carried.scales;
    const scales = travels ? nothing : ofStep(step.add(1).minimum(steps.sub(1)));
    // TMA overwrites scales that lanes have read.
    if (travels) commitShared();
    const product = begun.wait();
    release(work, carried.slot);
    return {
      product: addScaled(carried.product, product, own),
      slot: following(carried.slot, stages),
      scales,
    };
  });
  return { product, slot, place };
}

/** The scales of a thread's rows and of its columns in a step, where blocks have such: from a slot, or from memory. */
function scalesOfStep(
  { form: { problem }, sides, shapes, named }: Work,
  { batch, top, left }: TilePlace,
  index: Scalar<"i32">,
  step: Scalar<"i32">,
  slot: Scalar<"i32"> | undefined,
): StepScales {
  const ofPart = (
    operand: "a" | "b",
    [tile, start]: readonly [Scalar<"i32">, Scalar<"i32">],
    count: number,
  ) => {
    const part = { operand, batch, start, count };
    return slot === undefined
      ? partScales(problem, named, part, step)
      : slotScales(problem, named, { ...part, tile }, step, slot);
  };
  const [down, across] = [notBefore(top), notBefore(left)];
  return {
    rows: ofPart(sides.rows.name, [down, down.add(index.mul(threadRows))], threadRows),
    columns: ofPart(sides.columns.name, [across, across], shapes.columns),
  };
}

/** Steps of which tensor cores add up the corrections. Of numbers whose corrections all have one sign, 4096 of k cut off 2⁻²² of the sum, and no longer sum more. */
const correctedSteps = 64;

/**
 * Sums of several terms. A step's greatest one is added to others in f32 while tensor cores multiply the rest of it, which are corrections, and which they add
 * up themselves: these are so small that what is cut off of them does not matter. Nobody waits for anything, and f32 in three products of bf16 took
 * 578 µs at 4096³, where it had taken 666 with sums of corrections that lanes added to each step's.
 *
 *   tensor cores   a0·b0   a1·b0   a0·b1 │ a0·b0   a1·b0   a0·b1 │
 *   lanes                  add a0·b0     │         add a0·b0
 */
function correctedSums(
  work: Work,
  { tile, from, steps }: Segment,
  first: Scalar<"i32">,
  index: Scalar<"i32">,
): Sums {
  const none: Tile<"f32"> = zeros(dtypes.f32, sumShape(work));
  const place = once(() => work.place(tile));
  const turn = (step: Scalar<"i32">): Turn => ({ index, step: from.add(step), place });
  const stretches = steps.add(correctedSteps - 1).div(correctedSteps);
  const sums = loop({ to: stretches, carry: { product: none, slot: first } }, (stretch, before) => {
    const start = stretch.mul(correctedSteps);
    const count = steps.sub(start).minimum(correctedSteps);
    return correctedStretch(work, count, before, (step) => turn(start.add(step)));
  });
  return { ...sums, place: place() };
}

/**
 * Adds what so many steps come to. Sums that are not finite take no corrections: infinity times a part that is 0 is no number, and times one of the other sign
 * it is the other infinity; likewise what overflows, whose greatest product has done so before.
 */
function correctedStretch(
  work: Work,
  steps: Scalar<"i32">,
  sums: { readonly product: Tile<"f32">; readonly slot: Scalar<"i32"> },
  turnOf: (step: Scalar<"i32">) => Turn,
): typeof sums {
  const { recipe, configuration } = work.form;
  const corrections = recipe.terms.filter(([a, b]) => a + b > 0);
  const giveBack = (slot: Scalar<"i32">): void => {
    for (const each of stepSlots(work, slot).all) release(work, each);
  };
  // Slots are given back once the next step is begun, for which there must be others.
  const isAhead = configuration.stages >= 2 * recipe.parts;
  const { product, rest, slot, last } = loop(
    { to: steps, carry: { ...sums, rest: emptySums(work), last: sums.slot } },
    (step, carried) => {
      const slots = stepSlots(work, carried.slot);
      const multiply = (sum: Accumulator<"f32">, term: Term): Accumulator<"f32"> => {
        const { rows, columns } = slots.of(term);
        return multiplySlot(work, sum, rows, { ...turnOf(step), columnsIn: columns });
      };
      for (const each of slots.all) waitFull(work, each);
      const greatest = multiply(emptySums(work), [0, 0]);
      const before = isAhead ? carried.rest.waitPending(1) : carried.rest;
      if (isAhead)
        when(step.gt(0), () => {
          giveBack(carried.last);
        });
      const begun = corrections.reduce(multiply, before);
      const added = carried.product.add(greatest.wait({ pending: corrections.length }));
      if (isAhead) return { product: added, rest: begun, slot: slots.after, last: carried.slot };
      const over = accumulator(dtypes.f32, sumShape(work), begun.wait());
      giveBack(carried.slot);
      return { product: added, rest: over, slot: slots.after, last: carried.slot };
    },
  );
  const correction = rest.wait();
  if (isAhead) giveBack(last);
  return { product: product.isFinite().select(product.add(correction), product), slot };
}

/** The slots of a step, in which of them the factors of a term lie, and the one after them. */
function stepSlots(
  { form: { recipe, configuration }, sides }: Work,
  first: Scalar<"i32">,
): {
  readonly all: readonly Scalar<"i32">[];
  readonly of: (term: Term) => { readonly [S in keyof Sides]: Scalar<"i32"> };
  readonly after: Scalar<"i32">;
} {
  let after = first;
  const slots = slotParts(recipe).map((parts) => {
    const slot = after;
    after = following(slot, configuration.stages);
    return { slot, parts };
  });
  const slotOf = ({ name }: Side, [a, b]: Term): Scalar<"i32"> => {
    const part = name === "a" ? a : b;
    const found = slots.find(({ parts }) => parts[name] === part);
    if (found === undefined) throw new Error(`no slot has part ${part} of ${name}`);
    return found.slot;
  };
  return {
    all: slots.map(({ slot }) => slot),
    of: (term) => ({ rows: slotOf(sides.rows, term), columns: slotOf(sides.columns, term) }),
    after,
  };
}
