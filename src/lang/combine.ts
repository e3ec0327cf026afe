/**
 * Reductions and scans by a function of one's own, over one tile or several that go together: a value and where it was, the two
 * coefficients of a linear recurrence, mean and deviation. The function is traced on whole tiles, so that it may use whatever
 * tiles can do, and combines neighbours, which keeps their order: it must be associative and need not be commutative.
 *
 *   reduceWith([x, at], first, …)      pairs of neighbours, until one is left
 *
 *     a  b  c  d                       scanWith goes back down with what comes before each pair (e: the identity)
 *     └ab┘  └cd┘                         e
 *       └abcd┘                           e      ab
 *                                        e  a   ab  abc        and takes in the elements themselves: a, ab, abc, abcd
 *
 * Neighbours usually lie in the registers of one lane, so that most of the combining moves nothing. An axis that is no power
 * of two is filled up with the identity.
 *
 * Tiles have methods that come here, so that nothing of this file may need their class: what is made is made by a tile.
 */
import type { HostValue } from "../formats/dtype.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { atLocation, atOwnLines, captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { axisFromEnd } from "./axes.ts";
import { constantValue, isPlain, requireLiteral } from "./constants.ts";
import { make } from "./making.ts";
import { isTile } from "./elementwise.ts";
import type { ReduceOptions, ScanOptions, Tile } from "./tile.ts";
import { emitValue, originOf } from "./trace.ts";
import { callBody, describe, useValue, wrongKind } from "./traced.ts";

/** One tile, or several of the same shape. */
export type Combined = Tile | readonly Tile[];

/** What leaves any element as it is: one number for each tile. */
export type IdentityOf<T extends Combined> =
  T extends Tile<infer D>
    ? number | HostValue<D>
    : { readonly [I in keyof T]: T[I] extends Tile<infer D> ? number | HostValue<D> : never };

/** Of two neighbours, or stretches of them, in their order. */
export type Combine<T extends Combined> = (left: T, right: T) => T;

interface Along<T extends Combined> {
  /** The axis to combine along; the last from -1. */
  readonly axis: number;
  /** What combines with any element to that element, such as 0 of a sum. */
  readonly identity: IdentityOf<T>;
}

/** Options of `reduceWith`. */
export interface ReduceWithOptions<T extends Combined>
  extends Omit<Along<T>, "axis">, ReduceOptions {
  /** The axis to combine along, the last from -1, or several at once, whose elements come in row-major order. */
  readonly axis: number | readonly number[];
}
/** Options of `scanWith`. */
export interface ScanWithOptions<T extends Combined> extends Along<T>, ScanOptions {}

type Tiles = readonly Tile[];

/** Combines along an axis, or several, which disappear or keep extent 1. */
export function reduceWith<const T extends Combined>(
  tiles: T,
  combine: Combine<T>,
  options: ReduceWithOptions<T>,
): T {
  const location = captureLocation();
  const known = ["axis", "identity", "keepDims"];
  requireKnownOptions("reduceWith", options, known, "TW1033", location);
  const axis: unknown = options.axis;
  return atLocation(location, () =>
    Array.isArray(axis)
      ? reducedTogether(tiles, combine, options, axis)
      : reducedAlong(tiles, combine, options as Along<T>),
  );
}

/** Several axes as one: they are moved behind the others and joined. */
function reducedTogether<T extends Combined>(
  tiles: T,
  combine: Combine<T>,
  options: ReduceWithOptions<T>,
  axes: readonly number[],
): T {
  const location = captureLocation();
  const list = tileList("reduceWith", tiles, location);
  const shape = list[0]?.shape ?? [];
  const own = requireAxes("reduceWith", shape.length, axes, location);
  const others = [...shape.keys()].filter((axis) => !own.includes(axis));
  const kept = others.map((axis) => shape[axis] ?? 1);
  const joined = own.reduce((product, axis) => product * (shape[axis] ?? 1), 1);
  const order = [...others, ...own];
  const isInOrder = order.every((axis, index) => axis === index);
  const given = (made: Tiles): T => (isTile(tiles) ? made[0] : made) as T;
  const reduced = reducedAlong(
    given(
      list.map((tile) => (isInOrder ? tile : tile.transpose(order)).reshape([...kept, joined])),
    ),
    combine,
    { ...options, axis: others.length, keepDims: true },
  );
  const ones = shape.map((extent, axis) => (own.includes(axis) ? 1 : extent));
  const result = options.keepDims === true ? ones : kept;
  return given(tileList("reduceWith", reduced, location).map((tile) => tile.reshape(result)));
}

