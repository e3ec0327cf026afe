/**
 * Windows that move with the steps of a pipeline: with every one, with some, back and forth, by numbers of the launch, or not at all, over the ends of
 * arrays, too.
 */
import { i32 } from "../../../src/formats/dtype.ts";
import type { DType } from "../../../src/formats/dtype.ts";
import { slice } from "../../../src/index.ts";
import type { Ref, Scalar } from "../../../src/index.ts";
import { numberOf } from "./control-steps.ts";
import { grainOf, isCopied } from "./copy-steps.ts";
import type { Draft } from "./draft.ts";
import { held, viewOf } from "./held.ts";
import type { View } from "./held.ts";
import { windowOf } from "./memory-steps.ts";
import type { Item } from "./numbers.ts";
import type { Computing, Slot, Tracing, Value } from "./steps.ts";

export type Whole = Scalar<"i32">;

/** Indices of a step, and how many there are of the fastest. */
export interface At<T> {
  readonly i: T;
  readonly k: T;
  readonly count: T | number;
}

/** A number of a step, as it is traced and as it is. */
export interface Start {
  readonly uses: readonly Slot[];
  readonly trace: (at: At<Whole>, read: Tracing["read"]) => Whole | number;
  readonly value: (at: At<number>, read: Computing["read"]) => number;
  /** Whether it never comes back to what it has left, in steps of whole windows; and in which steps it is somewhere for the first time. */
  readonly goesOn: boolean;
  readonly first?: "outer" | "once";
  /** Whether it can be seen that no step has that of the step before. */
  readonly eachStep?: boolean;
}

/** A window of each step: an index where an axis has no size. */
export interface Moving {
  readonly starts: readonly Start[];
  readonly sizes: readonly (number | undefined)[];
}

export function shapeOf({ sizes }: Moving): readonly number[] {
  return sizes.filter((size) => size !== undefined);
}

/** Whether a window can be seen to move with every step. */
export function movesEachStep({ starts }: Moving): boolean {
  return starts.some(({ eachStep }) => eachStep);
}

export function usesOfMoving({ starts }: Moving): readonly Slot[] {
  return starts.flatMap(({ uses }) => uses);
}

function startOf(value: Start["value"], trace: Start["trace"], more: Partial<Start> = {}): Start {
  return { uses: [], trace, value, goesOn: false, ...more };
}

/** How many steps there were before. */
function step({ i, k, count }: At<number>): number {
  return i * Number(count) + k;
}

function tracedStep({ i, k, count }: At<Whole>): Whole {
  return i.mul(count).add(k);
}

/** Starts that follow from the step alone. */
function countedStarts(size: number, base: number): readonly Start[] {
  return [
    startOf(
      (at) => step(at) * size + base,
      (at) => tracedStep(at).mul(size).add(base),
      { goesOn: true, eachStep: true },
    ),
    startOf(
      (at) => Math.trunc(step(at) / 2) * size + base,
      (at) => tracedStep(at).div(2).mul(size).add(base),
      { goesOn: true },
    ),
    startOf(
      ({ i }) => i * size + base,
      ({ i }) => i.mul(size).add(base),
      { goesOn: true, first: "outer" },
    ),
    startOf(
      () => base,
      () => base,
      { goesOn: true, first: "once" },
    ),
    startOf(
      ({ k }) => k * size + base,
      ({ k }) => k.mul(size).add(base),
      { eachStep: true },
    ),
    startOf(
      (at) => (step(at) % 3) * size,
      (at) => tracedStep(at).rem(3).mul(size),
    ),
    startOf(
      (at) => 4 * size - step(at),
      (at) =>
        tracedStep(at)
          .mul(-1)
          .add(4 * size),
      { eachStep: true },
    ),
  ];
}

