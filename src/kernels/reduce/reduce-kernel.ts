/**
 * The kernel of a reduction over any axes. A block has a window of two axes, loops over all reduced ones and accumulates element by element;
 * threads exchange values at the end only:
 *
 *   sum over columns, [m, n] → [m]     window 4 × 2048   grid over m     loop over n       collapse along columns
 *   sum over rows,    [m, n] → [n]     window 32 × 256   grid over n     loop over m       collapse along rows
 *   sum over both ends, [a, m, n] → [m]   as the first, with a loop over a around it
 */
import type { DType } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { Size } from "../../ir/size.ts";
import { tensor, cdiv, full, iota, kernel, loop, slice } from "../../lang/index.ts";
import type { TensorSpec, Index, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { alignment, threadsPerBlock, widestAccess } from "../support/sizes.ts";
import { storeWhole } from "../support/strided.ts";
import type { StridedForm } from "../support/strided.ts";
import { VectorizedLayout } from "./vectorized-layout.ts";
import type { Reducer, ReduceTiles } from "./reducer.ts";

export interface ReduceArray {
  readonly name: string;
  readonly dtype: DType;
  readonly role: "input" | "output";
}

/** How a reduction is carried out. */
export interface ReduceConfiguration {
  /** Elements of a window along each axis; 1 but for two of them. */
  readonly window: readonly number[];
  /** Blocks that go through parts of the reduced axis `splitAxis`. */
  readonly parts: number;
  /** The reduced axis whose parts blocks share. */
  readonly splitAxis: number;
  /** Where what is read is the first that the cache drops. */
  readonly evict?: "first";
}

export interface ReduceForm {
  readonly form: StridedForm;
  /** Which axes are reduced. */
  readonly reduced: readonly boolean[];
  /** Whether windows end where axes do. */
  readonly exact: readonly boolean[];
  readonly configuration: ReduceConfiguration;
}

export function reduceKernel(
  name: string,
  arrays: readonly ReduceArray[],
  reducer: Reducer,
  shape: ReduceForm,
): KernelDefinition {
  const { form, reduced, configuration } = shape;
  const { window, parts } = configuration;
  const named = (role: "input" | "output") =>
    Object.fromEntries(
      arrays.flatMap((each, position) =>
        each.role === role ? [[each.name, specOf(shape, each, position)]] : [],
      ),
    );
  const grid: { [axis: string]: Size } = {};
  for (const [axis, isReduced] of reduced.entries())
    if (!isReduced) grid[`block${axis}`] = cdiv(form.extents[axis] ?? 1, window[axis] ?? 1);
  return kernel(
    { name, grid: { ...grid, part: parts }, inputs: named("input"), outputs: named("output") },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      new ReduceBody(arrays, reducer, shape, argument).run();
    },
  ) as unknown as KernelDefinition;
}

class ReduceBody {
  readonly #arrays: readonly ReduceArray[];
  readonly #reducer: Reducer;
  readonly #shape: ReduceForm;
  readonly #argument: { readonly [name: string]: unknown };
  /** The axes of a window. */
  readonly #axes: readonly [number, number];

  constructor(
    arrays: readonly ReduceArray[],
    reducer: Reducer,
    shape: ReduceForm,
    argument: { readonly [name: string]: unknown },
  ) {
    this.#arrays = arrays;
    this.#reducer = reducer;
    this.#shape = shape;
    this.#argument = argument;
    this.#axes = windowAxes(shape);
  }

  run(): void {
    const { form, reduced, configuration } = this.#shape;
    const starts: Index[] = form.axes.map((_, axis) =>
      reduced[axis] === true
        ? 0
        : (this.#argument[`block${axis}`] as Scalar<"i32">).mul(configuration.window[axis] ?? 1),
    );
    const loops = reduced.flatMap((isReduced, axis) => (isReduced ? [axis] : []));
    const runs = this.#runs(loops);
    const state =
      runs === undefined
        ? this.#through(loops, starts, this.#identity())
        : this.#throughRuns(runs, starts);
    const along = this.#axes.flatMap((axis, position) =>
      reduced[axis] === true ? [position] : [],
    );
    const collapsed = along.length === 0 ? state : this.#reducer.collapse(state, along);
    this.#store(starts, this.#reducer.finish(collapsed));
  }