function reducedAlong<T extends Combined>(
  tiles: T,
  combine: Combine<T>,
  options: Along<T> & Omit<ReduceOptions, "axis">,
): T {
  const combination = new Combination("reduceWith", tiles, combine, options, ["keepDims"]);
  const shape = combination.shape.toSpliced(
    combination.axis,
    1,
    ...(options.keepDims === true ? [1] : []),
  );
  const reduced = combination.levels().at(-1) ?? [];
  return combination.given(reduced.map((tile) => tile.reshape(shape)));
}

/** Running combinations along an axis, the element itself included. */
export function scanWith<const T extends Combined>(
  tiles: T,
  combine: Combine<T>,
  options: ScanWithOptions<T>,
): T {
  return atLocation(captureLocation(), () => scanned(tiles, combine, options));
}

function scanned<T extends Combined>(
  tiles: T,
  combine: Combine<T>,
  options: ScanWithOptions<T>,
): T {
  const combination = new Combination("scanWith", tiles, combine, options, ["reverse"]);
  const levels = combination.levels();
  let before = combination.identity(1);
  for (const level of levels.slice(0, -1).toReversed()) {
    const [first] = combination.pairs(level);
    before = combination.joined(before, combination.combine(before, first));
  }
  return combination.given(combination.combine(before, levels[0] ?? []));
}

class Combination<T extends Combined> {
  readonly axis: number;
  readonly #tiles: Tiles;
  readonly #label: string;
  readonly #single: boolean;
  readonly #function: Combine<T>;
  readonly #identity: readonly unknown[];
  readonly #reverse: boolean;
  readonly #location: Location = captureLocation();

  constructor(
    label: string,
    tiles: T,
    combine: Combine<T>,
    options: Along<T> & Partial<ScanOptions & Omit<ReduceOptions, "axis">>,
    own: readonly string[],
  ) {
    const location = this.#location;
    this.#label = label;
    this.#single = isTile(tiles);
    this.#tiles = tileList(label, tiles, location);
    requireKnownOptions(label, options, ["axis", "identity", ...own], "TW1033", location);
    this.#function = combine;
    this.#reverse = options.reverse === true;
    this.axis = requireAxis(label, this.shape.length, options.axis, location);
    this.#identity = this.#single
      ? [options.identity]
      : identityList(label, options.identity, location);
    if (this.#identity.length !== this.#tiles.length)
      wrongKind(
        `the identity of ${label}`,
        `a number for each of ${this.#tiles.length} tiles`,
        options.identity,
        location,
      );
    // An axis of a power of two is not filled up, and the identity is then not used, but it is wrong all the same.
    for (const index of this.#tiles.keys()) this.#identityOf(index);
  }

  get shape(): readonly number[] {
    return this.#tiles[0]?.shape ?? [];
  }

  /** Tiles of the identity, with so many elements along the axis. */
  identity(extent: number): Tiles {
    const shape = this.shape.with(this.axis, extent);
    const location = this.#location;
    return this.#tiles.map((tile, index) => {
      const value = constantValue(tile.dtype, shape, this.#identityOf(index), location);
      return tile[make](originOf(value, location));
    });
  }

  #identityOf(index: number): number | bigint | boolean {
    const [value, tile] = [this.#identity[index], this.#tiles[index]];
    const location = this.#location;
    if (!isPlain(value))
      return wrongKind(`the identity of ${this.#label}`, "a plain value", value, location);
    if (tile !== undefined) requireLiteral(tile.dtype, value, location);
    return value;
  }

  /** The tiles themselves, of pairs, of pairs of pairs, down to one element along the axis. */
  levels(): readonly Tiles[] {
    const levels: Tiles[] = [this.#filled()];
    for (let extent = extentOf(levels[0], this.axis); extent > 1; extent /= 2) {
      const [first, second] = this.pairs(levels.at(-1) ?? []);
      levels.push(this.combine(first, second));
    }
    return levels;
  }

  #filled(): Tiles {
    const extent = extentOf(this.#tiles, this.axis);
    const missing = 2 ** Math.ceil(Math.log2(extent)) - extent;
    if (missing === 0) return this.#tiles;
    const rest = this.identity(missing);
    return this.#tiles.map((tile, index) => {
      const other = rest[index];
      return other === undefined ? tile : this.#concatenated([tile, other], this.axis);
    });
  }

