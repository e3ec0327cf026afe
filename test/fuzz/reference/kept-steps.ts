/**
 * Memory that is changed several times before it is read: stores, atomic updates and scatters through windows of windows of views, in global memory,
 * where windows overhang, and in shared memory, where they may not. What an update finds is a result, too.
 */
import { atomicFormats } from "../../../src/ir/infer/memory.ts";
import { i32, i64 } from "../../../src/formats/dtype.ts";
import type { DType } from "../../../src/formats/dtype.ts";
import { iota, scoped, smem } from "../../../src/index.ts";
import { formats, isFloat } from "./draft.ts";
import type { Draft } from "./draft.ts";
import { broadcast, countOf, held, joined, viewOf } from "./held.ts";
import type { Held, View } from "./held.ts";
import {
  drawMask,
  drawView,
  drawWindow,
  loaded,
  options,
  slotsOf,
  tracedWindow,
  windowOf,
} from "./memory-steps.ts";
import type { Along, Masking, Seen } from "./memory-steps.ts";
import { binary } from "./numbers.ts";
import type { Item } from "./numbers.ts";
import { tileOf, valueOf } from "./steps.ts";
import type { Computing, Slot, TracedValue, Tracing, Value } from "./steps.ts";

/** A part of the memory: a view of it, and windows of that, each cut from the one before. */
interface Part {
  readonly seen: Seen;
  readonly windows: readonly (readonly Along[])[];
  readonly shape: readonly number[];
}

function drawPart(draft: Draft, shape: readonly number[], overhangs: boolean): Part {
  const seen = drawView(draft, shape, true);
  const windows: (readonly Along[])[] = [];
  let inner = seen.shape;
  for (let left = draft.random.pick([1, 1, 2]); left > 0; left--) {
    const drawn = drawWindow(draft, inner, overhangs);
    // An index must be in the array as well as in the window, which may overhang.
    const isInner = overhangs && windows.length > 0;
    const window = isInner ? drawn.map((along) => ({ size: 1, ...along })) : drawn;
    windows.push(window);
    inner = window.flatMap(({ size }) => (size === undefined ? [] : [size]));
  }
  return { seen, windows, shape: inner };
}

function usesOfPart({ windows }: Part): readonly Slot[] {
  return windows.flatMap(slotsOf);
}

function tracedPart({ seen, windows }: Part, memory: Value, read: Tracing["read"]): Value {
  return windows.reduce((ref, window) => ref.at(...tracedWindow(window, read)), seen.trace(memory));
}

/** A window without what lies beside it in what it was cut from. */
function inItself(view: View): View {
  const { shape } = view;
  const isInside = (place: readonly number[]): boolean =>
    place.every((at, axis) => at >= 0 && at < (shape[axis] ?? 0));
  return { ...view, get: (place) => (isInside(place) ? view.get(place) : undefined) };
}

function computedPart({ seen, windows }: Part, view: View, read: Computing["read"]): View {
  return windows.reduce((cut, window) => inItself(windowOf(cut, window, read)), seen.view(view));
}

/** What is done to the memory: it changes items, and gives results. */
interface Change {
  readonly uses: readonly Slot[];
  readonly gives: readonly Slot[];
  readonly trace: (memory: Value, tracing: Tracing) => readonly TracedValue[];
  readonly compute: (memory: Item[], computing: Computing) => readonly Held[];
}

interface Setting {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly overhangs: boolean;
}

/** The positions in memory of the elements of a part; undefined where there is none. */
function positionsOf(
  part: Part,
  { shape }: Setting,
  read: Computing["read"],
): readonly (number | undefined)[] {
  const numbers = viewOf(held(i32, shape, (_, position) => BigInt(position)));
  const view = computedPart(part, numbers, read);
  const found: (number | undefined)[] = [];
  held(i32, part.shape, (place) => {
    const item = view.get(place);
    found.push(item === undefined ? undefined : Number(item));
    return 0n;
  });
  return found;
}

