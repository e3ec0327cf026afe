/** A tile brought to another layout, as its relayout plan says. */
import type { AnyOp } from "../../../ir/node.ts";
import { registersPerLane } from "../../../layout/algebra/register-layout.ts";
import type { RegisterLayout } from "../../../layout/algebra/register-layout.ts";
import { planRelayout } from "../../../layout/relayout/relayout.ts";
import type { PackStep, RelayoutPlan } from "../../../layout/relayout/steps.ts";
import type { Register } from "../../module.ts";
import type { EmitContext } from "../context.ts";
import { slotsOf } from "../values.ts";
import type { TileValue } from "../values.ts";
import { runRelayout } from "./relayout.ts";
import { gatherWord, predicatesToWords, wordsToPredicates } from "./repack.ts";
import type { WordPart } from "./repack.ts";

/** The tile in another layout; scratch is the op's. */
export function convertTile(
  context: EmitContext,
  tile: TileValue,
  layout: RegisterLayout,
  op: AnyOp,
): TileValue {
  if (tile.layout.text === layout.text) return tile;
  const plan = planRelayout(tile.layout, layout, tile.shape, tile.dtype, context.scope.warps);
  if (plan === undefined) throw new Error(`no way from ${tile.layout.text} to ${layout.text}`);
  if (tile.layout.kind === "splat") return { ...tile, layout, words: repeated(tile, layout) };
  if (tile.dtype.kind === "bool")
    return { ...tile, layout, words: convertPredicates(context, op, plan, tile.words) };
  const words = runRelayout(context, op, plan, tile.words);
  return { ...tile, layout, words: layout.kind === "splat" ? filled(context, tile, words) : words };
}

/** Every slot of a splat's word holds the number, and so its word serves as any other. */
function repeated({ dtype, shape, words }: TileValue, layout: RegisterLayout): readonly Register[] {
  const count = Math.ceil(registersPerLane(layout, shape) / slotsOf(dtype));
  return Array<Register>(count).fill(someOf(words));
}

/** The word of a splat whose number lies in its first slot. */
function filled(
  { code }: EmitContext,
  { dtype }: TileValue,
  words: readonly Register[],
): readonly Register[] {
  const first = { word: someOf(words), part: 0 };
  const word = gatherWord(code, dtype.bits, Array<WordPart>(slotsOf(dtype)).fill(first));
  return word === undefined ? words : [word];
}

/** Predicates move as bytes, but for plans that only give them other names. */
function convertPredicates(
  context: EmitContext,
  op: AnyOp,
  plan: RelayoutPlan,
  predicates: readonly Register[],
): readonly Register[] {
  const { code } = context;
  const count = registersPerLane(plan.target, plan.shape);
  const renames = plan.steps.flatMap((step) => (step.kind === "pack" ? [step] : []));
  if (renames.length === plan.steps.length) {
    const renamed = renames.reduce<readonly (Register | undefined)[]>(renameSlots, predicates);
    return Array.from({ length: count }, (_, index) => renamed[index] ?? someOf(predicates));
  }
  const words = runRelayout(context, op, plan, predicatesToWords(code, predicates));
  return wordsToPredicates(code, words, count);
}

function renameSlots(
  predicates: readonly (Register | undefined)[],
  { words }: PackStep,
): readonly (Register | undefined)[] {
  return words.flatMap((slots) =>
    Array.from({ length: 4 }, (_, part) => predicates[slots[part] ?? -1]),
  );
}

function someOf(registers: readonly Register[]): Register {
  const [some] = registers;
  if (some === undefined) throw new Error("a tile without words");
  return some;
}