  /** Those of each pair of neighbours that come first and second in the order of combining. */
  pairs(tiles: Tiles): readonly [first: Tiles, second: Tiles] {
    const sides = [0, 1].map((side) => tiles.map((tile) => this.#half(tile, side)));
    const [even = [], odd = []] = this.#reverse ? sides.toReversed() : sides;
    return [even, odd];
  }

  #half(tile: Tile, side: number): Tile {
    const { shape } = tile;
    const extent = (shape[this.axis] ?? 0) / 2;
    const paired = shape.toSpliced(this.axis, 1, extent, 2);
    const starts = paired.map((_, axis) => (axis === this.axis + 1 ? side : 0));
    return tile
      .reshape(paired)
      .slice(starts, paired.with(this.axis + 1, 1))
      .reshape(shape.with(this.axis, extent));
  }

  /** Pairs of neighbours side by side. */
  joined(first: Tiles, second: Tiles): Tiles {
    return first.map((tile, index) => {
      const other = second[index];
      if (other === undefined) return tile;
      const [before, after] = this.#reverse ? [other, tile] : [tile, other];
      const sides = [
        before.expand({ axis: this.axis + 1 }),
        after.expand({ axis: this.axis + 1 }),
      ] as const;
      const extent = tile.shape[this.axis] ?? 0;
      const joined = this.#concatenated(sides, this.axis + 1);
      return joined.reshape(tile.shape.with(this.axis, 2 * extent));
    });
  }

  #concatenated(tiles: readonly [Tile, ...Tile[]], axis: number): Tile {
    const location = this.#location;
    const parts = tiles.map((tile) => useValue(tile, location));
    return tiles[0][make](
      originOf(emitValue("concatenate", { parts }, { axis }, location), location),
    );
  }

  combine(left: Tiles, right: Tiles): Tiles {
    const label = `the function of ${this.#label}`;
    const [first, second] = [this.#argument(left), this.#argument(right)];
    const made: unknown = atOwnLines(() =>
      callBody(label, this.#location, this.#function, first, second),
    );
    const results: readonly unknown[] = this.#single ? [made] : Array.isArray(made) ? made : [];
    const kept = results.filter(isTile);
    const fits =
      kept.length === results.length &&
      kept.length === left.length &&
      kept.every((tile, index) => isLike(tile, left[index]));
    if (!fits) throw this.#otherTiles(left, made);
    return kept;
  }

  #otherTiles(wanted: Tiles, found: unknown): TilewrightError {
    const text = (tiles: readonly unknown[]): string => tiles.map(describe).join(", ");
    return new TilewrightError({
      code: "TW1038",
      message: `the function of ${this.#label} gives other tiles than it takes`,
      location: this.#location,
      expected: text(wanted),
      found: Array.isArray(found) ? text(found) : describe(found),
    });
  }

  /** As the user gave the tiles: one, or a list. */
  #argument(tiles: Tiles): T {
    return (this.#single ? tiles[0] : tiles) as T;
  }

  given(tiles: Tiles): T {
    const extent = extentOf(this.#tiles, this.axis);
    const isFilled =
      extentOf(tiles, this.axis) > extent && tiles[0]?.shape.length === this.shape.length;
    const whole = isFilled
      ? tiles.map((tile) =>
          tile.slice(
            tile.shape.map(() => 0),
            tile.shape.with(this.axis, extent),
          ),
        )
      : tiles;
    return this.#argument(whole);
  }
}

/** Results are tiles, which have an axis. */
function extentOf(tiles: Tiles | undefined, axis: number): number {
  return tiles?.[0]?.shape[axis] ?? 1;
}

function isLike(tile: Tile, other: Tile | undefined): boolean {
  return tile.dtype === other?.dtype && tile.shape.join() === other.shape.join();
}

function tileList(label: string, tiles: unknown, location: Location): Tiles {
  const list: readonly unknown[] = Array.isArray(tiles) ? tiles : [tiles];
  const found = list.filter(isTile);
  const [first] = found;
  if (first === undefined || found.length !== list.length)
    return wrongKind(`what ${label} takes`, "a tile or a list of tiles", tiles, location);
  const other = found.find(({ shape }) => shape.join() !== first.shape.join());
  if (other !== undefined)
    return wrongKind(`what ${label} takes`, "tiles of one shape", other, location);
  return found;
}

function identityList(label: string, identity: unknown, location: Location): readonly unknown[] {
  if (Array.isArray(identity)) return identity;
  return wrongKind(`the identity of ${label}`, "a list of numbers", identity, location);
}

/** The axes of a list, each once, in their order. */
function requireAxes(
  label: string,
  rank: number,
  axes: readonly number[],
  location: Location,
): readonly number[] {
  const own = axes.map((axis) => requireAxis(label, rank, axis, location));
  if (own.length === 0 || new Set(own).size < own.length)
    wrongKind(`the axes of ${label}`, "one or more different axes", axes, location);
  return own.toSorted((left, right) => left - right);
}

function requireAxis(label: string, rank: number, axis: unknown, location: Location): number {
  const own = typeof axis === "number" ? axisFromEnd(axis, rank) : -1;
  if (Number.isInteger(own) && own >= 0 && own < rank) return own;
  return wrongKind(`the axis of ${label}`, `an axis from ${-rank} to ${rank - 1}`, axis, location);
}
