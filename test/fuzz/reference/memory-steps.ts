/** Steps through memory: windows of arrays that reach over their ends, views, masks, picked elements, shared memory and atomic updates. */
import { dtypes, i32, i64 } from "../../../src/formats/dtype.ts";
import type { DType } from "../../../src/formats/dtype.ts";
import { all, iota, scoped, slice, smem } from "../../../src/index.ts";
import type { Lying } from "../strides.ts";
import { formats } from "./draft.ts";
import type { Draft } from "./draft.ts";
import type { StepMaker } from "./element-steps.ts";
import {
  broadcast,
  countOf,
  held,
  itemAt,
  joined,
  reshapedView,
  transposedView,
  viewOf,
} from "./held.ts";
import type { Held, View } from "./held.ts";
import { binary } from "./numbers.ts";
import type { Item } from "./numbers.ts";
import { tileOf, valueOf } from "./steps.ts";
import type { Slot, Value } from "./steps.ts";

/** An array that the program reads. */
export interface Source {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Whether the first extent is only known at launch. */
  readonly isLaunched: boolean;
  /** Row by row unless given. */
  readonly lying?: Lying | undefined;
}

/** One axis of a window: where it starts and maybe ends, by a number or a value, and how many elements it has; an index has none. */
export interface Along {
  readonly start: number | Slot;
  readonly size?: number;
  readonly end?: number | Slot;
}

/** All bits zero, which is the least number where a format has no zero. */
function zeroOf({ kind, name }: DType): Item {
  if (kind === "bool") return false;
  if (kind !== "float") return 0n;
  return name === "f8e8m0fnu" ? 2 ** -127 : 0;
}

function numberOf(value: number | Slot, read: (slot: Slot) => Held): number {
  return typeof value === "number" ? value : Number(read(value).items[0]);
}

/** The window of a view; elements beyond an end are not there. */
export function windowOf(view: View, window: readonly Along[], read: (slot: Slot) => Held): View {
  const kept = window.filter(({ size }) => size !== undefined);
  return {
    dtype: view.dtype,
    shape: kept.map(({ size = 1 }) => size),
    get: (place) => {
      let next = 0;
      let isPast = false;
      const from = window.map((along) => {
        const { start, size, end } = along;
        const at = numberOf(start, read) + (size === undefined ? 0 : (place[next++] ?? 0));
        if (end !== undefined && at >= numberOf(end, read)) isPast = true;
        return at;
      });
      return isPast ? undefined : view.get(from);
    },
  };
}

export function tracedWindow(
  window: readonly Along[],
  read: (slot: Slot) => Value,
): readonly unknown[] {
  const traced = (value: number | Slot): number =>
    typeof value === "number" ? value : (tileOf(read(value)) as never);
  return window.map(({ start, size, end }) => {
    if (size === undefined) return traced(start);
    return slice(traced(start), size, end === undefined ? {} : { end: traced(end) });
  });
}

export function slotsOf(window: readonly Along[]): readonly Slot[] {
  return window.flatMap(({ start, end }) =>
    [start, end].filter((value) => typeof value === "object"),
  );
}

/** A random window of at most so many elements. */
export function drawWindow(
  draft: Draft,
  shape: readonly number[],
  overhangs: boolean,
): readonly Along[] {
  const { random } = draft;
  let { room } = draft;
  const window = shape.map((extent): Along => {
    if (draft.chance(0.2)) {
      const start = draft.chance(0.5) ? random.below(extent) : draft.indexBelow(extent);
      return { start };
    }
    if (!overhangs) {
      const size = Math.min(room, 1 + random.below(extent));
      room = Math.max(1, Math.floor(room / size));
      const last = extent - size;
      const start = draft.chance(0.5) ? random.below(last + 1) : draft.indexBelow(last + 1);
      return { start, size };
    }
    const size = Math.min(room, random.pick([...draft.extents, extent]));
    room = Math.max(1, Math.floor(room / size));
    const start = draft.chance(0.5) ? random.below(extent + 6) - 3 : draft.exactly(i32, []);
    const ends = draft.random.below(5);
    if (ends === 0) return { start, size, end: random.below(extent + 4) - 1 };
    return ends === 1 ? { start, size, end: draft.exactly(i32, []) } : { start, size };
  });
  return window.some(({ size }) => size !== undefined)
    ? window
    : window.with(0, { start: 0, size: 1 });
}

