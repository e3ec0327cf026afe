/**
 * What accesses to global memory touch: memory gives 32 bytes at a time, however few of them are asked for.
 *
 *   load x[128 neighbours] of f32            512 bytes asked for, 16 sectors
 *   load x[128 elements, 4096 apart]         512 bytes asked for, 128 sectors: 4096 bytes
 *
 * A loop that reads the neighbours of what its turn before read finds them in the cache of its processor: such sectors count
 * once. Windows are taken to be read as is best for them; elements that are picked are picked by 32 lanes at a time.
 */
import { indexedShape, joinedExtents } from "../indexed.ts";
import type { Kernel, Value } from "../node.ts";
import type { DType } from "../../formats/dtype.ts";
import { placesOf, rowMajor } from "./index-values.ts";
import type { IndexValues, Numbers } from "./index-values.ts";

/** Bytes that memory gives at a time. */
export const sectorBytes = 32;
const lanesOfWarp = 32;
/** Elements of an access that are looked at; of larger ones the first. */
const mostElements = 8192;

/** An array, and where in it a window lies. */
interface Placed {
  readonly array: Value;
  readonly first: number;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  /** Of each axis the places from and before which it is inside; undefined where all of it is. */
  readonly inside: readonly (readonly [number, number] | undefined)[];
}

/** What an access touches of an array. */
export interface Touched {
  readonly array: Value;
  /** Bytes of the elements that are accessed, each once. */
  readonly bytes: number;
  /** Sectors, each once. */
  readonly sectors: number;
  /** Sectors for each 32 lanes by themselves. */
  readonly asked: number;
  /** The part of the sectors that the turn before did not touch. */
  readonly fresh: number;
}

function placedAt(ref: Value, kernel: Kernel, values: IndexValues): Placed {
  const op = values.definition(ref);
  const { type } = ref;
  if (type.kind !== "ref") throw new Error("only windows are accessed");
  if (op?.kind === "slice_ref") {
    const source = placedAt(op.operands.ref, kernel, values);
    const { sizes, dropped } = op.attributes;
    const extents = sizes.map((size) => values.size(size));
    let { first } = source;
    const inside = op.operands.offsets.map((offset, axis) => {
      const { values: numbers, isData: isRead } = values.of(offset);
      const extent = source.shape[axis] ?? 1;
      const last = Math.max(0, extent - (extents[axis] ?? 1));
      // Somewhere inside, of which nobody knows where.
      const at = isRead ? (numbers[0] ?? 0) % (last + 1) : (numbers[0] ?? 0);
      first += at * (source.strides[axis] ?? 0);
      const [from, before] = source.inside[axis] ?? [0, extent];
      return at >= from && at + (extents[axis] ?? 1) <= before
        ? undefined
        : ([from - at, before - at] as const);
    });
    const kept = extents.flatMap((_, axis) => (dropped.includes(axis) ? [] : [axis]));
    const pick = <T>(list: readonly T[]): readonly T[] =>
      kept.flatMap((axis) => list.slice(axis, axis + 1));
    return {
      array: source.array,
      first,
      shape: pick(extents),
      strides: pick(source.strides),
      inside: pick(inside),
    };
  }
  if (op?.kind === "transpose_ref") {
    const source = placedAt(op.operands.ref, kernel, values);
    const turn = <T>(list: readonly T[]): readonly T[] =>
      op.attributes.permutation.flatMap((axis) => list.slice(axis, axis + 1));
    return {
      ...source,
      shape: turn(source.shape),
      strides: turn(source.strides),
      inside: turn(source.inside),
    };
  }
  const shape = type.shape.map((size) => values.size(size));
  if (op?.kind === "reshape_ref") {
    const source = placedAt(op.operands.ref, kernel, values);
    return { ...source, shape, strides: rowMajor(shape), inside: shape.map(() => undefined) };
  }
  if (op?.kind === "select_ref" && op.operands.refs[0] !== undefined)
    return placedAt(op.operands.refs[0], kernel, values);
  const parameter = kernel.parameters.find(({ value }) => value === ref);
  const given = parameter?.strides?.map((size) => values.size(size));
  return {
    array: ref,
    first: 0,
    shape,
    strides: given ?? rowMajor(shape),
    inside: shape.map(() => undefined),
  };
}

/** An access: a window, the elements that are picked of it, and those of them that are meant. */
export interface Access {
  readonly ref: Value;
  readonly indices: readonly Value[];
  readonly indexed: readonly number[];
  readonly where: Value | undefined;
}

/** The tile of an access, and for each of its elements the place in the array; those outside the window are marked. */
class Places {
  readonly values: Float64Array;
  readonly outside: Uint8Array;
  readonly #extents: readonly number[];
  readonly #window: Placed;

