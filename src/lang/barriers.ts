/**
 * Barriers: arrays of them with axes, and parts of arrays. What `at` is given is kept until a barrier is used, which then says where in the
 * array it lies:
 *
 *   full: [2, 3]      full.at(i).at(slice(1, 2)).at(j)      3 i + 1 + j,   i below 2, j below 2
 */
import type { Value } from "../ir/node.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { atLocation, captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { indexValue, requireWithin } from "./indices.ts";
import type { Index } from "./indices.ts";
import { Scalar } from "./elementwise.ts";
import { emit, emitOrigin } from "./trace.ts";
import type { Origin } from "./trace.ts";
import { describe, origin, Traced, useValue, wrongKind } from "./traced.ts";
import { all } from "./window.ts";
import type { All, Slice } from "./window.ts";

/** The operands that name one barrier. */
export interface BarrierOperands {
  readonly barrier: Value;
  readonly index?: Value;
}

/** An axis of an array of barriers: how many there are along it, and how far apart they lie. */
interface Axis {
  readonly extent: number;
  readonly stride: number;
}

/** A position along an axis, which must be below its extent. */
interface Position extends Axis {
  /** What `at` was given: whether it is an index is asked where the barrier is used, which has a line of its own. */
  readonly index: unknown;
}

/** Which barriers of an array are meant: those from the positions on, along the axes that are left. */
interface View {
  readonly positions: readonly Position[];
  readonly axes: readonly Axis[];
}

/** All barriers of an array, row by row. */
function wholeArray(shape: readonly number[]): View {
  const stride = (axis: number): number => productOf(shape.slice(axis + 1));
  return {
    positions: [],
    axes: shape.map((extent, axis) => ({ extent, stride: stride(axis) })),
  };
}

function productOf(extents: readonly number[]): number {
  return extents.reduce((product, extent) => product * extent, 1);
}

/** A barrier in shared memory, or an array of them. */
export class Barrier extends Traced {
  /** Tells a barrier from other traced objects. */
  readonly kind = "barrier";
  readonly #view: View;

  /** @internal */
  constructor(made: Origin, shape: readonly number[], view: View = wholeArray(shape)) {
    super(made);
    this.#view = view;
  }

  /** One barrier of the array, or a part of it: an index drops its axis, a slice or `all` keeps it. */
  at(...indices: readonly (Index | Slice | All)[]): Barrier {
    const { positions, axes } = this.#view;
    if (indices.length > axes.length)
      throw new TilewrightError({
        code: "TW1017",
        message: `${indices.length} indices for barriers of ${axesText(axes)}`,
        expected: `at most ${axes.length}`,
        found: `${indices.length}`,
      });
    const parts = axes.map((axis, at) => partOf(axis, at, at < indices.length ? indices[at] : all));
    const view = {
      positions: [...positions, ...parts.flatMap(({ position }) => position ?? [])],
      axes: parts.flatMap(({ left }) => left ?? []),
    };
    return new Barrier(this[origin], [], view);
  }

  /** Arrives once; on the barrier of another block of the cluster where `peer` is given. */
  arrive(options: { readonly peer?: Index } = {}): void {
    const location = captureLocation();
    requireKnownOptions("arrive", options, ["peer"], "TW1033", location);
    const { peer } = options;
    const operands = {
      ...barrierOperands(this, location),
      ...(peer !== undefined && { peer: indexValue("the rank of a peer", peer, location) }),
    };
    emit("barrier_arrive", operands, {}, location);
  }

  /** Waits for the next phase that this thread has not waited for, or for the phase of a parity. */
  wait(options: { readonly parity?: Index } = {}): void {
    const location = captureLocation();
    requireKnownOptions("wait", options, ["parity"], "TW1033", location);
    const { parity } = options;
    const operands = {
      ...barrierOperands(this, location),
      ...(parity !== undefined && { parity: indexValue("a parity", parity, location) }),
    };
    emit("barrier_wait", operands, {}, location);
  }

  /** Whether a phase of the parity is complete, without waiting; where it is, this orders what a wait for it would. */
  test(parity: Index): Scalar<"bool"> {
    const location = captureLocation();
    const operands = {
      ...barrierOperands(this, location),
      parity: indexValue("a parity", parity, location),
    };
    return new Scalar(emitOrigin("barrier_test", operands, {}, location));
  }

  /** @internal */
  get view(): View {
    return this.#view;
  }
}

/** What an index, a slice or `all` makes of an axis: a position along it, and what is left of it. */
function partOf(
  axis: Axis,
  ordinal: number,
  item: unknown,
): { readonly position?: Position; readonly left?: Axis } {
  if (!isPart(item)) return { position: { ...axis, index: item } };
  if (item.kind === "all") return { left: axis };
  const { start, size, end } = item;
  if (end !== undefined)
    throw new TilewrightError({
      code: "TW1036",
      message: "a slice of barriers has an end of its own",
      expected: "global memory",
      found: "barriers",
    });
  if (typeof size !== "number")
    return wrongKind("the size of a slice of barriers", "a number", size, captureLocation());
  requireWithin(`axis ${ordinal} of the barriers`, size - 1, axis.extent, captureLocation());
  const left = { extent: size, stride: axis.stride };
  if (start === 0) return { left };
  return { position: { index: start, extent: axis.extent - size + 1, stride: axis.stride }, left };
}

function isPart(item: unknown): item is Slice | All {
  if (typeof item !== "object" || item === null || !("kind" in item)) return false;
  return item.kind === "slice" || item.kind === "all";
}

function axesText(axes: readonly Axis[]): string {
  return axes.length === 1 ? "1 axis" : `${axes.length} axes`;
}

/** The barrier and its index, if it has one, as operands. */
export function barrierOperands(barrier: unknown, location: Location): BarrierOperands {
  if (!(barrier instanceof Barrier)) return wrongKind("a barrier", "a barrier", barrier, location);
  const value = useValue(barrier, location);
  const { positions, axes } = barrier.view;
  for (const { index, extent } of positions)
    requireWithin(describe(barrier), index, extent, location);
  const left = productOf(axes.map(({ extent }) => extent));
  if (left > 1 && positions.length > 0)
    throw new TilewrightError({
      code: "TW2080",
      message: `${axesText(axes)} of an array of barriers ${axes.length === 1 ? "is" : "are"} without an index`,
      location,
      expected: "one barrier",
      found: `${left} of them`,
    });
  const count = value.type.kind === "barrier" ? value.type.count : 1;
  const index = positionIn(positions, count, location);
  // Code that is written for any number of barriers may name the only one by its index.
  return index === undefined || (count === 1 && typeof index === "number")
    ? { barrier: value }
    : { barrier: value, index: indexValue("the index of a barrier", index, location) };
}

/** Where in the array of so many a barrier lies; nothing where none is picked. */
function positionIn(positions: readonly Position[], count: number, location: Location): unknown {
  const [first, ...others] = positions;
  if (first === undefined) return undefined;
  if (others.length === 0 && first.stride === 1 && first.extent === count) return first.index;
  const traced = positions.filter(({ index }) => typeof index !== "number");
  const known = positions.reduce(
    (sum, { index, stride }) => (typeof index === "number" ? sum + index * stride : sum),
    0,
  );
  if (traced.length === 0) return known;
  const indices = traced.map(({ index }) => indexValue("the index of a barrier", index, location));
  const extents = traced.map(({ extent }) => extent);
  const strides = traced.map(({ stride }) => stride);
  const found = new Scalar<"i32">(
    emitOrigin("linear_index", { indices }, { extents, strides }, location),
  );
  return known === 0 ? found : atLocation(location, () => found.add(known));
}
