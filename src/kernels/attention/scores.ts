/**
 * What happens to a tile of products q · k on the way to the softmax, and which tiles there are. Rows see columns within a
 * window, so most tiles are seen whole or not at all, and few are cut:
 *
 *            columns  0  1  2  3          causal, tiles of one row and one column of tiles
 *   rows 0            /                   / cut: compared element by element
 *   rows 1            #  /                # whole
 *   rows 2            #  #  /             the rest is never looked at
 *
 * The softmax is taken of powers of two, since that is what the hardware computes: 2^(x · log2 e) = e^x.
 */
import { dtypes } from "../../formats/dtype.ts";
import { full, iota, randomKey, slice, when, zeros } from "../../lang/index.ts";
import type { Ref, Scalar } from "../../lang/index.ts";
import { Tile } from "../../lang/tile.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { byElement } from "../support/by-element.ts";
import { refused } from "../support/arguments.ts";
import type { AttentionProblem, ScorePlace } from "./problem.ts";

type Index = Scalar<"i32">;

/** Sizes of one launch. */
export interface AttentionSizes {
  readonly b: number;
  readonly s: number;
  readonly t: number;
  readonly h: number;
  readonly kv: number;
  readonly d: number;
  readonly e: number;
  /** Offsets of sequences; 0 where batches have an axis of their own. */
  readonly ends: number;
}

/** A tile of scores: where it begins, and its sizes. */
export interface ScoreTile {
  readonly batch: Index;
  readonly head: Index;
  readonly top: Index;
  readonly left: Index;
  readonly rows: number;
  readonly columns: number;
  /** Columns that a block takes, of which the tile may have a part; those of the tile by default. */
  readonly run?: number;
  /** Whether the mask is asked; it is by default. */
  readonly isMasked?: (() => Scalar<"bool">) | undefined;
  /** Whether every row is known to see every column. */
  readonly isClear?: boolean;
}

/** Scores as they are, and what they are multiplied by to be exponents of two. */
export interface Exponents {
  readonly scores: Tile<"f32">;
  readonly scale: number | Scalar<"f32">;
}

/** The segments of queries and keys. */
export interface SegmentRefs {
  readonly querySegmentIds: Ref<"i32">;
  readonly keyValueSegmentIds: Ref<"i32">;
}

export interface ScoreRules {
  readonly problem: AttentionProblem;
  readonly sizes: AttentionSizes;
  /** Columns there are. */
  readonly t: Index;
  readonly bias: Ref | undefined;
  readonly segments: SegmentRefs | undefined;
  /** What products are multiplied by beside the scale: more than 0. */
  readonly factor?: Scalar<"f32"> | undefined;
  /** What dropout draws from. */
  readonly key: Ref<"u32"> | undefined;
  readonly location: Location;
}

/** Steps over tiles of columns: the first tile, and how many there are; at least one, which may be seen by no row. */
export function columnTiles(
  { problem, s, t }: Pick<ScoreRules, "problem" | "t"> & { readonly s: Index },
  top: Index,
  rows: number,
  columns: number,
): { readonly first: Index; readonly steps: Index } {
  const { left, right } = problem.window;
  const zero = t.mul(0);
  const tiles = (size: Index): Index => size.add(columns - 1).div(columns);
  const end = right === undefined ? t : t.minimum(top.add(rows).minimum(s).add(right));
  if (left === undefined) return { first: zero, steps: tiles(end).maximum(1) };
  const last = tiles(t).sub(1).maximum(0);
  const first = top.sub(left).maximum(0).div(columns).minimum(last);
  return { first, steps: tiles(end).sub(first).maximum(1) };
}

/** Whether the last tile of columns may reach behind the last column, as the one that is looked at where there are no columns does. */
function hasEnd({ sizes }: Pick<ScoreRules, "sizes">, columns: number): boolean {
  return sizes.ends > 0 || sizes.t === 0 || sizes.t % columns !== 0;
}

/**
 * How many tiles of columns, from the first on, rows from `top` on see whole, so that nothing of them is compared; "all" where there is nothing to
 * compare in any, undefined where it depends on more than the place.
 */
export function clearTiles(
  rules: ScoreRules,
  top: Index,
  columns: number,
): Index | "all" | undefined {
  const { problem, t } = rules;
  const { left, right } = problem.window;
  if (left !== undefined || problem.mask !== undefined) return undefined;
  const ends = hasEnd(rules, columns);
  if (right === undefined) return ends ? t.div(columns) : "all";
  const seen = top.add(right + 1).maximum(0);
  return (ends ? seen.minimum(t) : seen).div(columns);
}

/** Steps over the tiles of rows that see columns from `left` on; none where no row does. */
export function rowTiles(
  { problem, t }: Pick<ScoreRules, "problem" | "t">,
  s: Index,
  left: Index,
  rows: number,
  columns: number,
): { readonly first: Index; readonly steps: Index } {
  const window = problem.window;
  // Row i sees column j from i = j - right to i = j + left.
  const begin = window.right === undefined ? s.mul(0) : left.sub(window.right).maximum(0);
  const end =
    window.left === undefined ? s : s.minimum(left.add(columns).minimum(t).add(window.left));
  const first = begin.div(rows);
  return {
    first,
    steps: end
      .add(rows - 1)
      .div(rows)
      .sub(first)
      .maximum(0),
  };
}

