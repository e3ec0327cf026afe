/**
 * Reductions as loops: the innermost axis of the source goes by four, whether it is reduced or stays.
 *
 *   [rows, columns] over columns    a row: four sums side by side, put together at its end
 *   [rows, columns] over rows       four columns: a sum each, down the rows
 *
 * Floats of 16 bits are summed in f32 and rounded once. The order of a sum is not that of the simulator.
 */
import type { ReduceFunction } from "../../formats/arithmetic/functions.ts";
import { f32 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { Op, Value } from "../../ir/node.ts";
import { i32, op as operation, read, shuffleLanes, splat, vector } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import { binaryRule, castRule } from "./arithmetic.ts";
import type { LaneRule } from "./arithmetic.ts";
import { Elements, rowStrides } from "./elements.ts";
import type { Coordinate } from "./position.ts";
import { computesInSingle } from "./floats.ts";
import type { HeldTile } from "./held.ts";
import {
  constantScalar,
  laneCount,
  laneScalar,
  selectLanes,
  slotBytes,
  splatLanes,
  storeLanes,
  storeScalar,
} from "./lanes.ts";
import type { Lanes } from "./lanes.ts";
import { identityOf, stepFunctions } from "./identities.ts";
import { shapeOf } from "./lazy.ts";
import { operandValues } from "../../ir/traverse.ts";
import { axisGroups, groupExtent, innermost, joins, positionOf, rounds } from "./loops-of-tiles.ts";
import type { Lowering } from "./lowering.ts";

/** The format in which a reduction takes its steps. */
function stepDtype(dtype: DType): DType {
  return computesInSingle(dtype) ? f32 : dtype;
}

/** The step of a reduction on lanes, where vectors have it. */
export function reduceRule(fn: ReduceFunction, dtype: DType): LaneRule | undefined {
  return binaryRule(stepFunctions[fn], stepDtype(dtype));
}

/** All lanes put together, in the first one. */
export function acrossLanes(
  b: FunctionBuilder,
  lanes: Lanes,
  combine: (left: Lanes, right: Lanes) => Lanes,
): Lanes {
  const keep = (parts: readonly Expression[]): Lanes => ({
    dtype: lanes.dtype,
    parts: parts.map((part) => b.keep(part)),
  });
  const [low, high] = lanes.parts;
  if (low === undefined) throw new Error("lanes without a vector");
  if (high !== undefined) {
    const halves = combine(lanes, keep([high, low]));
    return combine(halves, keep(halves.parts.map((part) => shuffleLanes(part, part, [1, 0]))));
  }
  const pairs = combine(lanes, keep([shuffleLanes(low, low, [2, 3, 0, 1])]));
  return combine(pairs, keep(pairs.parts.map((part) => shuffleLanes(part, part, [1, 0, 3, 2]))));
}

interface Plan {
  readonly lowering: Lowering;
  readonly source: Value;
  readonly shape: readonly number[];
  /** Groups of axes that stay, and that are reduced. */
  readonly kept: readonly (readonly number[])[];
  readonly reduced: readonly (readonly number[])[];
  readonly target: HeldTile;
  readonly fn: ReduceFunction;
  readonly rule: LaneRule;
}

/** Emits a reduction into the target, a tile of the axes that stay. */
export function emitReduce(
  lowering: Lowering,
  { operands, attributes }: Op<"reduce">,
  target: HeldTile,
  rule: LaneRule,
): void {
  const { source } = operands;
  const { fn, axes } = attributes;
  const shape = shapeOf(source);
  const isReduced = (axis: number): boolean => axes.includes(axis);
  const groups = axisGroups(
    shape,
    (outer, inner) =>
      isReduced(outer) === isReduced(inner) && joins(lowering, source, outer, inner),
  );
  const last = groups.at(-1);
  const kept = groups.filter((group) => !isReduced(group[0] ?? 0));
  const reduced = groups.filter((group) => isReduced(group[0] ?? 0));
  const plan: Plan = { lowering, source, shape, kept, reduced, target, fn, rule };
  const count = shape.reduce((product, extent) => product * extent, 1);
  const innermostStays = last !== undefined && kept.includes(last);
  lowering.root("reduce", count, (b) => {
    if (innermostStays) downColumns(plan, b);
    else alongRows(plan, b);
  });
}

/** Strides of the groups that stay, in the target. */
function targetStrides({ shape, kept, reduced }: Plan): readonly number[] {
  const gone = new Set(reduced.flat());
  const stays = shape.map((extent, axis) => (gone.has(axis) ? 1 : extent));
  const strides = rowStrides(stays);
  return kept.map((group) => strides[group.at(-1) ?? 0] ?? 1);
}

function loopOver(
  b: FunctionBuilder,
  shape: readonly number[],
  groups: readonly (readonly number[])[],
  body: (at: readonly Expression[]) => void,
): void {
  const at: Expression[] = [];
  const nest = (depth: number): void => {
    const group = groups[depth];
    if (group === undefined) return body(at);
    rounds(b, groupExtent(shape, group), 1, (index) => {
      at.push(index);
      nest(depth + 1);
      at.pop();
    });
  };
  nest(0);
}

function targetAddress(plan: Plan, b: FunctionBuilder, at: readonly Expression[]): Expression {
  const { target } = plan;
  const strides = targetStrides(plan);
  let offset: Expression = i32.of(0);
  at.forEach((index, place) => {
    const bytes = (strides[place] ?? 1) * slotBytes(target.dtype);
    offset = i32.add(offset, i32.mul(index, i32.of(bytes)));
  });
  return b.keep(i32.add(target.base, offset), "result");
}

/** The source's elements in the format of the steps. */
function widened(lanes: Lanes, b: FunctionBuilder): Lanes {
  const to = stepDtype(lanes.dtype);
  const rule = castRule(lanes.dtype, to);
  return rule === undefined ? lanes : rule({ builder: b, relaxed: false }, lanes);
}

function narrowed(lanes: Lanes, dtype: DType, b: FunctionBuilder): Lanes {
  const rule = castRule(lanes.dtype, dtype);
  return rule === undefined ? lanes : rule({ builder: b, relaxed: false }, lanes);
}

/** An accumulator: locals that begin with the identity. */
class Accumulator {
  readonly #b: FunctionBuilder;
  readonly #rule: LaneRule;
  readonly #locals;
  readonly dtype: DType;

  constructor(b: FunctionBuilder, { fn, rule, target }: Plan) {
    this.#b = b;
    this.#rule = rule;
    this.dtype = stepDtype(target.dtype);
    const start = splatLanes(b, this.dtype, constantScalar(this.dtype, identityOf(fn, this.dtype)));
    this.#locals = start.parts.map((part) => b.variable(part, "acc"));
  }

  get lanes(): Lanes {
    return { dtype: this.dtype, parts: this.#locals.map(read) };
  }

  add(b: FunctionBuilder, lanes: Lanes): void {
    const next = this.#rule({ builder: b, relaxed: false }, this.lanes, lanes);
    this.#locals.forEach((local, half) => {
      const part = next.parts[half];
      if (part !== undefined) b.set(local, part);
    });
  }

  combine(left: Lanes, right: Lanes): Lanes {
    return this.#rule({ builder: this.#b, relaxed: false }, left, right);
  }
}