export interface Seen {
  readonly view: (view: View) => View;
  readonly trace: (ref: Value) => Value;
  readonly shape: readonly number[];
}

/** The same elements, under other axes. */
export function drawView(draft: Draft, shape: readonly number[], isStatic: boolean): Seen {
  const same: Seen = { view: (view) => view, trace: (ref) => ref, shape };
  if (draft.chance(0.5)) return same;
  if (draft.chance(0.5)) {
    const permutation = shape.map((_, axis) => axis).reverse();
    return {
      view: (view) => transposedView(view, permutation),
      trace: (ref) => ref.transpose(permutation),
      shape: shape.toReversed(),
    };
  }
  if (!isStatic) return same;
  const count = countOf(shape);
  const factors = [2, 3, 4, 5, 7, 8].filter((factor) => count % factor === 0);
  const factor = factors.length === 0 ? 1 : draft.random.pick(factors);
  const other = draft.random.pick([
    [count],
    [factor, count / factor],
    [count / factor, factor],
    [1, count],
  ]);
  return {
    view: (view) => reshapedView(view, other),
    trace: (ref) => ref.reshape(other),
    shape: other,
  };
}

export interface Masking {
  readonly mask?: Slot | undefined;
  readonly fill?: Item | undefined;
}

export function drawMask(draft: Draft, dtype: DType, shape: readonly number[]): Masking {
  const mask = draft.chance(0.3) ? draft.condition(shape) : undefined;
  const fits = mask !== undefined && joined(mask.shape, shape)?.join() === shape.join();
  return {
    mask: fits ? mask : undefined,
    fill: draft.chance(0.4) ? draft.literal(dtype) : undefined,
  };
}

export function loaded(view: View, masking: Masking, mask: Held | undefined): Held {
  const { dtype, shape } = view;
  const otherwise = masking.fill ?? zeroOf(dtype);
  const where = mask === undefined ? undefined : broadcast(mask, shape);
  return held(dtype, shape, (place, position) =>
    where === undefined || where.items[position] === true
      ? (view.get(place) ?? otherwise)
      : otherwise,
  );
}

export function options({ fill }: Masking, mask: Value | undefined): object {
  return { ...(mask !== undefined && { where: mask }), ...(fill !== undefined && { fill }) };
}

export function loadStep(draft: Draft, sources: readonly Source[]): void {
  const source = draft.random.pick(sources);
  const seen = drawView(draft, source.shape, !source.isLaunched);
  const window = drawWindow(draft, seen.shape, true);
  const shape = window.flatMap(({ size }) => (size === undefined ? [] : [size]));
  const masking = drawMask(draft, source.dtype, shape);
  const slots = slotsOf(window);
  const { mask } = masking;
  const uses = [...slots, ...(mask === undefined ? [] : [mask])];
  draft.giveBy(
    `load ${JSON.stringify(window)} of ${source.dtype.name} ${seen.shape.join()}`,
    uses,
    source.dtype,
    shape,
    ({ read, array }) =>
      seen
        .trace(array(source.name))
        .at(...tracedWindow(window, read))
        .load(options(masking, mask && read(mask))),
    ({ read, array }) =>
      loaded(windowOf(seen.view(array(source.name)), window, read), masking, mask && read(mask)),
  );
}

export function loadScalarStep(draft: Draft, sources: readonly Source[]): void {
  const source = draft.random.pick(sources);
  const at = source.shape.map((extent) =>
    draft.chance(0.5) ? draft.random.below(extent) : draft.indexBelow(extent),
  );
  const places = at.map((start): Along => ({ start }));
  draft.giveBy(
    "loadScalar",
    slotsOf(places),
    source.dtype,
    [],
    ({ read, array }) =>
      array(source.name)
        .at(...tracedWindow(places, read))
        .loadScalar(),
    ({ read, array }) => {
      const item = windowOf(array(source.name), places, read).get([]);
      if (item === undefined) throw new Error("an index is inside");
      return held(source.dtype, [], () => item);
    },
  );
}