/** Starts by numbers of the program, too. */
function computedStart(draft: Draft, size: number): Start {
  const starts: readonly (() => Start)[] = [
    () => {
      const slot = draft.indexBelow(5);
      return startOf(
        (at, read) => step(at) * size + Number(read(slot).items[0]),
        (at, read) =>
          tracedStep(at)
            .mul(size)
            .add(numberOf(read(slot))),
        { uses: [slot], goesOn: true, eachStep: true },
      );
    },
    () => {
      const slot = draft.indexBelow(3);
      return startOf(
        (at, read) => step(at) * Number(read(slot).items[0]),
        (at, read) => tracedStep(at).mul(numberOf(read(slot))),
        { uses: [slot] },
      );
    },
    () => {
      const slot = draft.exactly(i32, []);
      return startOf(
        (_, read) => Number(read(slot).items[0]),
        (_, read) => numberOf(read(slot)),
        { uses: [slot], goesOn: true, first: "once" },
      );
    },
  ];
  return draft.random.pick(starts)();
}

/** Where a window of so many elements begins in each step. */
function drawStart(draft: Draft, size: number): Start {
  const { random } = draft;
  if (draft.chance(0.3)) return computedStart(draft, size);
  return random.pick(countedStarts(size, random.pick([0, 0, 0, 1, -2, size])));
}

/** The same, kept among the elements of an axis. */
function clamped(start: Start, extent: number): Start {
  return {
    uses: start.uses,
    goesOn: false,
    value: (at, read) => Math.max(0, Math.min(extent - 1, start.value(at, read))),
    trace: (at, read) => {
      const own = start.trace(at, read);
      return typeof own === "number"
        ? Math.max(0, Math.min(extent - 1, own))
        : own.maximum(0).minimum(extent - 1);
    },
  };
}

export function drawMoving(
  draft: Draft,
  dtype: DType,
  shape: readonly number[],
): Moving | undefined {
  const axes = shape.map((extent, axis) => {
    const isLast = axis === shape.length - 1;
    if (!isLast && draft.chance(0.25))
      return { start: clamped(drawStart(draft, 1), extent), size: undefined };
    const grain = grainOf(dtype);
    const size = isLast
      ? grain * (1 + draft.random.below(2))
      : draft.random.pick([1, 2, 3, 4, ...draft.extents]);
    // Steps shorter than the window lead back into what it has left.
    if (draft.chance(0.2)) return { start: { ...drawStart(draft, 1), goesOn: false }, size };
    return { start: drawStart(draft, size), size };
  });
  const moving = { starts: axes.map(({ start }) => start), sizes: axes.map(({ size }) => size) };
  return isCopied(draft, shapeOf(moving)) ? moving : undefined;
}

export function tracedMoving(
  { starts, sizes }: Moving,
  at: At<Whole>,
  ref: Value,
  read: Tracing["read"],
): Ref {
  const window = starts.map((start, axis) => {
    const [from, size] = [start.trace(at, read), sizes[axis]];
    return size === undefined ? from : slice(from, size);
  });
  return ref.at(...window) as unknown as Ref;
}

export function computedMoving(
  { starts, sizes }: Moving,
  at: At<number>,
  view: View,
  read: Computing["read"],
): View {
  const window = starts.map((start, axis) => {
    const [from, size] = [start.value(at, read), sizes[axis]];
    return { start: from, ...(size !== undefined && { size }) };
  });
  return windowOf(view, window, read);
}

/** Puts a block into memory; every visit does, since the last one wins. */
export function storeItems(
  moving: Moving,
  shape: readonly number[],
  block: readonly Item[],
  at: At<number>,
  memory: Item[],
  read: Computing["read"],
): void {
  const numbers = viewOf(held(i32, shape, (_, position) => BigInt(position)));
  const places = computedMoving(moving, at, numbers, read);
  held(i32, shapeOf(moving), (place, each) => {
    const position = places.get(place);
    if (position !== undefined) memory[Number(position)] = block[each] ?? 0;
    return 0n;
  });
}