/** Steps of a loop body that leave registers for several sums. */
const fewSteps = 12;

/** Ops of the loop that computes a value, counted to a limit. */
function stepsOf(lowering: Lowering, value: Value, limit: number): number {
  const held = lowering.held(value);
  if (held.kind !== "lazy") return 0;
  const { op } = held;
  let steps = op.kind === "unary" ? weightOf(op) : 1;
  for (const operand of operandValues(op)) {
    if (steps > limit) break;
    if (lowering.values.has(operand)) steps += stepsOf(lowering, operand, limit - steps);
  }
  return steps;
}

/** Functions that are polynomials are many steps. */
function weightOf({ attributes: { fn } }: Op<"unary">): number {
  return fn === "neg" || fn === "abs" || fn === "sqrt" ? 1 : fewSteps;
}

/** Rows whose elements take few steps are summed in four vectors at once, which hides the time of a sum; others in two. */
function sumsAtOnce({ lowering, source }: Plan, extent: number): number {
  if (extent < 64) return 1;
  const several = stepsOf(lowering, source, fewSteps) < fewSteps ? 4 : 2;
  return extent % (laneCount * several) === 0 ? several : 1;
}

/** Coordinates that stay the same in the innermost loop. */
function uniform(list: readonly Expression[]): readonly Coordinate[] {
  return list.map((at) => ({ at, vector: false, inner: false }));
}

