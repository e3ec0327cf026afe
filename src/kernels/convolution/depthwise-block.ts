/**
 * The work of one thread of a depthwise convolution: neighbouring elements, whose windows overlap, so that each read serves several of
 * them. Everything but the start of the block is known before the launch:
 *
 *   forward, stride 1, 3 taps, 2 rows         read rows −1, 0, 1, 2 of the block          row −1 is tap 0 of row 0
 *                                                                                         row  0 is tap 1 of row 0 and tap 0 of row 1
 *   gradient of x, stride 2, 3 taps, 1 before, 2 columns of dx                            dOut 0 is tap 1 of column 0 and tap 2 of column 1
 *                                             read columns 0, 1 of the block              dOut 1 is tap 0 of column 1
 *
 * A block of the gradient of x begins at a multiple of the stride, whence its windows count.
 */
import { dtypes } from "../../formats/dtype.ts";
import { floorDivSize, multiplySizes } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { constant, iota, slice } from "../../lang/index.ts";
import type { Ref, Scalar, Slice, Tile } from "../../lang/index.ts";
import type { Direction } from "./gather-implicit-gemm.ts";
import type { Steps, Triple } from "./problem.ts";
import { windowAlong } from "./problem.ts";
import type { Tap, WindowGrid } from "./windows.ts";

const { i32 } = dtypes;

export type Place = number | Scalar<"i32">;

/** A place that is read, from where the block begins there; and whether there is one, where that shows at run time. */
export interface Spot {
  readonly at: readonly Place[];
  readonly where?: Scalar<"bool">;
}

/** Where an element of the block meets a tap; undefined where it never does. */
export function spotOf(
  steps: Steps,
  direction: Direction,
  element: Triple,
  tap: Tap,
): Spot | undefined {
  const at: Place[] = [];
  let where: Scalar<"bool"> | undefined;
  // Known taps come first: a condition of others would be left without a use.
  const isNever = element.some((own, axis) => {
    const { stride, dilation, before } = windowAlong(steps, axis);
    const number = tap[axis] ?? 0;
    return (
      direction === "backward" &&
      typeof number === "number" &&
      (own + before - number * dilation) % stride !== 0
    );
  });
  if (isNever) return undefined;
  for (const [axis, own] of element.entries()) {
    const { stride, dilation, before } = windowAlong(steps, axis);
    const number = tap[axis] ?? 0;
    if (direction === "forward") {
      const first = own * stride - before;
      at.push(
        typeof number === "number" ? first + number * dilation : number.mul(dilation).add(first),
      );
    } else if (typeof number === "number") {
      at.push((own + before - number * dilation) / stride);
    } else {
      const along = number.mul(-dilation).add(own + before);
      const isWhole = along.rem(stride).eq(0);
      at.push(along.div(stride));
      where = where === undefined ? isWhole : where.and(isWhole);
    }
  }
  return { at, ...(where && { where }) };
}

/** What a block reads, and each of its uses: the product of an element of the block and a tap. */
export interface Reading {
  readonly spot: Spot;
  readonly uses: readonly { readonly element: number; readonly tap: number }[];
}

/** The places that elements of a block read, each once, by rows. */
export function readingsOf(
  steps: Steps,
  direction: Direction,
  elements: readonly Triple[],
  taps: readonly Tap[],
): readonly Reading[] {
  const found = new Map<
    string,
    { readonly spot: Spot; readonly uses: Reading["uses"][number][] }
  >();
  for (const [element, own] of elements.entries())
    for (const [tap, each] of taps.entries()) {
      const spot = spotOf(steps, direction, own, each);
      if (spot === undefined) continue;
      const isKnown = spot.at.every((place) => typeof place === "number");
      const key = isKnown ? spot.at.join(" ") : `${element} of ${tap}`;
      const known = found.get(key) ?? { spot, uses: [] };
      known.uses.push({ element, tap });
      found.set(key, known);
    }
  return [...found.values()].toSorted(byPlaces);
}

