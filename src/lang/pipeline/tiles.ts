/**
 * Persistent work: a tile scheduler for persistent kernels, whose grid has a block for each multiprocessor: as the kernel says, or
 * given here where it names no grid. A block takes tile after tile:
 *
 *   tiles 0 … 6 for 3 blocks         block 0: 0, 3, 6     block 1: 1, 4     block 2: 2, 5
 *
 * The order says which place of the grid a tile's number is:
 *
 *   plain        snake        grouped, 2 rows a group
 *   0 1 2 3      0 1 2 3       0  2  4  6        blocks that run together work on few rows and few columns, so that
 *   4 5 6 7      7 6 5 4       1  3  5  7        what they read stays in the L2 cache; every other group goes back
 *   8 9 …        8 9 …        14 12 10  8
 *                             15 13 11  9
 *
 * Where tiles become smaller from the first to the last, the first block would always get the largest of a round. Dealt back
 * and forth (`alternate`), all get about as much:
 *
 *   tiles 0 … 6 for 3 blocks         block 0: 0, 5, 6     block 1: 1, 4     block 2: 2, 3
 *
 * With a counter, a block takes the next tile whenever it is done with one (`dynamic-tile-counter.ts`), and with launch control that of a block that has not
 * begun (`launched-tiles.ts`). Tiles of a thin last round can be
 * split along their steps (`stream-k.ts`).
 */
import { i32 } from "../../formats/dtype.ts";
import type { GridAxis } from "../../ir/node.ts";
import { ceilDivSize, multiplySizes, processors } from "../../ir/size.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { atLocation, captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { isReadable, isRecord, requireKnownOptions } from "../../support/options.ts";
import { constant } from "../create.ts";
import { loop, scoped } from "../control.ts";
import { isIndex } from "../indices.ts";
import type { Index } from "../indices.ts";
import { Ref } from "../ref.ts";
import { Scalar } from "../elementwise.ts";
import { isPositiveInteger } from "../sizes.ts";
import { gridSize, Semaphore } from "../sync.ts";
import { activeTrace, emitOrigin } from "../trace.ts";
import type { Trace } from "../trace.ts";
import { describe, wrongKind } from "../traced.ts";
import type { Tree } from "../tree.ts";
import { tracedTarget } from "../by-target.ts";
import { countedSource, Once, tilesFrom } from "./dynamic-tile-counter.ts";
import type { Dealer, TileSource } from "./dynamic-tile-counter.ts";
import { launchedSource, LaunchResponses, responseScratch } from "./launched-tiles.ts";
import { asScalar } from "./ring.ts";
import { splitTiles, workerOf } from "./stream-k.ts";
import type { Handing, Segment } from "./stream-k.ts";
import type { Axes, AxesOf, StepGrid } from "./step-grid.ts";

/** Options of `tiles`. */
export interface TileOptions {
  /** The axis of the kernel's grid whose blocks share the tiles; may be left out where there is only one, or none. */
  readonly along?: string;
  /** How tiles are numbered; "plain" unless given. */
  readonly order?: "plain" | "snake" | "grouped";
  /** Rows of tiles in a group of the order "grouped"; 8 unless given. */
  readonly groupSize?: number;
  /** Whether every other round is assigned backwards, for tiles that become smaller from the first to the last. */
  readonly alternate?: boolean;
  /** An i32 in global memory, 0 at first, by which blocks take the next tile when they are done with one. */
  readonly counter?: Ref<"i32">;
  /**
   * The grid has a block for each tile, and a block that is done takes the tile of one that has not begun, by cluster launch control; targets that have
   * none begin a block for each.
   */
  readonly launchControl?: boolean;
  /**
   * The tiles that are left for the last round are cut along their steps, so that every block has a part; for
   * `warpSpecialized`. Blocks hand each other what their steps came to through memory: `sums` is [blocks, computing threads,
   * …the tile of a thread], `flags` a semaphore [blocks, computing threads].
   */
  readonly streamK?: { readonly sums: Ref; readonly flags: Semaphore };
}

/** A part of a tile: its steps, and how the block and the others that have parts of it hand over sums. */
export interface TilePart extends Segment {
  readonly worker: Scalar<"i32">;
  readonly handing: Handing;
}