/** Lanes behind the last element of a row change nothing. */
function cutBehind(
  elements: Elements,
  { fn }: Plan,
  lanes: Lanes,
  { at, inner }: Coordinate,
): Lanes {
  const b = inner ? elements.body : elements.prologue;
  const identity = constantScalar(lanes.dtype, identityOf(fn, lanes.dtype));
  const rest = splatLanes(elements.prologue, lanes.dtype, identity);
  const steps = vector("i32x4", [0, 1, 2, 3]);
  const numbers = operation("i32x4.add", operation("i32x4.splat", at), steps);
  const mask = b.keep(operation("i32x4.lt_s", numbers, splat("i32x4", elements.extent)));
  return selectLanes(b, mask, lanes, rest);
}

function alongRows(plan: Plan, b: FunctionBuilder): void {
  const { lowering, shape, kept, reduced, source, target } = plan;
  const inner = reduced.at(-1);
  const outer = reduced.slice(0, -1);
  const extent = inner === undefined ? 1 : groupExtent(shape, inner);
  const several = sumsAtOnce(plan, extent);
  loopOver(b, shape, kept, (stays) => {
    const sums = Array.from({ length: several }, () => new Accumulator(b, plan));
    const [first] = sums;
    if (first === undefined) return;
    loopOver(b, shape, outer, (goes) => {
      innermost(lowering, b, extent, laneCount * several, (elements, start, isLoop) =>
        sums.forEach((sum, place) => {
          const at = elements.body.keep(i32.add(start, i32.of(laneCount * place)));
          const own: Coordinate = { at, vector: inner !== undefined, inner: isLoop };
          const order = [...kept, ...outer, ...(inner === undefined ? [] : [inner])];
          const position = positionOf(shape, order, [...uniform(stays), ...uniform(goes), own]);
          const builder = elements.builderAt(position);
          const lanes = widened(elements.evaluate(source, position), builder);
          sum.add(
            builder,
            extent % laneCount === 0 ? lanes : cutBehind(elements, plan, lanes, own),
          );
        }),
      );
    });
    const total = sums
      .slice(1)
      .reduce((sum, other) => first.combine(sum, other.lanes), first.lanes);
    const all = acrossLanes(b, total, (left, right) => first.combine(left, right));
    const result = laneScalar(narrowed(all, target.dtype, b), 0);
    storeScalar(b, target.dtype, targetAddress(plan, b, stays), result, target.offset);
  });
}

function downColumns(plan: Plan, b: FunctionBuilder): void {
  const { lowering, shape, kept, reduced, source, target } = plan;
  const columns = kept.at(-1) ?? [];
  const rows = kept.slice(0, -1);
  const extent = groupExtent(shape, columns);
  const inner = reduced.at(-1);
  const outer = reduced.slice(0, -1);
  loopOver(b, shape, rows, (stays) => {
    rounds(b, extent, laneCount, (column) => {
      const sum = new Accumulator(b, plan);
      loopOver(b, shape, outer, (goes) => {
        const prologue = b.fork();
        const round = b.fork();
        const count = inner === undefined ? 1 : groupExtent(shape, inner);
        const index = b.local("i32", "k");
        const elements = new Elements(lowering, prologue, round, extent);
        const order = [...rows, columns, ...outer, ...(inner === undefined ? [] : [inner])];
        const position = positionOf(shape, order, [
          ...uniform(stays),
          { at: column, vector: true, inner: false },
          ...uniform(goes),
          { at: read(index), vector: false, inner: true },
        ]);
        const lanes = widened(elements.evaluate(source, position), round);
        sum.add(round, lanes);
        b.append(prologue.statements);
        b.set(index, i32.of(0));
        b.loop((again) => {
          b.append(round.statements);
          b.set(index, i32.add(read(index), i32.of(1)));
          b.branch(again, operation("i32.lt_u", read(index), i32.of(count)));
        });
      });
      const address = targetAddress(plan, b, [...stays, column]);
      storeLanes(b, address, narrowed(sum.lanes, target.dtype, b), target.offset);
    });
  });
}

export function reduceResult({ attributes, operands }: Op<"reduce">): readonly number[] {
  return shapeOf(operands.source).filter((_, axis) => !attributes.axes.includes(axis));
}