  /** How threads go through runs, where neighbours are what is reduced and threads have several of them. */
  #runs(loops: readonly number[]): VectorizedLayout | undefined {
    const { form } = this.#shape;
    const [rows = 1, columns = 1] = this.#tileShape();
    const bits = this.#arrays[0]?.dtype.bits ?? 32;
    const isAlong = loops.length === 1 && loops[0] === form.axes.length - 1;
    const isNear = form.axes.at(-1)?.strides[0] === 1;
    const each = (rows * columns) / threadsPerBlock;
    if (this.#reducer.runs === undefined || !isAlong || !isNear || bits < 8) return undefined;
    if (each < 2 || rows > threadsPerBlock) return undefined;
    // Neighbours as wide as memory is accessed, wherever rows begin.
    const leads = form.axes.slice(0, -1).flatMap(({ strides }) => strides[0] || []);
    const widest = Math.min((8 * widestAccess) / bits, ...leads.map(alignment));
    return new VectorizedLayout(rows, columns, widest);
  }

  #throughRuns(shape: VectorizedLayout, starts: readonly Index[]): ReduceTiles {
    const { runs } = this.#reducer;
    if (runs === undefined) throw new Error("there are runs");
    const { form, exact, configuration } = this.#shape;
    const { window, parts } = configuration;
    const axis = form.axes.length - 1;
    const [, columns = 1] = this.#tileShape();
    const extent = form.extents[axis] ?? 1;
    const identity = Object.entries(runs.kept).map(([name, { dtype, identity: value, per }]) => [
      name,
      full(dtype, [threadsPerBlock, per === "lane" ? 1 : shape.each], value),
    ]);
    const steps = cdiv(extent, columns);
    const share = cdiv(extent, columns * parts);
    const from = parts === 1 ? 0 : (this.#argument["part"] as Scalar<"i32">).mul(share);
    const to = parts === 1 ? steps : (from as Scalar<"i32">).add(share).minimum(steps as never);
    const carry = Object.fromEntries(identity) as ReduceTiles;
    const end = loop({ from, to, carry }, (step, kept) => {
      const place = starts.with(axis, step.mul(columns));
      const tiles = this.#arrays.flatMap(({ name, role }, position) => {
        if (role === "output") return [];
        const ref = form.window(this.#argument[name] as Ref, position, place, window);
        const tile = shape.byThreads(this.#read(ref, position).reshape(this.#tileShape()));
        if (exact[axis] === true) return [[name, tile]];
        const isWithin = shape.positions(step).lt(extent as never);
        const nothing = full(tile.dtype, [1, 1], runs.beyond);
        return [[name, isWithin.select(tile, nothing)]];
      });
      return runs.merge(kept, Object.fromEntries(tiles) as ReduceTiles, step);
    });
    const states = Object.entries(
      runs.state(end, (step, element) => shape.position(step, element)),
    );
    return Object.fromEntries(states.map(([name, tile]) => [name, shape.byRows(tile)]));
  }