/** Elements of an array by tiles of indices, which repeat to one shape; the other axes are taken whole. */
export function gatherStep(draft: Draft, sources: readonly Source[]): void {
  const source = draft.random.pick(sources);
  const { shape } = source;
  const picks = shape.map((_, axis) => axis === 0 || draft.chance(0.4));
  const dtype = draft.chance(0.5) ? i32 : i64;
  const [a = 1, b = 1] = draft.extents;
  const common = draft.random.pick([[a], [b], [a, b]]);
  const rest = shape.filter((_, axis) => picks[axis] !== true);
  // Picked axes that do not lie side by side stand where the first of them does.
  const first = picks.indexOf(true);
  const result = [
    ...shape.slice(0, first).filter((_, axis) => picks[axis] !== true),
    ...common,
    ...rest,
  ];
  if (countOf(result) > draft.room || result.length > 4 || source.isLaunched) return;
  const indices = shape.map((extent, axis) =>
    picks[axis] === true
      ? draft.indicesBelow(draft.chance(0.7) ? common : [1], extent, dtype)
      : undefined,
  );
  const used = indices.filter((slot) => slot !== undefined);
  const repeats = used.reduce<readonly number[]>((all, slot) => joined(all, slot.shape) ?? all, []);
  const masking = drawMask(draft, source.dtype, [...repeats, ...rest]);
  const { mask } = masking;
  draft.giveBy(
    `gather ${shape.join()} by ${picks.join()}`,
    [...used, ...(mask === undefined ? [] : [mask])],
    source.dtype,
    [...repeats, ...rest],
    ({ read, array }) =>
      array(source.name)
        .at(...indices.map((slot) => (slot === undefined ? all : read(slot))))
        .load(options(masking, mask && read(mask))),
    ({ read, array }) => {
      const view = array(source.name);
      const whole = indices.map((slot) => slot && broadcast(read(slot), repeats));
      const picked: View = {
        dtype: source.dtype,
        shape: [...repeats, ...rest],
        get: (place) => {
          const [ofIndex, ofRest] = [place.slice(0, repeats.length), place.slice(repeats.length)];
          let next = 0;
          return view.get(
            whole.map((tile) =>
              tile === undefined ? (ofRest[next++] ?? 0) : Number(itemAt(tile, ofIndex)),
            ),
          );
        },
      };
      return loaded(picked, masking, mask && read(mask));
    },
  );
}

/** What a body reads of shared memory of its own. */
function throughBuffer(
  dtype: DType,
  shape: readonly number[],
  body: (buffer: Value) => Value,
): unknown {
  return scoped({ buffer: smem(dtype, shape) }, ({ buffer }) => tileOf(body(valueOf(buffer))));
}

/** A tile stored in shared memory, changed in a window of it, and read by another view. */
function sharedStep(draft: Draft): void {
  const source = draft.some(({ shape }) => shape.length > 0, formats);
  const { dtype, shape } = source;
  const changes = draft.chance(0.6);
  const into = drawWindow(draft, shape, false);
  const inner = into.flatMap(({ size }) => (size === undefined ? [] : [size]));
  const value = draft.partner(dtype, inner);
  const fits = joined(value.shape, inner)?.join() === inner.join();
  const mask = draft.chance(0.4) ? draft.condition(inner) : undefined;
  const masks = mask !== undefined && joined(mask.shape, inner)?.join() === inner.join();
  const seen = drawView(draft, shape, true);
  const from = drawWindow(draft, seen.shape, false);
  const result = from.flatMap(({ size }) => (size === undefined ? [] : [size]));
  const stores = changes && fits;
  draft.giveBy(
    `shared ${JSON.stringify(into)} ${JSON.stringify(from)}`,
    [
      source,
      ...slotsOf(from),
      ...(stores ? [value, ...slotsOf(into), ...(masks ? [mask] : [])] : []),
    ],
    dtype,
    result,
    ({ read }) =>
      throughBuffer(dtype, shape, (buffer) => {
        buffer.store(read(source));
        if (stores)
          buffer
            .at(...tracedWindow(into, read))
            .store(read(value), masks ? { where: read(mask) } : {});
        return seen
          .trace(buffer)
          .at(...tracedWindow(from, read))
          .load();
      }),
    ({ read }) => {
      const items = [...read(source).items];
      if (stores) {
        const whole = broadcast(read(value), inner);
        const where = masks ? broadcast(read(mask), inner) : undefined;
        const places = held(i32, shape, (_, position) => BigInt(position));
        const window = windowOf(viewOf(places), into, read);
        held(i32, inner, (place, position) => {
          const at = Number(window.get(place));
          if (where === undefined || where.items[position] === true)
            items[at] = whole.items[position] ?? 0;
          return 0n;
        });
      }
      const view = seen.view(viewOf({ dtype, shape, items }));
      return loaded(windowOf(view, from, read), {}, undefined);
    },
  );
}

