/** Steps that know of axes: other shapes, reductions, scans, sorts, picked and turned elements, products. */
import {
  acceptsArg,
  acceptsReduce,
  acceptsScan,
  acceptsSort,
  reduceFunctions,
  scanFunctions,
} from "../../../src/formats/arithmetic/functions.ts";
import { bool, dtypes, i32, i64 } from "../../../src/formats/dtype.ts";
import type { DType } from "../../../src/formats/dtype.ts";
import {
  concatenate,
  flip,
  histogram,
  reduceWith,
  roll,
  scanWith,
  takeAlong,
  topK,
} from "../../../src/index.ts";
import type { Tile } from "../../../src/index.ts";
import { formats, isFloat, isInteger } from "./draft.ts";
import type { Draft } from "./draft.ts";
import type { StepMaker } from "./element-steps.ts";
import { broadcast, countOf, held, itemAt, linesAlong, transposed } from "./held.ts";
import type { Held } from "./held.ts";
import { binary, cast, order, wrap } from "./numbers.ts";
import type { Item } from "./numbers.ts";
import { called, tileOf } from "./steps.ts";
import type { Slot, Value } from "./steps.ts";

const isTile = ({ shape }: Slot): boolean => shape.length > 0;

/* ---- shapes ---- */

function reshapeStep(draft: Draft): void {
  const source = draft.some(isTile, formats);
  const count = countOf(source.shape);
  const [a = 1, b = 1, c = 1] = draft.extents;
  const targets = [
    [count],
    [count, 1],
    [1, count],
    [a, b],
    [b, a],
    [a, b, c],
    [c, b, a],
    [1, count, 1],
  ];
  for (const factor of [2, 3, 4, 8])
    targets.push([factor, count / factor], [count / factor, factor]);
  const fitting = targets.filter(
    (shape) => countOf(shape) === count && shape.every((extent) => Number.isInteger(extent)),
  );
  const shape = draft.random.pick(fitting);
  draft.give(
    "reshape",
    [source],
    source.dtype,
    shape,
    (value) => value.reshape(shape),
    (value) => ({ ...value, shape }),
  );
}

function transposeStep(draft: Draft): void {
  const source = draft.some(isTile, formats);
  const axes = source.shape.map((_, axis) => axis);
  for (let at = axes.length - 1; at > 0; at--) {
    const other = draft.random.below(at + 1);
    [axes[at], axes[other]] = [axes[other] ?? 0, axes[at] ?? 0];
  }
  draft.give(
    "transpose",
    [source],
    source.dtype,
    axes.map((axis) => source.shape[axis] ?? 1),
    (value) => value.transpose(axes),
    (value) => transposed(value, axes),
  );
}

function broadcastStep(draft: Draft): void {
  const source = draft.some(() => true, formats);
  const shape = source.shape.map((extent) =>
    extent === 1 ? draft.random.pick(draft.extents) : extent,
  );
  const more = draft.chance(0.5) ? [draft.random.pick(draft.extents)] : [];
  const whole = [...more, ...shape];
  if (whole.length === 0 || countOf(whole) > draft.room || source.shape.length === 0) return;
  draft.give(
    "broadcastTo",
    [source],
    source.dtype,
    whole,
    (value) => value.broadcastTo(whole),
    (value) => broadcast(value, whole),
  );
}

function expandStep(draft: Draft): void {
  const source = draft.some(isTile, formats);
  if (source.shape.length > 3) return;
  const axis = draft.random.below(source.shape.length + 1);
  draft.give(
    "expand",
    [source],
    source.dtype,
    source.shape.toSpliced(axis, 0, 1),
    (value) => value.expand({ axis }),
    (value) => ({ ...value, shape: source.shape.toSpliced(axis, 0, 1) }),
  );
}