/** What the body of a tile gets besides its indices. */
export interface TileTurn {
  /** Undefined for a whole tile. */
  readonly part: TilePart | undefined;
  /** To be called once, when what is left of a tile needs no waiting: which tile is next is then found meanwhile. */
  nearlyDone(this: void): void;
}

/** A turn of whoever has the next tile's number anyway. */
const whole: TileTurn = { part: undefined, nearlyDone: () => undefined };

/** How the numbers of tiles become their indices, and who works on which. */
interface Deal {
  readonly extents: readonly Index[];
  readonly axis: string;
  readonly order: NonNullable<TileOptions["order"]>;
  readonly group: number;
  readonly alternate: boolean;
  readonly counter: Ref<"i32"> | undefined;
  readonly split: Handing | undefined;
  /** Whether there is a block for each tile, and who takes the tiles of those that have not begun: the others, or nobody. */
  readonly launched: "control" | "blocks" | undefined;
}

/** Work for `warpSpecialized`, or for `each`. */
export class Tiles<A extends Axes = Axes> {
  /** The names of the axes. */
  readonly names: readonly (keyof A & string)[];
  readonly #deal: Deal | undefined;

  /** @internal Without a deal there is one tile. */
  constructor(names: readonly (keyof A & string)[], deal?: Deal) {
    this.names = names;
    this.#deal = deal;
  }

  /** @internal Whether one thread of a block is told which tile is next. */
  get isCounted(): boolean {
    return this.#deal?.counter !== undefined || this.isLaunched;
  }

  /** @internal Whether it is told by launch control. */
  get isLaunched(): boolean {
    return this.#deal?.launched === "control";
  }

  /** @internal Whether tiles are cut along their steps. */
  get isSplit(): boolean {
    return this.#deal?.split !== undefined;
  }

  /** Runs `body` for every tile of this thread block. */
  each(body: (tile: A) => void): void {
    if (this.isSplit)
      refuse(
        "tiles that each works on have no steps to be split along",
        "warpSpecialized",
        "each",
        captureLocation(),
      );
    const { threads } = activeTrace("each", captureLocation()).context;
    if (this.isCounted && threads.length > 1)
      refuse(
        "several threads would each take tiles",
        "one program thread, or warpSpecialized",
        `${threads.length} threads`,
        captureLocation(),
      );
    scoped(this.isLaunched ? responseScratch() : {}, (objects) => {
      const responses = this.isLaunched ? new LaunchResponses(objects) : undefined;
      this.deal({ kind: "alone", responses }, [], (tile, state, { nearlyDone }) => {
        body(tile);
        nearlyDone();
        return state;
      });
    });
  }

