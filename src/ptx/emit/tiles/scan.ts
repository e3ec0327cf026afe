/**
 * Running combinations along an axis, one digit of the coordinate after the other, the least significant
 * first. A *group* is a stretch of the axis that lanes have done so far: each lane knows the group's total
 * and, for its own elements, what comes before them in the group. Two groups become one when the second
 * takes in the total of the first:
 *
 *   digits R0, L0 on 4 elements a b c d: lane 0 holds a b, lane 1 holds c d
 *
 *   | step | lane 0 has        | lane 1 has          | total     |
 *   |------|-------------------|---------------------|-----------|
 *   | R0   | a, a+b            | c, c+d              | a+b; c+d  |
 *   | L0   | a, a+b            | (a+b) before c, c+d | a+b+c+d   |
 *   | end  | a, a+b            | a+b+c, a+b+c+d      |           |
 *
 * What comes before is kept apart from the elements until the end, so that steps across lanes and warps
 * cost the same however many registers there are.
 */
import type { ScanFunction } from "../../../formats/arithmetic/functions.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { AnyOp, Op } from "../../../ir/node.ts";
import { laneBits } from "../../../layout/algebra/index-bits.ts";
import {
  digitOf,
  digitsAlong,
  layoutAlong,
  weighed,
} from "../../../layout/model/axis-distribution.ts";
import type { Along, WeighedDigit } from "../../../layout/model/axis-distribution.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { TileValue } from "../values.ts";
import { convertTile } from "./convert.ts";
import { TilePlaces } from "./valid-registers.ts";
import { resultTile } from "./rearrange.ts";
import { shuffleWord } from "./relayout.ts";
import { tradeValues } from "./exchange-through-shared.ts";
import {
  combineStep,
  neutralElement,
  tileFromWorking,
  workingElements,
  workingType,
} from "./accumulation-dtype.ts";

export function scan(op: Op<"scan">, context: EmitContext): void {
  const { fn, axis, reverse } = op.attributes;
  const [target] = op.results;
  const source = context.tile(op.operands.source);
  const tile = workingTile(context, source, axis, op);
  const along = axisOf(tile, axis);
  const scanner = new Scanner(context, op, { fn, dtype: workingType(tile.dtype), reverse });
  const elements = scanner.run(along, workingElements(context, tile));
  const scanned = tileFromWorking(context, tile, elements);
  const { layout } = resultTile(target);
  context.define(target, convertTile(context, scanned, layout, op));
}

/** The tile in a layout that has digits along the axis. */
export function workingTile(
  context: EmitContext,
  tile: TileValue,
  axis: number,
  op: AnyOp,
): TileValue {
  const { layout, shape } = tile;
  if (layout.kind === "splat") throw new Error("a splat has no axis to work along");
  const working = layoutAlong(layout, shape, axis, context.scope.warps);
  return convertTile(context, tile, working, op);
}

/** An axis and who shares it out. */
export interface WorkingAxis {
  readonly along: Along;
  /** The axis of the expansion. */
  readonly axis: number;
  readonly digits: readonly WeighedDigit[];
}

export function axisOf({ layout, shape }: TileValue, axis: number): WorkingAxis {
  const along = layout.kind === "splat" ? undefined : digitsAlong(layout, shape, [axis]);
  if (along === undefined) throw new Error(`${layout.text} has no digits along axis ${axis}`);
  const own = along.axes.find((each) => along.expansion.shape[each] !== 1) ?? along.axes[0] ?? 0;
  return { along, axis: own, digits: weighed(along.expansion, own) };
}

interface ScanKind {
  readonly fn: ScanFunction;
  /** The working format. */
  readonly dtype: DType;
  readonly reverse: boolean;
}

/** Registers with one thing before them. */
interface Stretch {
  readonly registers: readonly number[];
  before: Register | undefined;
}

interface Group {
  total: Register;
  readonly stretches: readonly Stretch[];
}

class Scanner {
  readonly #context: EmitContext;
  readonly #op: AnyOp;
  readonly #kind: ScanKind;
  #elements: Register[] = [];
  /** By the least register of each. */
  #groups = new Map<number, Group>();
  /** Whether groups still lie within lanes. */
  #inLane = true;

  constructor(context: EmitContext, op: AnyOp, kind: ScanKind) {
    this.#context = context;
    this.#op = op;
    this.#kind = kind;
  }