function sliceStep(draft: Draft): void {
  const source = draft.some(isTile, formats);
  const { random } = draft;
  const starts = source.shape.map((extent) => (draft.chance(0.4) ? 0 : random.below(extent)));
  const sizes = source.shape.map((extent, axis) => {
    const left = extent - (starts[axis] ?? 0);
    return draft.chance(0.4) ? left : 1 + random.below(left);
  });
  draft.give(
    "slice",
    [source],
    source.dtype,
    sizes,
    (value) => value.slice(starts, sizes),
    (value) =>
      held(source.dtype, sizes, (place) =>
        itemAt(
          value,
          place.map((at, axis) => at + (starts[axis] ?? 0)),
        ),
      ),
  );
}

function concatenateStep(draft: Draft): void {
  const first = draft.some(isTile, formats);
  const axis = draft.random.below(first.shape.length);
  const parts = [first];
  for (let more = 1 + draft.random.below(2); more > 0; more--) {
    const other = draft.find(
      ({ dtype, shape }) =>
        dtype === first.dtype &&
        shape.toSpliced(axis, 1).join() === first.shape.toSpliced(axis, 1).join() &&
        shape.length === first.shape.length,
    );
    parts.push(other ?? first);
  }
  const extent = parts.reduce((sum, { shape }) => sum + (shape[axis] ?? 0), 0);
  const shape = first.shape.with(axis, extent);
  if (countOf(shape) > draft.room) return;
  draft.give(
    "concatenate",
    parts,
    first.dtype,
    shape,
    (...values) => concatenate(values.map(tileOf), { axis }),
    (...values) =>
      held(first.dtype, shape, (place) => {
        let at = place[axis] ?? 0;
        const part = values.find((value) => {
          if (at < (value.shape[axis] ?? 0)) return true;
          at -= value.shape[axis] ?? 0;
          return false;
        });
        if (part === undefined) throw new Error("a place is in a part");
        return itemAt(part, place.with(axis, at));
      }),
  );
}

/* ---- reductions ---- */

const reduceMethods: { readonly [fn: string]: string } = { and: "all", or: "any" };

/** All along some axes combined. */
function reduced(
  source: Held,
  axes: readonly number[],
  combine: (left: Item, right: Item) => Item,
): Held {
  const kept = source.shape.map((extent, axis) => (axes.includes(axis) ? 1 : extent));
  let result: Held = source;
  for (const axis of axes) {
    const lines = linesAlong(result, axis);
    result = {
      dtype: source.dtype,
      shape: result.shape.with(axis, 1),
      items: lines.map(({ items }) => items.reduce(combine)),
    };
    // Lines come in the order of the other axes, which is that of a shape with extent 1 here.
  }
  return { ...result, shape: kept };
}

/** What goes into sums and products: of floats only what any order gives the same. */
function summable(draft: Draft, source: Slot, fn: string): Slot {
  if (fn === "sum") return draft.tamed(source, 8);
  return fn === "prod" ? draft.tamed(source, 1) : source;
}

function reduceStep(draft: Draft): void {
  const source = draft.some(
    (slot) => isTile(slot) && reduceFunctions.some((fn) => acceptsReduce(fn, slot.dtype)),
  );
  const fn = draft.random.pick(reduceFunctions.filter((each) => acceptsReduce(each, source.dtype)));
  const from = summable(draft, source, fn);
  const { dtype, shape } = from;
  const all = shape.map((_, axis) => axis);
  const keep = draft.chance(0.4);
  const way = draft.random.below(4);
  const axes = way === 0 ? all : all.filter(() => draft.chance(0.5));
  if (axes.length === 0) axes.push(draft.random.below(shape.length));
  const whole = axes.length === shape.length;
  const isBool = dtype === bool;
  const isBit = fn === "and" || fn === "or" || fn === "xor";
  const result = keep
    ? shape.map((extent, axis) => (axes.includes(axis) ? 1 : extent))
    : shape.filter((_, axis) => !axes.includes(axis));
  const given = draft.chance(0.3) ? axes.map((axis) => axis - shape.length) : axes;
  const combined = (value: Value): Value => {
    const axis = given.length === 1 ? given[0] : given;
    const along = whole && !keep ? [] : [{ axis, keepDims: keep }];
    if (isBool && fn !== "xor") return called(value, reduceMethods[fn] ?? fn, ...along);
    return isBit ? called(value, "reduce", fn, ...along) : called(value, fn, ...along);
  };
  draft.give(
    `reduce ${fn} ${axes.join()}`,
    [from],
    dtype,
    result,
    (value) => combined(value),
    (value) => ({
      ...reduced(value, axes, (a, b) => wide(fn, dtype, a, b)),
      dtype,
      shape: result,
      items: reduced(value, axes, (a, b) => wide(fn, dtype, a, b)).items.map((item) =>
        isFloat(dtype) && (fn === "sum" || fn === "prod") ? cast(dtypes.f64, dtype, item) : item,
      ),
    }),
  );
}