/** What products are multiplied by. */
export function scaleOf({ scale }: AttentionProblem, { d }: AttentionSizes): number {
  return scale ?? 1 / Math.sqrt(d);
}

/** The scores of a tile of products, -∞ where a row does not see a column. */
export function finishScores(rules: ScoreRules, products: Tile<"f32">, tile: ScoreTile): Exponents {
  const { problem, factor } = rules;
  const scale = scaleOf(problem, rules.sizes);
  // The largest product is the largest score, and -∞ stays what it is, where the scale is more than 0.
  const isPlain =
    scale > 0 &&
    [problem.softCap, rules.bias, problem.score].every((change) => change === undefined);
  const times = (number: number) => factor?.mul(number) ?? number;
  const scores = isPlain ? products : changedScores(rules, products.mul(times(scale)), tile);
  const seen = windowed(rules, scores, tile);
  return {
    scores: segmented(rules, masked(rules, seen, tile), tile),
    scale: isPlain ? times(Math.LOG2E * scale) : Math.LOG2E,
  };
}

/** Asks the mask, where it is not known to hold of the whole tile. */
function masked(
  { problem: { mask }, location }: ScoreRules,
  scores: Tile<"f32">,
  tile: ScoreTile,
): Tile<"f32"> {
  if (mask === undefined) return scores;
  const asked = () => choose(askedMask(mask, placeOf(tile), tile, location), scores, tile);
  return tile.isMasked === undefined ? asked() : when(tile.isMasked(), asked, () => scores);
}

/** Compares the segments of rows and columns. */
function segmented({ segments }: ScoreRules, scores: Tile<"f32">, tile: ScoreTile): Tile<"f32"> {
  if (segments === undefined) return scores;
  const { querySegmentIds, keyValueSegmentIds } = segments;
  const { batch, top, left, rows, columns } = tile;
  // Windows, of which nothing is read outside, as of the bias.
  const idsOf = (ids: Ref<"i32">, first: Index, count: number): Tile<"i32"> =>
    ids.at(slice(batch, 1), slice(first, count)).load();
  const own = idsOf(querySegmentIds, top, rows).reshape([rows, 1]);
  const theirs = idsOf(keyValueSegmentIds, left, columns).reshape([1, columns]);
  return choose(own.eq(theirs), scores, tile);
}

function changedScores(rules: ScoreRules, scores: Tile<"f32">, tile: ScoreTile): Tile<"f32"> {
  const biased = biasedScores(rules, scores, tile);
  return rules.problem.score === undefined
    ? biased
    : askedScores("score", rules.problem.score, biased, tile, rules.location);
}

/** Scaled products with cap and bias: what a score function is given. */
function biasedScores(
  { problem: { softCap }, bias }: ScoreRules,
  scores: Tile<"f32">,
  tile: ScoreTile,
): Tile<"f32"> {
  const capped =
    softCap === undefined
      ? scores
      : scores
          .mul(1 / softCap)
          .tanh()
          .mul(softCap);
  return bias === undefined ? capped : capped.add(biasTile(bias, tile));
}

function askedScores(
  name: "score" | "slope",
  asked: NonNullable<AttentionProblem["score"]>,
  score: Tile<"f32">,
  tile: ScoreTile,
  location: Location,
): Tile<"f32"> {
  const place = placeOf(tile);
  const given = byElement(`the ${name} of attention`, asked, { ...place, score }, location);
  return requireTile(name, given, "f32", tile, location) as Tile<"f32">;
}

/**
 * Which weights of a tile dropout keeps; undefined where there is none. Head g of all, counted from the first of the first batch, draws what
 * `bernoulli` gives for an array of [rows, columns] from the key that g is folded into.
 */
export function keptWeights(
  { problem: { dropout }, sizes, key, t }: ScoreRules,
  tile: ScoreTile,
): Tile<"bool"> | undefined {
  if (key === undefined || dropout === undefined) return undefined;
  const { batch, head, row, column } = placeOf(tile);
  const own = randomKey(key).foldIn(batch.mul(sizes.h).add(head));
  return own.bernoulli(1 - dropout, row.mul(t).add(column));
}

/** What weights, or their gradients, become under dropout. */
export function droppedOut(
  { problem: { dropout = 0 } }: ScoreRules,
  values: Tile<"f32">,
  kept: Tile<"bool"> | undefined,
): Tile<"f32"> {
  return kept === undefined
    ? values
    : kept.select(values.mul(1 / (1 - dropout)), zeros(dtypes.f32, values.shape));
}

/** The gradient of scores before the score function: times its slope. A weight of 0 has none, whatever the slope of a score of -∞ is. */
export function throughScore(
  rules: ScoreRules,
  products: Tile<"f32">,
  gradient: Tile<"f32">,
  tile: ScoreTile,
): Tile<"f32"> {
  const { problem, sizes, location } = rules;
  if (problem.slope === undefined) return gradient;
  const biased = biasedScores(rules, products.mul(scaleOf(problem, sizes)), tile);
  const slope = askedScores("slope", problem.slope, biased, tile, location);
  return gradient.eq(0).select(gradient, gradient.mul(slope));
}