function maskItems(masking: Masking, shape: readonly number[], read: Computing["read"]) {
  const { mask } = masking;
  return mask && broadcast(read(mask), shape).items;
}

function storeChange(draft: Draft, setting: Setting): Change | undefined {
  const { dtype } = setting;
  const part = drawPart(draft, setting.shape, setting.overhangs);
  const value = draft.partner(dtype, part.shape);
  if (joined(value.shape, part.shape)?.join() !== part.shape.join()) return undefined;
  const masking = drawMask(draft, dtype, part.shape);
  const { mask } = masking;
  return {
    uses: [value, ...usesOfPart(part), ...(mask === undefined ? [] : [mask])],
    gives: [],
    trace(memory, { read }) {
      const where = mask === undefined ? {} : { where: read(mask) };
      tracedPart(part, memory, read).store(read(value), where);
      return [];
    },
    compute(items, { read }) {
      const given = broadcast(read(value), part.shape).items;
      const where = maskItems(masking, part.shape, read);
      positionsOf(part, setting, read).forEach((position, at) => {
        if (position !== undefined && where?.[at] !== false) items[position] = given[at] ?? 0;
      });
      return [];
    },
  };
}

const functions = ["add", "min", "max", "and", "or", "xor", "exchange"] as const;

/** An update of a part, each element once, whose old elements are a result. */
function updateChange(draft: Draft, setting: Setting): Change | undefined {
  const { dtype } = setting;
  const fns = functions.filter((fn) => atomicFormats[fn].includes(dtype.name));
  if (fns.length === 0) return undefined;
  const fn = draft.random.pick(fns);
  const part = drawPart(draft, setting.shape, setting.overhangs);
  if (part.shape.length === 0) return undefined;
  const drawn = draft.exactly(dtype, part.shape);
  const value = isFloat(dtype) ? draft.tamed(drawn, 8) : drawn;
  const { mask } = drawMask(draft, dtype, part.shape);
  const old = draft.slot(dtype, part.shape);
  return {
    uses: [value, ...usesOfPart(part), ...(mask === undefined ? [] : [mask])],
    gives: [old],
    trace(memory, { read }) {
      const where = mask === undefined ? {} : { where: read(mask) };
      return [tileOf(tracedPart(part, memory, read).atomic(fn, read(value), where))];
    },
    compute(items, { read }) {
      const given = read(value).items;
      const where = maskItems({ mask }, part.shape, read);
      const positions = positionsOf(part, setting, read);
      const before = held(dtype, part.shape, (_, at) => {
        const position = positions[at];
        if (position === undefined || where?.[at] === false) return isFloat(dtype) ? 0 : 0n;
        const [own, other] = [items[position] ?? 0, given[at] ?? 0];
        items[position] = fn === "exchange" ? other : binary(fn, dtype, own, other);
        return own;
      });
      return [before];
    },
  };
}

/** An exchange where elements are what is expected of them. */
function exchangeChange(draft: Draft, setting: Setting): Change | undefined {
  const { dtype } = setting;
  if (!atomicFormats.compare_exchange.includes(dtype.name)) return undefined;
  const part = drawPart(draft, setting.shape, setting.overhangs);
  if (part.shape.length === 0) return undefined;
  const [expected, value] = [draft.exactly(dtype, part.shape), draft.exactly(dtype, part.shape)];
  const old = draft.slot(dtype, part.shape);
  return {
    uses: [expected, value, ...usesOfPart(part)],
    gives: [old],
    trace: (memory, { read }) => [
      tileOf(tracedPart(part, memory, read).compareExchange(read(expected), read(value))),
    ],
    compute(items, { read }) {
      const [wanted, given] = [read(expected).items, read(value).items];
      const positions = positionsOf(part, setting, read);
      const before = held(dtype, part.shape, (_, at) => {
        const position = positions[at];
        if (position === undefined) return isFloat(dtype) ? 0 : 0n;
        const own = items[position] ?? 0;
        // By bits: random programs make one NaN alone.
        if (Object.is(own, wanted[at])) items[position] = given[at] ?? 0;
        return own;
      });
      return [before];
    },
  };
}

