/**
 * Blocks: the windows on global memory that a pipeline moves, given as a function of a step's indices. The function is
 * traced once aside, to see how the window moves:
 *
 *   | window                                     | moves     | so that an input is copied, an output stored |
 *   |--------------------------------------------|-----------|----------------------------------------------|
 *   | a.at(block(i, 128), block(k, 64))          | each step | in every step                                |
 *   | a.at(block(k.div(2), 64))                  | sometimes | where its start differs from the last one    |
 *   | a.at(block(i, 128))                        | never     | once                                         |
 *
 * `k` is the fastest axis of the steps and `i` the index of the thread block.
 */
import type { DTypeName } from "../../formats/dtype.ts";
import { i32 } from "../../formats/dtype.ts";
import type { AnyOp, Value } from "../../ir/node.ts";
import { windowedBy } from "../../ir/traits.ts";
import { operandValues, regionList, walkOps } from "../../ir/traverse.ts";
import { scalarType, typeText } from "../../ir/types.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { atOwnLines, captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { Ref } from "../ref.ts";
import { Scalar } from "../elementwise.ts";
import { emitOrigin, originOf } from "../trace.ts";
import type { Trace } from "../trace.ts";
import { callBody, describe, origin } from "../traced.ts";
import { all, slice } from "../window.ts";
import type { Axes } from "./step-grid.ts";

/** Gives the window on global memory that belongs to a step. */
export type BlockMap<A, D extends DTypeName = DTypeName> = (axes: A) => Ref<D>;

export type Pace = "each step" | "sometimes" | "never";

/** What is known of a block before its steps are traced. */
export interface BlockPlan {
  readonly name: string;
  readonly map: BlockMap<Axes>;
  readonly pace: Pace;
  readonly dtype: Ref["dtype"];
  readonly shape: readonly number[];
  /** Where the user wrote the window. */
  readonly location: Location;
  /** Whether it depends on the axes around the steps. */
  readonly byTile: boolean;
  /** The starts of the window, in order, that depend on any axis. */
  readonly moving: readonly number[];
}

/** A window, and its starts that depend on the step. */
export interface PlacedBlock {
  readonly window: Ref;
  /** The op that made the window, where the block's function did. */
  readonly maker: AnyOp | undefined;
  readonly starts: readonly Scalar<"i32">[];
}

/** Traces the block's function aside. `inner` are the axes of the steps, fastest last; the window may depend on all. */
export function planBlock(
  trace: Trace,
  name: string,
  map: BlockMap<Axes>,
  { outer, inner }: { readonly outer: readonly string[]; readonly inner: readonly string[] },
  location: Location,
): BlockPlan {
  const names = [...outer, ...inner];
  const label = `the block of ${name}`;
  let window: Ref | undefined;
  const region = trace.region(
    label,
    names.map(() => scalarType(i32)),
    location,
    (parameters) => {
      const axes = parameters.map(
        (value, position) =>
          [names[position] ?? "", new Scalar<"i32">(originOf(value, location))] as const,
      );
      window = requireWindow(
        name,
        atOwnLines(() => callBody(label, location, map, Object.fromEntries(axes))),
        location,
      );
      return [];
    },
    { apart: true },
  );
  if (window === undefined) throw new Error(`${label} was not traced`);
  const starts = startsOf(region.ops, window);
  const onAny = new Dependence(region.ops, region.parameters);
  const onSteps = new Dependence(region.ops, region.parameters.slice(outer.length));
  const onTile = new Dependence(region.ops, region.parameters.slice(0, outer.length));
  const moving = starts.flatMap((start, position) => (onAny.of(start) ? [position] : []));
  const onFastest = new Dependence(region.ops, region.parameters.slice(-1));
  const eachStep = starts.some((start) => (onFastest.slope(start) ?? 0) !== 0);
  const stays = !starts.some((start) => onSteps.of(start));
  return {
    name,
    map,
    pace: stays ? "never" : eachStep ? "each step" : "sometimes",
    dtype: window.dtype,
    shape: window.shape.filter((size) => typeof size === "number"),
    location: window[origin].location,
    byTile: starts.some((start) => onTile.of(start)),
    moving,
  };
}

/** The block's window in a step. */
export function placeBlock(trace: Trace, plan: BlockPlan, axes: Axes): PlacedBlock {
  const before = trace.position;
  const window = atOwnLines(() => plan.map(axes));
  const ops = trace.opsSince(before);
  const starts = startsOf(ops, window);
  const moving = plan.moving.flatMap((position) => {
    const start = starts[position];
    return start === undefined ? [] : [new Scalar<"i32">(originOf(start, plan.location))];
  });
  const maker = ops.find(({ results }) => results[0] === window[origin].value);
  return { window, maker, starts: moving };
}