  run({ along, axis, digits }: WorkingAxis, elements: readonly Register[]): readonly Register[] {
    this.#elements = this.#withoutPadding(along, axis, elements);
    this.#groups = new Map(
      this.#elements.map((total, register) => [
        register,
        { total, stretches: [{ registers: [register], before: undefined }] },
      ]),
    );
    for (let first = 0; first < digits.length;) {
      const run = registerRun(digits, first);
      const [digit] = digits.slice(first, first + 1);
      if (run.length > 0) this.#mergeRegisters(run);
      else if (digit?.thread !== undefined) this.#mergeThreads(digit.thread);
      first += Math.max(1, run.length);
    }
    for (const { stretches } of this.#groups.values())
      for (const { registers, before } of stretches)
        if (before !== undefined) this.#prepend(before, registers);
    return this.#elements;
  }

  #combine(left: Register, right: Register): Register {
    const { fn, dtype } = this.#kind;
    return combineStep(this.#context, fn, dtype, left, right);
  }

  #prepend(before: Register, registers: readonly number[]): void {
    for (const register of registers) {
      const element = this.#elements[register];
      if (element !== undefined) this.#elements[register] = this.#combine(before, element);
    }
  }

  /** From the end, padding comes before the elements. */
  #withoutPadding(along: Along, axis: number, elements: readonly Register[]): Register[] {
    const { fn, dtype, reverse } = this.#kind;
    if (!reverse) return [...elements];
    const places = new TilePlaces(this.#context, along.expansion);
    const { code } = this.#context;
    const neutral = neutralElement(fn, dtype);
    return elements.map((element, register) => {
      const inside = places.inside(register, [axis]);
      const type = element.type === "b64" ? "b64" : "b32";
      if (inside === true) return element;
      if (inside === false) return code.make(type, `mov.${type}`, neutral);
      return code.make(type, `selp.${type}`, element, neutral, inside);
    });
  }

  /** Groups of one lane that follow each other along the digits. */
  #mergeRegisters(digits: readonly WeighedDigit[]): void {
    const rows = new Map<number, { readonly position: number; readonly group: Group }[]>();
    for (const [register, group] of this.#groups) {
      let position = 0;
      let start = register;
      for (const digit of digits.toReversed()) {
        const value = digitOf(digit, register);
        position = position * digit.radix + value;
        start -= value * digit.stride;
      }
      const members = rows.get(start) ?? [];
      members.push({ position, group });
      rows.set(start, members);
    }
    this.#groups = new Map(
      [...rows].map(([start, members]) => {
        members.sort((left, right) => left.position - right.position);
        if (this.#kind.reverse) members.reverse();
        return [start, this.#mergeRow(members.map(({ group }) => group))];
      }),
    );
  }

  #mergeRow(groups: readonly Group[]): Group {
    const [first, ...others] = groups;
    if (first === undefined) throw new Error("a row of nothing");
    let { total } = first;
    for (const group of others) {
      for (const stretch of group.stretches) {
        if (this.#inLane) this.#prepend(total, stretch.registers);
        else
          stretch.before =
            stretch.before === undefined ? total : this.#combine(total, stretch.before);
      }
      total = this.#combine(total, group.total);
    }
    const stretches = groups.flatMap((group) => group.stretches);
    if (!this.#inLane) return { total, stretches };
    const registers = stretches.flatMap((stretch) => stretch.registers);
    return { total, stretches: [{ registers, before: undefined }] };
  }

  /** Groups of lanes that differ in a bit of the thread index. */
  #mergeThreads(thread: number): void {
    this.#inLane = false;
    const { code, numbers } = this.#context;
    const { fn, dtype, reverse } = this.#kind;
    const neutral = neutralElement(fn, dtype);
    const groups = [...this.#groups.values()];
    const others = this.#partners(
      groups.map(({ total }) => total),
      thread,
    );
    groups.forEach((group, index) => {
      const other = others[index];
      if (other === undefined) throw new Error("a total was lost");
      const type = other.type === "b64" ? "b64" : "b32";
      const [set, clear] = reverse ? [neutral, other] : [other, neutral];
      const before = code.make(type, `selp.${type}`, set, clear, numbers.bit(thread));
      for (const stretch of group.stretches)
        stretch.before =
          stretch.before === undefined ? before : this.#combine(before, stretch.before);
      group.total = this.#combine(group.total, other);
    });
  }

  #partners(totals: readonly Register[], thread: number): readonly Register[] {
    const context = this.#context;
    if (thread < laneBits)
      return totals.map((total) => shuffleWord(context, total, "bfly", integer(1 << thread)));
    return tradeValues(context, this.#op, totals, [1 << thread])[0] ?? [];
  }
}

/** Register digits from here on. */
function registerRun(digits: readonly WeighedDigit[], first: number): readonly WeighedDigit[] {
  const rest = digits.slice(first);
  const end = rest.findIndex(({ thread }) => thread !== undefined);
  return end < 0 ? rest : rest.slice(0, end);
}