/** Rows that are stored in another order, some of them left out. */
function scatterChange(draft: Draft, { dtype, shape }: Setting): Change | undefined {
  const [rows = 1, ...others] = shape;
  const turn = draft.random.below(rows);
  const flips = draft.chance(0.5);
  const index = draft.chance(0.5) ? i32 : i64;
  const value = draft.exactly(dtype, shape);
  const { mask } = drawMask(draft, dtype, shape);
  const placeOf = (row: number): number => ((flips ? rows - 1 - row : row) + turn) % rows;
  return {
    uses: [value, ...(mask === undefined ? [] : [mask])],
    gives: [],
    trace(memory, { read }) {
      const own = iota(i32, [rows], { axis: 0 });
      const turned = flips ? own.neg().add(rows - 1) : own;
      const places = turned.add(turn).rem(rows).cast(index);
      memory.at(places).store(read(value), mask === undefined ? {} : { where: read(mask) });
      return [];
    },
    compute(items, { read }) {
      const where = maskItems({ mask }, shape, read);
      const width = countOf(others);
      read(value).items.forEach((item, at) => {
        if (where?.[at] === false) return;
        items[placeOf(Math.floor(at / width)) * width + (at % width)] = item;
      });
      return [];
    },
  };
}

function loadChange(draft: Draft, setting: Setting): Change | undefined {
  const { dtype, shape } = setting;
  const part = drawPart(draft, shape, setting.overhangs);
  if (part.shape.length === 0) return undefined;
  const masking = drawMask(draft, dtype, part.shape);
  const { mask } = masking;
  return {
    uses: [...usesOfPart(part), ...(mask === undefined ? [] : [mask])],
    gives: [draft.slot(dtype, part.shape)],
    trace: (memory, { read }) => [
      tileOf(tracedPart(part, memory, read).load(options(masking, mask && read(mask)))),
    ],
    compute: (items, { read }) => [
      loaded(
        computedPart(part, viewOf({ dtype, shape, items }), read),
        masking,
        mask && read(mask),
      ),
    ],
  };
}

const makers = [
  storeChange,
  storeChange,
  updateChange,
  updateChange,
  exchangeChange,
  scatterChange,
  loadChange,
];

export function keptStep(draft: Draft): void {
  if (draft.inWarps) return;
  const source = draft.some(({ shape }) => shape.length > 0, formats);
  const { dtype, shape } = source;
  // Threads share bytes of 4-bit elements where rows are odd.
  const isGlobal = draft.chance(0.6) && (dtype.bits >= 8 || countOf(shape) % 2 === 0);
  const setting = { dtype, shape, overhangs: isGlobal };
  const changes = Array.from({ length: 1 + draft.random.below(4) }, () =>
    draft.random.pick(makers)(draft, setting),
  ).filter((change) => change !== undefined);
  const whole = draft.slot(dtype, shape);
  const name = `kept${draft.scratch.size}`;
  if (isGlobal) draft.scratch.set(name, { dtype, shape });
  draft.add({
    name: `kept in ${isGlobal ? "global" : "shared"} memory, ${dtype.name} [${shape.join()}]`,
    uses: [source, ...changes.flatMap(({ uses }) => uses)],
    gives: [...changes.flatMap(({ gives }) => gives), whole],
    trace(tracing) {
      const work = (memory: Value): TracedValue[] => {
        memory.store(tracing.read(source));
        const results = changes.flatMap((change) => change.trace(memory, tracing));
        return [...results, tileOf(memory.load())];
      };
      if (isGlobal) return work(tracing.array(name));
      return scoped({ memory: smem(dtype, shape) }, ({ memory }) => work(valueOf(memory)));
    },
    compute(computing) {
      const items = [...computing.read(source).items];
      const results = changes.flatMap((change) => change.compute(items, computing));
      return [...results, { dtype, shape, items }];
    },
  });
}
