/** Rows of a tile as a prologue makes them, between shared memory and the tensor cores. */
import { commitShared } from "../../lang/index.ts";
import type { Ref, Scalar, Slice, Tile } from "../../lang/index.ts";
import { threadRows } from "./configuration.ts";
import type { Work } from "./persistent.ts";
import { asStored } from "./quantized.ts";
import { computedOperand, inputWindow, overhangs } from "./prologue.ts";
import type { Prologue, PrologueInput } from "./prologue.ts";

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
  const isTurned = prologue.operand === "b";
  const stored = asStored(rows.load(), 4);
  const inputTile = ({ name }: PrologueInput): Tile => {
    const source = prologueInputs.find(({ input }) => input.name === name);
    if (source === undefined) throw new Error(`the prologue has no input ${name}`);
    const { input, all, tiles: copied } = source;
    return copied === undefined
      ? inputWindow(input, all, { batch, along, start: top, count: threadRows }).load()
      : copied.at(slot, mine).load();
  };
  const tiles = new Map(prologue.inputs.map((input) => [input.name, inputTile(input)]));
  // The copy engine overwrites what lanes have read here.
  commitShared();
  const made = computedOperand(
    prologue,
    isTurned ? (stored.transpose() as Tile) : stored,
    tiles,
    overhangs(prologue, form.sizes.k, shapes.depth) ? depth.sub(along) : undefined,
    form.location,
  );
  // Tensor cores take f32 as tf32. What it is of says the recipe; the language wants it in the type.
  const taken = made.cast(form.recipe[prologue.operand]);
  return (isTurned ? taken.transpose() : taken) as Tile<"bf16">;
}