/** The gradient of scaled products, from that of scores: times the slope of the score function, and of the cap, 1 − tanh². */
export function throughScores(
  rules: ScoreRules,
  products: Tile<"f32">,
  gradient: Tile<"f32">,
  tile: ScoreTile,
): Tile<"f32"> {
  const { problem, sizes } = rules;
  const { softCap } = problem;
  const ofScore = throughScore(rules, products, gradient, tile);
  if (softCap === undefined) return ofScore;
  const bent = products.mul(scaleOf(problem, sizes) / softCap).tanh();
  return ofScore.mul(bent.mul(bent).neg().add(1));
}

function biasTile(bias: Ref, { batch, head, top, left, rows, columns }: ScoreTile): Tile<"f32"> {
  const [b, h, s, t] = bias.shape;
  // Windows of one batch and one head, of which nothing is read outside: products that run could not go on beside a trap.
  const [down, across] = [s === 1 ? 1 : rows, t === 1 ? 1 : columns];
  const window = bias.at(
    slice(b === 1 ? 0 : batch, 1),
    slice(h === 1 ? 0 : head, 1),
    slice(s === 1 ? 0 : top, down),
    slice(t === 1 ? 0 : left, across),
  );
  return window.load().cast(dtypes.f32).reshape([down, across]);
}

function placeOf({ batch, head, top, left, rows, columns }: ScoreTile): ScorePlace {
  return {
    batch,
    head,
    row: iota(dtypes.i32, [rows, 1], { axis: 0 }).add(top),
    column: iota(dtypes.i32, [1, columns], { axis: 1 }).add(left),
  };
}

/** Compares rows and columns where a tile reaches over an edge of the window or the last column. */
function windowed(rules: ScoreRules, scores: Tile<"f32">, tile: ScoreTile): Tile<"f32"> {
  if (tile.isClear === true) return scores;
  const { problem, t } = rules;
  const { top, left: from, rows, columns, run = columns } = tile;
  const { left, right } = problem.window;
  // Rows and columns are numbered where they are compared, so that no registers hold them over the products.
  const edges: {
    readonly crossed: Scalar<"bool">;
    readonly seen: (place: ScorePlace) => Tile<"bool">;
  }[] = [];
  const ends = hasEnd(rules, run);
  if (right !== undefined) {
    // One comparison for both ends.
    const last = <T extends { minimum(other: Index): T }>(own: T): T =>
      ends ? own.minimum(t.sub(1 + right)) : own;
    edges.push({
      crossed: from.add(columns - 1 - right).gt(last(top)),
      seen: ({ row, column }) => column.sub(right).le(last(row)),
    });
  } else if (ends)
    edges.push({ crossed: from.add(columns).gt(t), seen: ({ column }) => column.lt(t) });
  if (left !== undefined)
    edges.push({
      crossed: from.add(left).lt(top.add(rows - 1)),
      seen: ({ row, column }) => column.add(left).ge(row),
    });
  const [first, ...others] = edges;
  if (first === undefined) return scores;
  const crossed = others.reduce((sum, edge) => sum.or(edge.crossed), first.crossed);
  return when(
    crossed,
    () => {
      const place = placeOf(tile);
      return edges.reduce((kept, edge) => choose(edge.seen(place), kept, tile), scores);
    },
    () => scores,
  );
}

function choose(
  seen: Tile<"bool">,
  scores: Tile<"f32">,
  { rows, columns }: ScoreTile,
): Tile<"f32"> {
  return seen.select(scores, full(dtypes.f32, [rows, columns], -Infinity));
}

/** What a mask says of a tile of rows and columns. */
export function askedMask(
  mask: NonNullable<AttentionProblem["mask"]>,
  place: ScorePlace,
  shape: Pick<ScoreTile, "rows" | "columns">,
  location: Location,
): Tile<"bool"> {
  const given: unknown = byElement("the mask of attention", mask, { ...place }, location);
  return requireTile("mask", given, "bool", shape, location) as Tile<"bool">;
}

function requireTile(
  name: string,
  given: unknown,
  dtype: "bool" | "f32",
  { rows, columns }: Pick<ScoreTile, "rows" | "columns">,
  location: Location,
): Tile {
  const wrong = (found: string) =>
    refused(
      "TW9905",
      `the ${name} of attention gives something else`,
      `a tile of ${dtype} over rows and columns`,
      found,
      location,
    );
  if (!(given instanceof Tile)) throw wrong(optionText(given));
  const [down, across] = given.shape;
  const fits =
    given.shape.length === 2 &&
    (down === 1 || down === rows) &&
    (across === 1 || across === columns);
  if (!fits || given.dtype.name !== dtype)
    throw wrong(`${given.dtype.name}[${given.shape.join(", ")}]`);
  const whole = [rows, columns];
  return given.shape.every((extent, index) => extent === whole[index])
    ? (given as Tile)
    : (given as Tile).broadcastTo(whole);
}
