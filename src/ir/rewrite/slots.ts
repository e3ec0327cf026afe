/**
 * Results of ops with regions come in slots. A slot is the result together with everything that feeds
 * it, all of one type:
 *
 * | op       | slot i                                                             |
 * |----------|--------------------------------------------------------------------|
 * | loop     | initial[i], body parameter i + 1, body yield i, result i           |
 * | while    | initial[i], condition and body parameter i, body yield i, result i |
 * | if       | yield i of both branches, result i                                 |
 * | switch   | yield i of every case, result i                                    |
 * | scoped   | yield i of the body, result i                                      |
 *
 * What a loop that may break yields last is in no slot.
 *
 * Passes that follow a value through an op or drop a result do it for the whole slot.
 */
import { changedOp, regionOf } from "../make-op.ts";
import type { AnyOp, Region, Value } from "../node.ts";
import { repeats } from "../traits.ts";
import { regionList, withRegions, yieldedValues } from "../traverse.ts";

export interface Slot {
  readonly result: Value;
  /** What the op is given for the slot; only loops are given something. */
  readonly initial: Value | undefined;
  /** Where the regions of a loop receive it. */
  readonly parameters: readonly Value[];
  /** What each region that yields results yields for it. */
  readonly yielded: readonly Value[];
}

/** How many parameters of a loop's body come before the carried ones. */
const indexParameters = 1;

/** The value at a place of each list that has one there. */
function valuesAt(lists: readonly (readonly Value[])[], place: number): readonly Value[] {
  const found: Value[] = [];
  for (const list of lists) {
    const value = list[place];
    if (value !== undefined) found.push(value);
  }
  return found;
}

function slotParameters(op: AnyOp, slot: number): readonly Value[] {
  if (op.kind === "loop") return valuesAt([op.regions.body.parameters], slot + indexParameters);
  if (op.kind !== "while") return [];
  const { condition, body } = op.regions;
  return valuesAt([condition.parameters, body.parameters], slot);
}

/** The regions whose yields are results. */
function yieldingRegions(op: AnyOp): readonly Region[] {
  return op.kind === "while" ? [op.regions.body] : regionList(op);
}

const noSlots: readonly Slot[] = Object.freeze([]);

/** The op's slots; none for an op without regions. */
export function slotsOf(op: AnyOp): readonly Slot[] {
  if (op.results.length === 0 || regionList(op).length === 0) return noSlots;
  const initial = repeats(op) ? op.operands.initial : [];
  const yields = yieldingRegions(op).map(yieldedValues);
  return op.results.map((result, slot) => ({
    result,
    initial: initial[slot],
    parameters: slotParameters(op, slot),
    yielded: valuesAt(yields, slot),
  }));
}

/** The op with the slots that `keeps` names; nothing may use the parameters of the others. */
export function keepSlots<T extends AnyOp>(op: T, keeps: (slot: Slot) => boolean): T {
  const slots = slotsOf(op);
  if (slots.length === 0) return op;
  const dropped = slots.map((slot) => !keeps(slot));
  if (!dropped.includes(true)) return op;
  const filter = (values: readonly Value[]) => Object.freeze(values.filter((_, i) => !dropped[i]));
  const lost = new Set(slots.flatMap(({ parameters }, slot) => (dropped[slot] ? parameters : [])));
  const yielding = new Set(yieldingRegions(op));
  const slim = withRegions(changedOp(op, { results: filter(op.results) }), (region) =>
    regionOf({
      parameters: Object.freeze(region.parameters.filter((value) => !lost.has(value))),
      ops: yielding.has(region) ? changeYield(region, filter) : region.ops,
    }),
  );
  if (!repeats(slim)) return slim as T;
  const operands = Object.freeze({ ...slim.operands, initial: filter(slim.operands.initial) });
  return changedOp(slim, { operands }) as T;
}

function changeYield(
  region: Region,
  change: (values: readonly Value[]) => readonly Value[],
): readonly AnyOp[] {
  const last = region.ops.at(-1);
  if (last?.kind !== "yield") throw new Error("a region ends with yield");
  const operands = Object.freeze({ values: change(last.operands.values) });
  return Object.freeze([...region.ops.slice(0, -1), changedOp(last, { operands })]);
}