  /** A window of an array; what is read again along an axis on which the array repeats stays in the cache. */
  #read(window: Ref, position: number): Tile {
    const { form, configuration } = this.#shape;
    const isOnce = form.axes.every(({ strides }) => (strides[position] ?? 0) > 0);
    const { evict } = configuration;
    return window.load(isOnce && evict !== undefined ? { evict } : {});
  }

  #tileShape(): readonly number[] {
    const { window } = this.#shape.configuration;
    return this.#axes.map((axis) => window[axis] ?? 1);
  }

  #identity(): ReduceTiles {
    const parts = Object.entries(this.#reducer.state);
    return Object.fromEntries(
      parts.map(([name, { dtype, identity }]) => [name, full(dtype, this.#tileShape(), identity)]),
    );
  }

  /** Loops over the reduced axes, the first of them outermost. */
  #through(loops: readonly number[], starts: readonly Index[], state: ReduceTiles): ReduceTiles {
    const [axis, ...inner] = loops;
    if (axis === undefined) return this.#reducer.merge(state, this.#lifted(starts));
    const { form, configuration } = this.#shape;
    const { window, parts, splitAxis } = configuration;
    const size = window[axis] ?? 1;
    const steps = cdiv(form.extents[axis] ?? 1, size);
    const body = (index: Scalar<"i32">, carry: ReduceTiles): ReduceTiles =>
      this.#through(inner, starts.with(axis, index.mul(size)), carry);
    if (parts === 1 || axis !== splitAxis) return loop({ to: steps, carry: state }, body);
    const share = cdiv(form.extents[axis] ?? 1, size * parts);
    const from = (this.#argument["part"] as Scalar<"i32">).mul(share);
    const to = from.add(share).minimum(steps as never);
    return loop({ from, to, carry: state }, body);
  }

  #lifted(starts: readonly Index[]): ReduceTiles {
    const { form, configuration, reduced } = this.#shape;
    const tiles: { [name: string]: Tile } = {};
    for (const [position, { name, role }] of this.#arrays.entries()) {
      if (role === "output") continue;
      const ref = this.#argument[name] as Ref;
      const window = form.window(ref, position, starts, configuration.window);
      const shape = form.tileShape(position, configuration.window, this.#axes);
      tiles[name] = this.#read(window, position).reshape(shape);
    }
    const index = (): Tile<"i32"> => {
      const axis = reduced.indexOf(true);
      return this.#positions(axis, starts);
    };
    const lifted = this.#reducer.lift(tiles, index);
    return this.#within(lifted, starts);
  }

  /** The position of every element along an axis. */
  #positions(axis: number, starts: readonly Index[]): Tile<"i32"> {
    const place = this.#axes.indexOf(axis);
    const start = starts[axis] ?? 0;
    if (place < 0) return full(dtypes.i32, [1, 1], 0).add(start);
    const shape = this.#tileShape().map((extent, each) => (each === place ? extent : 1));
    return iota(dtypes.i32, shape, { axis: place }).add(start);
  }

  /** Masks states beyond the end of a reduced axis with the identity. */
  #within(lifted: ReduceTiles, starts: readonly Index[]): ReduceTiles {
    const { form, reduced, exact } = this.#shape;
    let result = lifted;
    for (const axis of this.#axes) {
      if (reduced[axis] !== true || exact[axis] === true) continue;
      const isWithin = this.#positions(axis, starts).lt((form.extents[axis] ?? 1) as never);
      result = Object.fromEntries(
        Object.entries(result).map(([name, tile]) => {
          const part = this.#reducer.state[name];
          if (part === undefined) throw new Error(`the state has no ${name}`);
          return [name, isWithin.select(tile, full(part.dtype, [1, 1], part.identity))];
        }),
      );
    }
    return result;
  }

  #store(starts: readonly Index[], results: ReduceTiles): void {
    const { form, configuration } = this.#shape;
    const { window, parts } = configuration;
    const shape = keptShape(this.#shape);
    for (const [position, { name, role }] of this.#arrays.entries()) {
      const result = results[name];
      if (role === "input" || result === undefined) continue;
      const ref = this.#argument[name] as Ref;
      if (parts === 1) storeWhole(form.window(ref, position, starts, window), result, shape);
      else {
        const kept = keptAxes(this.#shape).map((axis) =>
          slice(starts[axis] ?? 0, window[axis] ?? 1),
        );
        storeWhole(ref.at(this.#argument["part"] as Scalar<"i32">, ...kept), result, shape);
      }
    }
  }
}

/** The axes of a window. */
function windowAxes({ form, configuration }: ReduceForm): readonly [number, number] {
  const last = form.axes.length - 1;
  return [configuration.window.findIndex((size, axis) => size > 1 && axis !== last), last];
}

/** What is left of a window when it is reduced. */
function keptShape(shape: ReduceForm): readonly number[] {
  const { window } = shape.configuration;
  return windowAxes(shape).map((axis) => (shape.reduced[axis] === true ? 1 : (window[axis] ?? 1)));
}

function keptAxes({ reduced }: ReduceForm): readonly number[] {
  return reduced.flatMap((isReduced, axis) => (isReduced ? [] : [axis]));
}

/** An array of the kernel. States of parts lie one part after the other, by rows of the kept axes. */
function specOf(shape: ReduceForm, { dtype, role }: ReduceArray, position: number): TensorSpec {
  const { form, configuration } = shape;
  if (role === "input" || configuration.parts === 1) return form.spec(position, dtype);
  const kept = keptAxes(shape).map((axis) => form.extents[axis] ?? 1);
  return tensor(dtype, [configuration.parts, ...(kept.length === 0 ? [1] : kept)]);
}
