/**
 * What rules use while a kernel is recorded: the value of a graph at points. It comes from memory where the value is
 * an input of the kernel, from what a region was given for its parameter, or from the rule of the op that defines it.
 * Values are remembered, so that an op used twice at the same points is recorded once.
 */
import type { Ref, Tile } from "../../lang/index.ts";
import { zeros } from "../../lang/index.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { sizeOf } from "../ops/types.ts";
import { loadAt } from "./points/load.ts";
import { Points } from "./points/points.ts";
import { dtypeOf, tensorTypeOf } from "./storage.ts";

/** The rule of an op that computes its results at points. */
export type AnyPointRule = (
  op: AnyGraphOp,
  points: Points,
  context: PointContext,
) => readonly Tile[];

/** What the values of a kernel are made from. */
export interface Sources {
  /** The inputs of the kernel, each a flat array. */
  readonly refs: ReadonlyMap<GraphValue, Ref>;
  /** The ops of the kernel and of their regions, by their results. */
  readonly definitions: ReadonlyMap<GraphValue, AnyGraphOp>;
  readonly rule: AnyPointRule;
}

export class PointContext {
  readonly #sources: Sources;
  readonly #outer: PointContext | undefined;
  readonly #known = new Map<GraphValue, Map<Points, Tile>>();
  readonly #given = new Map<GraphValue, Tile>();

  constructor(sources: Sources, outer?: PointContext) {
    this.#sources = sources;
    this.#outer = outer;
  }

  /** The value at points of its shape. */
  element(value: GraphValue, points: Points): Tile {
    const known = this.#find(value, points);
    if (known !== undefined) return known;
    const { shape } = tensorTypeOf(value);
    if (sizeOf(shape) === 0) return zeros(dtypeOf(value), [1]);
    const ref = this.#sources.refs.get(value);
    if (ref !== undefined) return this.#remember(value, points, loadAt(ref, points));
    const op = this.#sources.definitions.get(value);
    if (op === undefined) throw new Error(`value ${value.id} is neither loaded nor computed`);
    const tiles = this.#sources.rule(op, points, this);
    for (const [i, result] of op.results.entries()) {
      const tile = tiles[i];
      if (tile !== undefined) this.#remember(result, points, tile);
    }
    return this.element(value, points);
  }

  #remember(value: GraphValue, points: Points, tile: Tile): Tile {
    const tiles = this.#known.get(value) ?? new Map<Points, Tile>();
    this.#known.set(value, tiles.set(points, tile));
    return tile;
  }

  #find(value: GraphValue, points: Points): Tile | undefined {
    const own = this.#given.get(value) ?? this.#known.get(value)?.get(points);
    if (own !== undefined || this.#outer === undefined) return own;
    return this.#outer.#find(value, points);
  }

  /** The value of a tensor with one element. */
  scalar(value: GraphValue, points: Points): Tile {
    const { shape } = tensorTypeOf(value);
    if (shape.length === 0) return this.element(value, points.scalar());
    const origin = shape.map(() => 0);
    return this.element(value, Points.at(shape, points.tile, origin));
  }

  /** The value at the points where it has axes, the same for all where it has none. */
  broadcast(value: GraphValue, points: Points): Tile {
    const { shape } = tensorTypeOf(value);
    return shape.length === 0 ? this.element(value, points.scalar()) : this.element(value, points);
  }

  /** The value at the points where it has as many elements, its only one where it has one. */
  spread(value: GraphValue, points: Points): Tile {
    const isSingle = sizeOf(tensorTypeOf(value).shape) === 1;
    return isSingle ? this.scalar(value, points) : this.element(value, points);
  }

  /** A context for the body of a loop: what is made in it is not known outside. */
  inner(): PointContext {
    return new PointContext(this.#sources, this);
  }

  /** The results of a region over scalars, for a tile of values of each parameter. */
  region(region: GraphRegion, inputs: readonly Tile[], points: Points): readonly Tile[] {
    const inner = this.inner();
    for (const [i, parameter] of region.parameters.entries()) {
      const input = inputs[i];
      if (input !== undefined) inner.#given.set(parameter, input);
    }
    return region.results.map((value) => inner.element(value, points.scalar()));
  }
}