/**
 * `size` elements of a block's window from `start` on along one axis: a window on what the block is a window on, since a
 * window on a window has bounds of its own, which copies by a tensor map cannot have.
 */
export function partOfBlock(
  { window, maker }: PlacedBlock,
  axis: number,
  start: Scalar<"i32">,
  size: number,
): Ref {
  const location = captureLocation();
  const before = Array.from({ length: axis }, () => all);
  if (maker?.kind !== "slice_ref") return window.at(...before, slice(start, size));
  const { ref, offsets } = maker.operands;
  const { sizes, dropped } = maker.attributes;
  const kept = sizes.flatMap((_, position) => (dropped.includes(position) ? [] : [position]));
  const moved = offsets.map((offset, position) =>
    position === kept[axis]
      ? new Scalar<"i32">(originOf(offset, location)).add(start)[origin].value
      : offset,
  );
  const narrowed = sizes.map((extent, position) => (position === kept[axis] ? size : extent));
  const operands = { ref, offsets: moved };
  return new Ref(emitOrigin("slice_ref", operands, { sizes: narrowed, dropped }, location));
}

function requireWindow(name: string, window: unknown, location: Location): Ref {
  const whole =
    window instanceof Ref &&
    window.space === "gmem" &&
    window.shape.length > 0 &&
    window.shape.every((size) => typeof size === "number");
  if (whole) return window as Ref;
  throw new TilewrightError({
    code: "TW1101",
    message: `the block of ${name} is no window that can be copied`,
    location: window instanceof Ref ? window[origin].location : location,
    expected: "a window on global memory with axes whose sizes are numbers",
    found: window instanceof Ref ? typeText(window[origin].value.type) : describe(window),
  });
}

/** The starts of all windows that lead to `window`, the outermost array's first. */
function startsOf(ops: readonly AnyOp[], window: Ref): readonly Value[] {
  const makers = new Map(ops.flatMap((op) => op.results.map((value) => [value, op] as const)));
  const starts: Value[][] = [];
  let value: Value | undefined = window[origin].value;
  while (value !== undefined) {
    const maker = makers.get(value);
    if (maker === undefined) break;
    const source = windowedBy(maker);
    starts.unshift(operandValues(maker).filter((operand) => operand !== source));
    value = source;
  }
  return starts.flat();
}

/** How values that ops compute depend on some parameters. */
class Dependence {
  readonly #makers: ReadonlyMap<Value, AnyOp>;
  readonly #parameters: readonly Value[];
  readonly #dependent: ReadonlySet<Value>;

  constructor(ops: readonly AnyOp[], parameters: readonly Value[]) {
    this.#makers = new Map(ops.flatMap((op) => op.results.map((value) => [value, op] as const)));
    this.#parameters = parameters;
    const dependent = new Set(parameters);
    for (const op of ops)
      if (valuesWithin(op).some((value) => dependent.has(value)))
        for (const result of op.results) dependent.add(result);
    this.#dependent = dependent;
  }

  of(value: Value): boolean {
    return this.#dependent.has(value);
  }

  /** By how much `value` grows with the only parameter, where that is a number known now. */
  slope(value: Value): number | undefined {
    if (this.#parameters.includes(value)) return 1;
    if (!this.#dependent.has(value)) return 0;
    const maker = this.#makers.get(value);
    if (maker?.kind !== "binary") return undefined;
    const [first, second] = [this.slope(maker.operands.left), this.slope(maker.operands.right)];
    if (first === undefined || second === undefined) return undefined;
    if (maker.attributes.fn === "add") return (first + second) | 0;
    if (maker.attributes.fn === "sub") return (first - second) | 0;
    if (maker.attributes.fn !== "mul") return undefined;
    const factor = this.#constant(maker.operands.right);
    return factor === undefined ? undefined : Math.imul(first, factor);
  }

  #constant(value: Value): number | undefined {
    const maker = this.#makers.get(value);
    if (maker?.kind !== "constant") return undefined;
    return typeof maker.attributes.value === "number" ? maker.attributes.value : undefined;
  }
}

function valuesWithin(op: AnyOp): readonly Value[] {
  const values = [...operandValues(op)];
  for (const region of regionList(op))
    walkOps(region, (inner) => {
      values.push(...operandValues(inner));
    });
  return values;
}