/** Sums of narrow floats are summed wide and rounded at the end. */
function wide(fn: string, dtype: DType, left: Item, right: Item): Item {
  const ordinary = { sum: "add", prod: "mul" }[fn] ?? fn;
  const isSum = fn === "sum" || fn === "prod";
  return binary(ordinary, isFloat(dtype) && isSum ? dtypes.f64 : dtype, left, right);
}

function scanStep(draft: Draft): void {
  const source = draft.some(
    (slot) => isTile(slot) && scanFunctions.some((fn) => acceptsScan(fn, slot.dtype)),
  );
  const fn = draft.random.pick(scanFunctions.filter((each) => acceptsScan(each, source.dtype)));
  const from = summable(draft, source, fn);
  const { dtype, shape } = from;
  const axis = draft.random.below(shape.length);
  const reverse = draft.chance(0.4);
  draft.give(
    `scan ${fn} ${axis}`,
    [from],
    dtype,
    shape,
    (value) => called(value, `cum${fn}`, { axis, reverse }),
    (value) => {
      const lines = linesAlong(value, axis);
      const made = lines.map(({ items }) => {
        const inOrder = reverse ? items.toReversed() : items;
        let sum: Item | undefined;
        const running = inOrder.map((item) => {
          sum = sum === undefined ? item : wide(fn, dtype, sum, item);
          return isFloat(dtype) ? cast(dtypes.f64, dtype, sum) : sum;
        });
        return reverse ? running.toReversed() : running;
      });
      return fromLines(value, axis, made);
    },
  );
}

/** A tile whose lines along an axis are given, of the other axes in their order. */
function fromLines(like: Held, axis: number, lines: readonly (readonly Item[])[]): Held {
  const extent = lines[0]?.length ?? 1;
  const shape = like.shape.with(axis, extent);
  const others = shape.toSpliced(axis, 1);
  return held(like.dtype, shape, (place) => {
    const other = place.toSpliced(axis, 1);
    const line = others.reduce((sum, each, at) => sum * each + (other[at] ?? 0), 0);
    const item = lines[line]?.[place[axis] ?? 0];
    if (item === undefined) throw new Error("a line has an element for each place");
    return item;
  });
}

function argStep(draft: Draft): void {
  const source = draft.some((slot) => slot.shape.length > 1 && acceptsArg("argmin", slot.dtype));
  if (source.shape.length < 2) return;
  const fn = draft.chance(0.5) ? "argmin" : "argmax";
  const axis = draft.random.below(source.shape.length);
  draft.give(
    fn,
    [source],
    i32,
    source.shape.toSpliced(axis, 1),
    (value) => called(value, fn, { axis }),
    (value) => {
      const lines = linesAlong(value, axis);
      const items = lines.map(({ items: line }) => {
        const nan = line.findIndex((item) => typeof item === "number" && Number.isNaN(item));
        if (nan >= 0) return BigInt(nan);
        let best = 0;
        line.forEach((item, at) => {
          const [other = 0] = [line[best]];
          if (fn === "argmin" ? item < other : item > other) best = at;
        });
        return BigInt(best);
      });
      return { dtype: i32, shape: source.shape.toSpliced(axis, 1), items };
    },
  );
}