function byPlaces({ spot: one }: Reading, { spot: two }: Reading): number {
  for (const [axis, place] of one.at.entries()) {
    const other = two.at[axis];
    if (typeof place !== "number" || typeof other !== "number") return 0;
    if (place !== other) return place - other;
  }
  return 0;
}

/** The elements of a block: so many along each axis. */
export function elementsOf([depth, height, width]: Triple): readonly Triple[] {
  return Array.from({ length: depth * height * width }, (_, index): Triple => {
    const rest = Math.floor(index / width);
    return [Math.floor(rest / height), rest % height, index % width];
  });
}

/**
 * How a block sees the columns of an array, of which a thread has one, or one of each `between`.
 *
 *   flat       a row is one run of columns and channels, and the next column lies as many elements on as there are channels
 *   columns    side by side
 *   groups     in groups of `between`, of which all threads take the same one
 *   numbers    by number, where groups would not be whole or a tap's column shows at run time
 */
export interface Side {
  readonly grid: WindowGrid;
  readonly between: number;
  readonly by: "flat" | "columns" | "groups" | "numbers";
}

/** The shape that kernels declare. */
export function sideShape({ grid, between, by }: Side): readonly Size[] {
  const [outer = 1, depth = 1, height = 1, width = 1, inner = 1] = grid.shape;
  if (by === "flat") return [outer, depth, height, 1, multiplySizes(width, inner)];
  if (by !== "groups") return grid.shape;
  return [outer, depth, height, floorDivSize(width, between), multiplySizes(between, inner)];
}

/** Where a block begins: an outer element, a plane, a row, the group of columns of its first thread, and channels. */
export interface Corner {
  readonly outer: Scalar<"i32">;
  readonly plane: Scalar<"i32">;
  readonly row: Scalar<"i32">;
  readonly group: Scalar<"i32">;
  readonly channel: Scalar<"i32">;
  /** Lanes along the width, and channels. */
  readonly places: number;
  readonly columns: number;
}

interface Columns {
  readonly indices: readonly [Slice | Tile<"i32">, Slice];
  readonly where?: Tile<"bool">;
}

const columnsOf: {
  readonly [By in Side["by"]]: (side: Side, corner: Corner, place: Place) => Columns;
} = {
  flat({ grid }, { channel, columns }, place) {
    const shift = constant(i32, 0).add(place).mul(grid.inner);
    return { indices: [slice(0, 1), slice(channel.add(shift), columns)] };
  },
  columns(_, { group, channel, places, columns }, place) {
    return { indices: [slice(group.add(place), places), slice(channel, columns)] };
  },
  groups({ grid, between }, { group, channel, places, columns }, place) {
    if (typeof place !== "number") throw new Error("columns of groups are known");
    const whole = Math.floor(place / between);
    const first = constant(i32, place - whole * between).mul(grid.inner);
    // What overhangs would be channels of the next column.
    const end = first.add(grid.inner);
    const own = slice(first.add(channel), columns, { end });
    return { indices: [slice(group.add(whole), places), own] };
  },
  numbers({ grid, between }, { group, channel, places, columns }, place) {
    const numbers = iota(i32, [places], { axis: 0 }).add(group).mul(between).add(place);
    const where = numbers.ge(0).and(numbers.lt(grid.spatial[2] ?? 1));
    return {
      indices: [numbers, slice(channel, columns)],
      where: where.reshape([1, 1, places, 1]),
    };
  },
};

/** The window of an array at a place of the block, [1, 1, places, channels]; outside of the array it is 0, and not stored. */
export function windowAt(ref: Ref, side: Side, corner: Corner, { at, where }: Spot) {
  const [depth = 0, height = 0, width = 0] = at;
  const columns = columnsOf[side.by](side, corner, width);
  const conditions = [columns.where, where].filter((each) => each !== undefined);
  const [one, two] = conditions;
  const options = one === undefined ? {} : { where: two === undefined ? one : one.and(two) };
  const plane = slice(corner.plane.add(depth), 1);
  const row = slice(corner.row.add(height), 1);
  return { window: ref.at(corner.outer, plane, row, ...columns.indices), options };
}
