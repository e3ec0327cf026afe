/** Rows of a tile as a prologue makes them, between shared memory and the tensor cores. */
import { dtypes } from "../../../formats/dtype.ts";
import { commitShared, constant, loop, slice } from "../../../lang/index.ts";
import type { Ref, Scalar, Slice, Tile } from "../../../lang/index.ts";
import { threadRows } from "../configuration.ts";
import { notBefore } from "../scheduler/tile-scheduler.ts";
import type { TilePlace } from "../scheduler/tile-scheduler.ts";
import type { Work } from "../kernel-context.ts";
import { asStored } from "../weights/quantized.ts";
import { computedOperand, inputWindow, overhangs } from "../prologue/prologue.ts";
import type { Prologue, PrologueInput } from "../prologue/prologue.ts";

/** Which rows of which slot, and where they lie in the product. */
interface ComputedPart {
  readonly slot: Scalar<"i32">;
  readonly mine: Slice;
  /** Which matrix of the operand's batch, and its first row there. */
  readonly batch: Scalar<"i32">;
  readonly top: Scalar<"i32">;
  readonly along: Scalar<"i32">;
}

/** The rows as the prologue makes them, in registers. */
export function computedRows(
  { form, prologueInputs, shapes, depth }: Work,
  prologue: Prologue,
  rows: Ref,
  { slot, mine, batch, top, along }: ComputedPart,
): Tile<"bf16"> {
  const isSwapped = prologue.operand === "b";
  const stored = asStored(rows.load(), 4);
  const inputTile = ({ name }: PrologueInput): Tile => {
    const source = prologueInputs.find(({ input }) => input.name === name);
    if (source === undefined) throw new Error(`the prologue has no input ${name}`);
    const { input, all, tiles: copied } = source;
    return copied === undefined
      ? inputWindow(input, all, { batch, along, start: top, count: threadRows }).load()
      : copied.at(slot, ownInputs(mine, input)).load();
  };
  const tiles = new Map(prologue.inputs.map((input) => [input.name, inputTile(input)]));
  // TMA overwrites what lanes have read here.
  commitShared();
  const made = computedOperand(
    prologue,
    isSwapped ? (stored.transpose() as Tile) : stored,
    tiles,
    overhangs(prologue, form.sizes.k, shapes.depth) ? depth.sub(along) : undefined,
    form.location,
  );
  // Tensor cores take f32 as tf32. What it is of says the recipe; the language wants it in the type.
  const taken = made.cast(form.recipe[prologue.operand]);
  return (isSwapped ? taken.transpose() : taken) as Tile<"bf16">;
}

/** Where the numbers of some rows lie in a slot. */
function ownInputs(rows: Slice, { perUnit }: PrologueInput): Slice {
  if (perUnit === 1) return rows;
  return slice(constant(dtypes.i32, 0).add(rows.start).mul(perUnit), threadRows * perUnit);
}

/**
 * Steps of a part from which on it is worth looking: 64 rows of 8192 × 28672 in i4, which have 56, took 59.5 µs by the quick way instead of 63.0, and 32 rows
 * 43.3 instead of 46.3. Fewer of them were not timed.
 */
const leastLooked = 32;

/** Groups along k that are looked at together. */
const lookedGroups = 64;

/**
 * Whether the rows of a thread may be made by the quick way of their prologue in all steps, and the factor that sums are multiplied by then;
 * undefined where there is no such way, or too few steps to look for it. Blocks with a part of k look at what belongs to it while the first tiles come.
 */
export function quickRows(
  { form, sides, prologueInputs, steps: partSteps, shapes }: Work,
  { from, steps }: { readonly from: Scalar<"i32">; readonly steps: Scalar<"i32"> },
  { batch, top }: Pick<TilePlace, "batch" | "top">,
  index: Scalar<"i32">,
): { readonly isThere: Scalar<"bool">; readonly factor: number } | undefined {
  const quick = sides.rows.prologue?.quick;
  const source = prologueInputs.find(({ input }) => input.name === quick?.input);
  if (quick === undefined || source === undefined || form.parts === 1) return undefined;
  if (Math.ceil(form.sizes.k / shapes.depth / form.parts) < leastLooked) return undefined;
  const { input, all } = source;
  const columns = slice(notBefore(top).add(index.mul(threadRows)), threadRows);
  const first = from.add(batch.mul(partSteps)).mul(shapes.depth);
  const { group } = input;
  const suits = (numbers: Tile): Tile<"bool"> => quick.suits(numbers);
  if (group === undefined)
    return { isThere: suits(all.at(columns).load()).all(), factor: quick.factor };
  const start = first.div(group);
  const count = steps
    .mul(shapes.depth)
    .add(group - 1 + lookedGroups * group)
    .div(lookedGroups * group);
  const isThere = loop({ to: count, carry: constant(dtypes.i32, 1) }, (round, before) => {
    const rows = slice(round.mul(lookedGroups).add(start), lookedGroups);
    return suits(all.at(rows, columns).load()).all().select(before, 0);
  });
  return { isThere: isThere.eq(1), factor: quick.factor };
}