/* ---- order ---- */

function ranking(line: readonly Item[], descending: boolean): readonly number[] {
  return line
    .map((_, at) => at)
    .toSorted((a, b) => {
      const found = order(line[a] ?? 0, line[b] ?? 0);
      return (descending ? -found : found) || a - b;
    });
}

function sortStep(draft: Draft): void {
  const keys = draft.some((slot) => isTile(slot) && acceptsSort(slot.dtype));
  const axis = draft.random.below(keys.shape.length);
  const descending = draft.chance(0.5);
  const payloads = Array.from({ length: draft.random.below(3) }, () =>
    draft.exactly(draft.random.pick(formats), keys.shape),
  );
  const gives = [keys, ...payloads].map(({ dtype, shape }) => draft.slot(dtype, shape));
  draft.add({
    name: `sort ${axis}`,
    uses: [keys, ...payloads],
    gives,
    trace: ({ read }) => {
      const own = tileOf(read(keys));
      const others = payloads.map((slot) => tileOf(read(slot)));
      return others.length === 0
        ? [own.sort({ axis, descending })]
        : own.sortWith(others, { axis, descending });
    },
    compute: ({ read }) => {
      const ranks = linesAlong(read(keys), axis).map(({ items }) => ranking(items, descending));
      return [keys, ...payloads].map((slot) => {
        const lines = linesAlong(read(slot), axis).map(({ items }, at) =>
          (ranks[at] ?? []).map((place) => items[place] ?? 0),
        );
        return fromLines(read(slot), axis, lines);
      });
    },
  });
}

function topStep(draft: Draft): void {
  const source = draft.some((slot) => isTile(slot) && acceptsSort(slot.dtype));
  const axis = draft.random.below(source.shape.length);
  const count = 1 + draft.random.below(source.shape[axis] ?? 1);
  const least = draft.chance(0.5);
  const shape = source.shape.with(axis, count);
  draft.add({
    name: `topK ${count}`,
    uses: [source],
    gives: [draft.slot(source.dtype, shape), draft.slot(i32, shape)],
    trace: ({ read }) => topK(tileOf(read(source)), count, { axis, largest: !least }),
    compute: ({ read }) => {
      const all = read(source);
      const lines = linesAlong(all, axis).map(({ items }) => items);
      const ranks = lines.map((items) => ranking(items, !least).slice(0, count));
      const keys = lines.map((items, at) => (ranks[at] ?? []).map((place) => items[place] ?? 0));
      const places = ranks.map((rank) => rank.map((place) => BigInt(place)));
      return [
        fromLines(all, axis, keys),
        { ...fromLines({ ...all, dtype: i32 }, axis, places), dtype: i32 },
      ];
    },
  });
}

function takeStep(draft: Draft): void {
  const source = draft.some(isTile, formats);
  const axis = draft.random.below(source.shape.length);
  const extent = source.shape[axis] ?? 1;
  const shape = source.shape.map((each, at) =>
    at === axis ? draft.random.pick(draft.extents) : each,
  );
  if (countOf(shape) > draft.room) return;
  const indices = draft.indicesBelow(shape, extent, draft.chance(0.5) ? i32 : i64);
  draft.give(
    "takeAlong",
    [source, indices],
    source.dtype,
    shape,
    (value, at) => takeAlong(tileOf(value), tileOf(at) as never, { axis }),
    (value, at) =>
      held(source.dtype, shape, (place) =>
        itemAt(value, place.with(axis, Number(itemAt(at, place)))),
      ),
  );
}