  /**
   * @internal The same, with values handed from tile to tile. Where tiles are split, `steps` says how many all of them have,
   * and the body is told its part. The body says when it is nearly done: its products run on while the number of the next
   * tile, by several divisions, becomes the tile's indices.
   */
  deal<S extends Tree>(
    dealer: Dealer,
    state: S,
    body: (tile: A, state: S, turn: TileTurn) => S,
    steps?: () => Scalar<"i32">,
  ): S {
    if (this.#deal === undefined) return body({} as A, state, whole);
    const location = captureLocation();
    const deal = this.#deal;
    const { axis, extents, counter, split, launched } = deal;
    const { names } = this;
    const place = (number: Scalar<"i32">): Indices =>
      atLocation(captureLocation(), () => placeTile(number, deal));
    const tileOf = (number: Scalar<"i32">, indices: Indices): A => {
      const entries = names.map((name, position) => [name, indices[position] ?? number]);
      return Object.fromEntries(entries) as A;
    };
    const block = new Scalar<"i32">(emitOrigin("block_index", {}, { axis }, location));
    if (split !== undefined && steps !== undefined) {
      const workers = gridSize(axis);
      const worker = workerOf(block, workers);
      const total = asScalar(totalOf(extents));
      const segments = splitTiles({ worker, workers, tiles: total, steps: steps() });
      return loop({ ...segments.bounds, carry: state as Tree }, (index, carried) => {
        const segment = segments.at(index);
        const part = { ...segment, worker, handing: split };
        const tile = tileOf(segment.tile, place(segment.tile));
        return body(tile, carried as S, { ...whole, part });
      }) as S;
    }
    const oneByOne = (source: TileSource): S =>
      tilesFrom(source, dealer, place, state, (number, indices, carried, nearlyDone) =>
        body(tileOf(number, indices), carried, { ...whole, nearlyDone }),
      );
    if (counter !== undefined) {
      const total = asScalar(totalOf(extents));
      const count = { counter, total, blocks: gridSize(axis), block };
      return oneByOne(countedSource(count, dealer.kind === "alone"));
    }
    if (launched === "blocks") return body(tileOf(block, place(block)), state, whole);
    if (launched === "control") {
      const responses = dealer.kind === "follows" ? undefined : dealer.responses;
      return oneByOne(launchedSource(block, asScalar(totalOf(extents)), responses));
    }
    const [to, step] = [totalOf(extents), gridSize(axis)];
    const round = { block, blocks: step, total: to };
    const back = deal.alternate ? [constant(i32, 0)] : [];
    const carry = { indices: place(block), back, state: state as Tree };
    const end = loop({ from: block, to, step, carry }, (number, carried) => {
      const turned = carried.back.map((each) => each.xor(1));
      const next = new Once(() => place(dealtBack(number.add(step), turned, round)));
      const turn = { ...whole, nearlyDone: next.find };
      const after = body(tileOf(number, carried.indices), carried.state as S, turn);
      return { indices: next.found, back: turned, state: after as Tree };
    });
    return end.state as S;
  }
}

/** Who is dealt tiles in rounds: which of how many blocks, and how many tiles there are. */
interface Round {
  readonly block: Scalar<"i32">;
  readonly blocks: Scalar<"i32">;
  readonly total: Index;
}

/** The tile of a round: in one that goes back and is whole, the last block's is the first. */
function dealtBack(
  number: Scalar<"i32">,
  [back]: readonly Scalar<"i32">[],
  { block, blocks, total }: Round,
): Scalar<"i32"> {
  if (back === undefined) return number;
  const isWhole = number.sub(block).add(blocks).le(total);
  const mirrored = number.add(blocks).sub(block.mul(2)).sub(1);
  return back.eq(1).and(isWhole).select(mirrored, number);
}

/** The indices of a tile; none along one axis, where the number is the index. */
type Indices = readonly Scalar<"i32">[];

/** The indices of a tile, by its number. */
function placeTile(tile: Scalar<"i32">, deal: Deal): Indices {
  const counts = deal.extents.map(asScalar);
  if (counts.length === 1 && !deal.alternate) return [];
  const indices = counts.length === 1 ? [tile] : placeInGrid(tile, counts, deal);
  // The remainders change nothing; they tell the compiler that no index is negative or too large.
  return indices.map((index, axis) => {
    const count = counts[axis];
    return count === undefined ? index : index.maximum(0).rem(count.maximum(1));
  });
}

function placeInGrid(tile: Scalar<"i32">, counts: Indices, { order, group }: Deal): Indices {
  const [rows, columns] = counts.slice(-2);
  const outer = counts.slice(0, -2);
  if (rows === undefined || columns === undefined) throw new Error("a grid has two axes");
  const size = rows.mul(columns);
  const plane = outer.length === 0 ? undefined : tile.div(size);
  const within = plane === undefined ? tile : tile.sub(plane.mul(size));
  const inner = placeInPlane(within, rows, columns, order, group);
  return [...(plane === undefined ? [] : divided(plane, outer)), ...inner];
}

function placeInPlane(
  tile: Scalar<"i32">,
  rows: Scalar<"i32">,
  columns: Scalar<"i32">,
  order: Deal["order"],
  group: number,
): readonly Scalar<"i32">[] {
  const back = (turned: Scalar<"i32">, column: Scalar<"i32">): Scalar<"i32"> =>
    turned.and(1).eq(0).select(column, columns.sub(1).sub(column));
  if (order !== "grouped") {
    const row = tile.div(columns);
    const column = tile.sub(row.mul(columns));
    return [row, order === "snake" ? back(row, column) : column];
  }
  const number = tile.div(columns.mul(group));
  const first = number.mul(group);
  const height = rows.sub(first).minimum(group);
  const within = tile.sub(first.mul(columns));
  const column = within.div(height);
  return [first.add(within.sub(column.mul(height))), back(number, column)];
}

/** How many tiles there are; a size, of which more is known than of a number computed in the kernel, where it can be. */
function totalOf(extents: readonly Index[]): Index {
  const sizes = extents.flatMap((extent) => (extent instanceof Scalar ? [] : [extent]));
  if (sizes.length === extents.length) return multiplySizes(...sizes);
  return extents.map(asScalar).reduce((total, extent) => total.mul(extent));
}

/** A number taken apart along axes, last one fastest. */
function divided(
  number: Scalar<"i32">,
  extents: readonly Scalar<"i32">[],
): readonly Scalar<"i32">[] {
  let rest = number;
  const indices = extents.toReversed().map((extent, position) => {
    if (position === extents.length - 1) return rest;
    const quotient = rest.div(extent);
    const index = rest.sub(quotient.mul(extent));
    rest = quotient;
    return index;
  });
  return indices.toReversed();
}

const tileOptions = [
  ...["along", "order", "groupSize", "alternate", "counter", "launchControl", "streamK"],
];

/** Tiles along each named axis, for the thread blocks of a persistent kernel. */
export function tiles<const G extends StepGrid>(
  grid: G,
  options: TileOptions = {},
): Tiles<AxesOf<G>> {
  const location = captureLocation();
  const trace = activeTrace("tiles", location);
  if (!isRecord(grid) || !isReadable(grid, []) || Object.keys(grid).length === 0)
    wrongKind("a grid of tiles", "an object with a count for each axis", grid, location);
  requireKnownOptions("tiles", options, tileOptions, "TW1033", location);
  const extents = Object.entries(grid).map(([name, extent]) =>
    isIndex(extent) && (typeof extent !== "number" || isPositiveInteger(extent))
      ? extent
      : wrongKind(
          `the number of tiles along ${name}`,
          "a positive whole number, an i32 scalar or a size",
          extent,
          location,
        ),
  );
  requireOrder(options, extents.length, location);
  const launched = launchedBy(options, trace, location);
  const axis =
    launched === undefined
      ? dealingAxis(options.along, trace, location)
      : addLaunchedAxis(trace, extents, location);
  const {
    order = "plain",
    groupSize: group = 8,
    alternate = false,
    counter,
    streamK: split,
  } = options;
  if (typeof alternate !== "boolean")
    wrongKind("alternate of tiles", "true or false", alternate, location);
  if (alternate && (counter !== undefined || split !== undefined))
    refuse(
      "tiles that are counted or split are not scheduled in rounds",
      "one of alternate, counter and streamK",
      counter === undefined ? "alternate and streamK" : "alternate and counter",
      location,
    );
  if (counter !== undefined) requireCounter(counter, trace.context.grid, location);
  if (split !== undefined) requireSplit(options, trace.context.grid, location);
  const names = Object.keys(grid) as (keyof G & string)[];
  return new Tiles<AxesOf<G>>(names, {
    ...{ extents, axis, order, group, alternate, counter, split, launched },
  });
}

function requireOrder(
  { order, groupSize: group }: TileOptions,
  axes: number,
  location: Location,
): void {
  if (order !== undefined && !["plain", "snake", "grouped"].includes(order))
    wrongKind("the order of tiles", '"plain", "snake" or "grouped"', order, location);
  if (group !== undefined && !isPositiveInteger(group))
    wrongKind("groupSize of tiles", "a positive whole number", group, location);
  if (axes < 2 && order !== undefined && order !== "plain")
    throw new TilewrightError({
      code: "TW1110",
      message: `tiles along one axis have no order ${order}`,
      location,
      expected: "two axes or more",
      found: "one",
    });
}

function refuse(message: string, expected: string, found: string, location: Location): never {
  throw new TilewrightError({ code: "TW1110", message, location, expected, found });
}

/** Blocks that take numbers from one counter are those of one axis, each on its own. */
function requireCounter(counter: unknown, grid: readonly GridAxis[], location: Location): void {
  if (!(counter instanceof Ref) || counter.space !== "gmem" || counter.dtype !== i32)
    wrongKind("the counter of tiles", "an i32 array in global memory", counter, location);
  if (counter.shape.length !== 1)
    refuse(
      "the counter of tiles has not one axis",
      "an array of one element",
      `${counter.shape.length} axes`,
      location,
    );
  requireLoneBlocks("tiles are taken from a counter", grid, location);
}

/** Blocks hand sums to each other by their numbers along one axis, which are known before the first tile. */
function requireSplit(
  { streamK: split, counter }: TileOptions,
  grid: readonly GridAxis[],
  location: Location,
): void {
  if (!isRecord(split) || !(split.sums instanceof Ref) || !(split.flags instanceof Semaphore))
    wrongKind(
      "what split tiles hand over",
      "{ sums, flags }, an array and a semaphore",
      split,
      location,
    );
  if (split.sums.space !== "gmem")
    wrongKind("the sums of split tiles", "an array in global memory", split.sums, location);
  if (counter !== undefined)
    refuse("tiles are both split and taken from a counter", "one of the two", "both", location);
  requireLoneBlocks("tiles are split", grid, location);
}

function requireLoneBlocks(deed: string, grid: readonly GridAxis[], location: Location): void {
  if (grid.length !== 1 || grid.some(({ cluster }) => cluster > 1))
    refuse(
      `${deed} by blocks of several axes, or of a cluster`,
      "a grid of one axis without clusters",
      grid.map(({ name }) => name).join(", "),
      location,
    );
}

/** The axis whose blocks share the tiles; a kernel without a grid gets one, of as many blocks as the device holds at once. */
function dealingAxis(along: unknown, trace: Trace, location: Location): string {
  const { clusterAxes, resident = 1 } = trace.spec;
  const axes = trace.context.grid.map(({ name }) => name);
  // Blocks along an axis of the cluster alone work on a tile together.
  const [only, ...others] = axes.filter((axis) => !clusterAxes.includes(axis));
  if (along === undefined && only === undefined) return addPersistentAxis(trace, axes, resident);
  if (along === undefined && only !== undefined && others.length === 0) return only;
  if (typeof along === "string" && axes.includes(along)) return along;
  throw new TilewrightError({
    code: "TW1110",
    message: "tiles are dealt along no axis of the grid",
    location,
    expected:
      axes.length === 0
        ? "no `along` in a kernel without a grid"
        : `along: one of ${axes.join(", ")}`,
    found: along === undefined ? "nothing" : typeof along === "string" ? along : describe(along),
  });
}

/** Whether tiles are taken from blocks that have not begun; undefined where a block is not for one tile. */
function launchedBy(options: TileOptions, trace: Trace, location: Location): Deal["launched"] {
  const { launchControl = false, along } = options;
  if (typeof launchControl !== "boolean")
    wrongKind("launchControl of tiles", "true or false", launchControl, location);
  if (!launchControl) return undefined;
  const others = (["alternate", "counter", "streamK"] as const).filter(
    (name) => options[name] !== undefined && options[name] !== false,
  );
  if (others.length > 0)
    refuse("tiles have a block each", "launchControl alone", others.join(" and "), location);
  const { grid } = trace.context;
  if (grid.length > 0 || along !== undefined)
    refuse(
      "the grid of a kernel that has a block for each tile is that of its tiles",
      "a kernel without a grid",
      grid.map(({ name }) => name).join(", ") || "along",
      location,
    );
  return tracedTarget().features.includes("clusterlaunchcontrol") ? "control" : "blocks";
}

/** An axis with a block for each tile. */
function addLaunchedAxis(trace: Trace, extents: readonly Index[], location: Location): string {
  const extent = totalOf(extents);
  if (extent instanceof Scalar)
    return refuse(
      "a grid has a block for each tile, and their number is computed in the kernel",
      "numbers and sizes",
      "a scalar",
      location,
    );
  const name = "tile";
  trace.addGridAxis(Object.freeze({ name, extent, cluster: 1 }));
  return name;
}

/** An axis of as many clusters, or blocks, as multiprocessors hold at once. */
function addPersistentAxis(trace: Trace, taken: readonly string[], resident: number): string {
  let name = "worker";
  while (taken.includes(name)) name += "_";
  const blocks = multiplySizes(processors, resident);
  const inCluster = trace.context.grid.reduce((product, { cluster }) => product * cluster, 1);
  trace.addGridAxis(Object.freeze({ name, extent: ceilDivSize(blocks, inCluster), cluster: 1 }));
  return name;
}