  constructor(window: Placed, extents: readonly number[], axisOf: readonly (number | undefined)[]) {
    const own = extents.map(() => 0);
    for (const [axis, at] of axisOf.entries())
      if (at !== undefined) own[at] = window.strides[axis] ?? 0;
    this.values = placesOf(extents, own, window.first);
    this.outside = new Uint8Array(this.values.length);
    this.#extents = extents;
    this.#window = window;
    for (const [axis, at] of axisOf.entries())
      if (at !== undefined && window.inside[axis] !== undefined)
        this.#mark(
          placesOf(
            extents,
            extents.map((_, each) => Number(each === at)),
          ),
          axis,
        );
  }

  /** Marks what lies outside along an axis. */
  #mark(coordinates: Float64Array, axis: number): void {
    const [from, before] = this.#window.inside[axis] ?? [0, this.#window.shape[axis] ?? 1];
    for (const [i, at] of coordinates.entries()) if (at < from || at >= before) this.outside[i] = 1;
  }

  /** Moves each element to where an index tile has it along an axis. */
  pick(
    axis: number,
    numbers: Numbers,
    tile: readonly number[],
    indexAxes: readonly number[],
  ): void {
    const strides = this.#extents.map(() => 0);
    for (const [each, stride] of rowMajor(tile).entries())
      if (tile[each] !== 1) strides[indexAxes[each] ?? 0] = stride;
    const { values, isData } = numbers;
    const coordinates = placesOf(this.#extents, strides).map((place) => values[place] ?? 0);
    const extent = this.#window.shape[axis] ?? 1;
    // What is read lies somewhere inside.
    if (isData) for (const [j, at] of coordinates.entries()) coordinates[j] = Math.abs(at) % extent;
    else this.#mark(coordinates, axis);
    const step = this.#window.strides[axis] ?? 0;
    for (const [j, at] of coordinates.entries()) this.values[j] = (this.values[j] ?? 0) + at * step;
  }
}

/** The places, in elements of the array, that an access reads or writes, in the order of its tile. */
function accessedPlaces(
  access: Access,
  kernel: Kernel,
  values: IndexValues,
): { readonly array: Value; readonly places: readonly number[] } {
  const window = placedAt(access.ref, kernel, values);
  const { indices, indexed, where } = access;
  const tiles = indices.flatMap(({ type }) => (type.kind === "tile" ? [type] : []));
  const joined = indices.length > 0 ? joinedExtents(tiles) : undefined;
  const axes = joined === undefined ? [] : indexed;
  const { shape, indexAxes, axisOf } = indexedShape(window.shape, axes, joined ?? []);
  const extents = shape.map((size) => (typeof size === "number" ? size : values.size(size)));
  const places = new Places(window, extents, axisOf);
  for (const [i, axis] of axes.entries()) {
    const index = indices[i];
    const tile = tiles[i]?.shape ?? [];
    if (index !== undefined) places.pick(axis, values.of(index), tile, indexAxes);
  }
  const mask = where === undefined ? undefined : values.of(where);
  const isMasked = (i: number): boolean =>
    mask !== undefined && !mask.isData && mask.values[mask.values.length === 1 ? 0 : i] === 0;
  const kept: number[] = [];
  for (const [i, place] of places.values.entries())
    if (places.outside[i] === 0 && !isMasked(i)) kept.push(place);
  return { array: window.array, places: kept };
}

function sectorsOf(places: readonly number[], { bits }: DType, into: Set<number>): void {
  for (const place of places) into.add(Math.floor((place * bits) / (8 * sectorBytes)));
}

/** What an access touches, of which `later` gives the values in the next turn of the innermost loop around it. */
export function touchedBy(
  access: Access,
  kernel: Kernel,
  values: IndexValues,
  later: IndexValues | undefined,
): Touched {
  const { type } = access.ref;
  if (type.kind !== "ref") throw new Error("only windows are accessed");
  const { array, places: all } = accessedPlaces(access, kernel, values);
  const scale = Math.max(1, all.length / mostElements);
  const places = scale === 1 ? all : all.slice(0, mostElements);
  const sectors = new Set<number>();
  sectorsOf(places, type.dtype, sectors);
  let asked = 0;
  if (access.indices.length > 0)
    for (let from = 0; from < places.length; from += lanesOfWarp) {
      const warp = new Set<number>();
      sectorsOf(places.slice(from, from + lanesOfWarp), type.dtype, warp);
      asked += warp.size;
    }
  const turn =
    later === undefined
      ? undefined
      : accessedPlaces(access, kernel, later).places.slice(0, mostElements);
  const fresh = turn === undefined ? 1 : freshPart(places, sectors, turn, type.dtype);
  return {
    array,
    bytes: (scale * new Set(places).size * type.dtype.bits) / 8,
    sectors: scale * sectors.size,
    asked: scale * Math.max(asked, sectors.size),
    fresh,
  };
}

/** The part of the sectors of a turn that the turn before did not touch. */
function freshPart(
  places: readonly number[],
  sectors: ReadonlySet<number>,
  turn: readonly number[],
  dtype: DType,
): number {
  if (sectors.size === 0 || turn.length === 0) return 1;
  const moved = (turn[0] ?? 0) - (places[0] ?? 0);
  const bytes = (Math.abs(moved) * dtype.bits) / 8;
  const isShifted =
    turn.length === places.length && turn.every((place, i) => place - (places[i] ?? 0) === moved);
  // Less than a sector on: some turns reach a new one of each run of neighbours, most do not.
  if (isShifted && bytes < sectorBytes) {
    let runs = 0;
    for (const sector of sectors) if (!sectors.has(sector - 1)) runs += 1;
    return Math.min(1, (runs * bytes) / (sectorBytes * sectors.size));
  }
  const next = new Set<number>();
  sectorsOf(turn, dtype, next);
  let seen = 0;
  for (const sector of next) if (sectors.has(sector)) seen += 1;
  return 1 - seen / next.size;
}