const atomicFormats: readonly DType[] = [dtypes.i32, dtypes.u32, dtypes.i64, dtypes.u64];

/** Atomic updates of elements that may be picked more than once, by a function whose order does not show. */
function atomicStep(draft: Draft): void {
  const dtype = draft.random.pick(atomicFormats);
  const bins = 1 + draft.random.below(12);
  const shape = draft.shape();
  const fn = draft.random.pick(["add", "min", "max", "and", "or", "xor"] as const);
  const indices = draft.indicesBelow(shape, bins, draft.chance(0.5) ? i32 : i64);
  const values = draft.exactly(dtype, shape);
  const first = draft.constantOf(dtype, [bins]);
  const masking = drawMask(draft, dtype, shape);
  const { mask } = masking;
  draft.giveBy(
    `atomic ${fn}`,
    [indices, values, first, ...(mask === undefined ? [] : [mask])],
    dtype,
    [bins],
    ({ read }) =>
      throughBuffer(dtype, [bins], (buffer) => {
        buffer.store(read(first));
        buffer
          .at(read(indices))
          .atomic(fn, read(values), mask === undefined ? {} : { where: read(mask) });
        return buffer.load();
      }),
    ({ read }) => {
      const items = [...read(first).items];
      const where = mask === undefined ? undefined : broadcast(read(mask), shape);
      const [at, given] = [read(indices).items, read(values).items];
      at.forEach((bin, position) => {
        if (where !== undefined && where.items[position] !== true) return;
        items[Number(bin)] = binary(fn, dtype, items[Number(bin)] ?? 0, given[position] ?? 0);
      });
      return { dtype, shape: [bins], items };
    },
  );
}

/** A scatter to places that are all different: a turn of the positions by a step that shares no factor with their number. */
function scatterStep(draft: Draft): void {
  const source = draft.some(({ shape }) => shape.length === 1, formats);
  if (source.shape.length !== 1) return;
  const { dtype } = source;
  const count = source.shape[0] ?? 1;
  const greatest = (a: number, b: number): number => (b === 0 ? a : greatest(b, a % b));
  const steps = [1, 2, 3, 5, 7, 11, count - 1].filter(
    (step) => step > 0 && greatest(step, count) === 1,
  );
  const step = draft.random.pick(steps.length === 0 ? [1] : steps);
  const shift = draft.random.below(count);
  const masking = drawMask(draft, dtype, [count]);
  const { mask } = masking;
  const first = draft.constantOf(dtype, [count]);
  draft.giveBy(
    `scatter ${step} ${shift}`,
    [source, first, ...(mask === undefined ? [] : [mask])],
    dtype,
    [count],
    ({ read }) =>
      throughBuffer(dtype, [count], (buffer) => {
        buffer.store(read(first));
        const places = iota(i32, [count], { axis: 0 }).mul(step).add(shift).rem(count);
        buffer.at(places).store(read(source), mask === undefined ? {} : { where: read(mask) });
        return buffer.load();
      }),
    ({ read }) => {
      const items = [...read(first).items];
      const where = mask === undefined ? undefined : broadcast(read(mask), [count]);
      read(source).items.forEach((item, at) => {
        if (where !== undefined && where.items[at] !== true) return;
        items[(at * step + shift) % count] = item;
      });
      return { dtype, shape: [count], items };
    },
  );
}

export const memorySteps: readonly StepMaker[] = [sharedStep, sharedStep, atomicStep, scatterStep];