function turnStep(draft: Draft): void {
  const source = draft.some(isTile, formats);
  const axis = draft.random.below(source.shape.length);
  const extent = source.shape[axis] ?? 1;
  const by = draft.random.below(4 * extent) - 2 * extent;
  const flips = draft.chance(0.5);
  draft.give(
    flips ? "flip" : `roll ${by}`,
    [source],
    source.dtype,
    source.shape,
    (value) => (flips ? flip(tileOf(value), { axis }) : roll(tileOf(value), by, { axis })),
    (value) =>
      held(source.dtype, source.shape, (place) => {
        const at = place[axis] ?? 0;
        const from = flips ? extent - 1 - at : (((at - by) % extent) + extent) % extent;
        return itemAt(value, place.with(axis, from));
      }),
  );
}

function histogramStep(draft: Draft): void {
  const dtype = draft.chance(0.5) ? i32 : i64;
  const shape = draft.shape();
  const bins = 1 + draft.random.below(20);
  const values = draft.exactly(dtype, shape);
  draft.give(
    "histogram",
    [values],
    i32,
    [bins],
    (value) => {
      const where = tileOf(value.ge(0).and(value.lt(bins))) as never;
      return histogram(tileOf(value) as never, bins, { where });
    },
    (value) =>
      held(i32, [bins], (_, bin) =>
        BigInt(value.items.filter((item) => item === BigInt(bin)).length),
      ),
  );
}

/* ---- combiners of one's own ---- */

type Pair = readonly [Tile, Tile];

function combineStep(draft: Draft): void {
  const source = draft.some((slot) => isTile(slot) && isInteger(slot.dtype));
  const { dtype, shape } = source;
  const other = draft.exactly(dtype, shape);
  const axis = draft.random.below(shape.length);
  const reverse = draft.chance(0.5);
  const scans = draft.chance(0.5) || shape.length === 1;
  const result = scans ? shape : shape.toSpliced(axis, 1);
  const identity = dtype.bits === 64 ? [1n, 0n] : [1, 0];
  draft.add({
    name: scans ? "scanWith" : "reduceWith",
    uses: [source, other],
    gives: [draft.slot(dtype, result), draft.slot(dtype, result)],
    trace: ({ read }) => {
      const combine = (left: Pair, right: Pair): Pair => {
        const [a0, b0, a1, b1] = [...left, ...right];
        return [a0.mul(a1 as never), b0.mul(a1 as never).add(b1 as never)];
      };
      const tiles: Pair = [tileOf(read(source)), tileOf(read(other))];
      const options = { axis, identity: identity as never };
      return scans
        ? scanWith<Pair>(tiles, combine, { ...options, reverse })
        : reduceWith<Pair>(tiles, combine, options);
    },
    compute: ({ read }) => {
      const ofOther = linesAlong(read(other), axis);
      const made = linesAlong(read(source), axis).map(({ items }, line) => {
        const others = ofOther[line]?.items ?? [];
        const pairs = items.map((item, at) => [item as bigint, others[at] as bigint] as const);
        const inOrder = scans && reverse ? pairs.toReversed() : pairs;
        let before: readonly [bigint, bigint] | undefined;
        const running = inOrder.map(([a, b]) => {
          before = before
            ? [wrap(dtype, before[0] * a), wrap(dtype, wrap(dtype, before[1] * a) + b)]
            : [a, b];
          return before;
        });
        return scans && reverse ? running.toReversed() : running;
      });
      return [0, 1].map((which) => {
        const lines = made.map((pairs) => pairs.map((pair) => pair[which] ?? 0n));
        if (scans) return fromLines(read(source), axis, lines);
        return { dtype, shape: result, items: lines.map((line) => line.at(-1) ?? 0n) };
      });
    },
  });
}

/** Those that need no shared memory of the whole thread. */
export const warpTileSteps: readonly StepMaker[] = [
  ...[reshapeStep, transposeStep, broadcastStep, expandStep, sliceStep, concatenateStep],
  ...[reduceStep, reduceStep, reduceStep, scanStep, scanStep, argStep, sortStep, topStep],
  combineStep,
];

export const tileSteps: readonly StepMaker[] = [
  ...warpTileSteps,
  ...[takeStep, turnStep, histogramStep],
];
