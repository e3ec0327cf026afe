/**
 * Points: the places of a tensor that a tile of a kernel is about, one a lane.
 *
 *   result f32[6, 10], block 1 of 32 lanes        positions 32 … 63 in row-major order
 *   axes                                          position / 10, position % 10
 *
 * Everything is asked for at points: a kernel stores its result at the points of its block, the rule of the result's
 * op asks for operands at points that it computes, and so on until memory is reached. Where the points of a block lie
 * side by side in memory, they know it (`run`), and so do the points of a reshape; a load there is one window.
 * All other loads go by index.
 */
import { i32 } from "../../../formats/dtype.ts";
import { iota } from "../../../lang/index.ts";
import type { Scalar } from "../../../lang/index.ts";
import { sizeOf } from "../../ops/types.ts";
import {
  addIndex,
  columnIndex,
  columnRunOf,
  cutIndex,
  divideIndex,
  isUniform,
  remainderIndex,
  scaleIndex,
  tileOfIndex,
} from "./indices.ts";
import type { Index } from "./indices.ts";

export function stridesOf(shape: readonly number[]): readonly number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= shape[axis] ?? 1;
  }
  return strides;
}

/** A rectangle of a matrix that a tensor is in memory: its first row and column, or the numbers of its rows, a tile of one column. */
export interface MatrixWindow {
  readonly rows: number;
  readonly columns: number;
  readonly row: Index;
  readonly column: number | Scalar<"i32">;
}

export class Points {
  /** The shape of the tensor that they are places of. */
  readonly shape: readonly number[];
  /** The shape of the tiles of values at them; a value that is the same everywhere may have extents of 1. */
  readonly tile: readonly number[];
  /** The row-major position of the first, where the others follow it one by one. */
  readonly run: number | Scalar<"i32"> | undefined;
  /** The rectangle that they are, where they are one of a matrix. */
  readonly window: MatrixWindow | undefined;
  readonly #reshaped = new Map<string, Points>();
  #axes: readonly Index[] | undefined;
  #position: Index | undefined;

  private constructor(
    shape: readonly number[],
    tile: readonly number[],
    given: {
      readonly run?: number | Scalar<"i32"> | undefined;
      readonly window?: MatrixWindow | undefined;
      readonly axes?: readonly Index[];
      readonly position?: Index | undefined;
    },
  ) {
    this.shape = shape;
    this.tile = tile;
    this.run = given.run;
    this.window = given.window;
    this.#axes = given.axes;
    this.#position = given.position;
  }

  /** The points of a block: `width` positions from `first` on. */
  static run(shape: readonly number[], first: number | Scalar<"i32">, width: number): Points {
    return new Points(shape, [width], { run: first });
  }

  /** The points of a rectangle, a tile of rows and columns. */
  static window(shape: readonly number[], tile: readonly number[], window: MatrixWindow): Points {
    return new Points(shape, tile, { window });
  }

  /** The axis that the columns of the rectangle begin with: those before it are rows. */
  get split(): number | undefined {
    const { window, shape } = this;
    if (window === undefined) return undefined;
    const found = [...shape.keys(), shape.length].find(
      (axis) =>
        sizeOf(shape.slice(0, axis)) === window.rows &&
        sizeOf(shape.slice(axis)) === window.columns,
    );
    return found;
  }

  /** Points by an index for each axis. */
  static at(shape: readonly number[], tile: readonly number[], axes: readonly Index[]): Points {
    return new Points(shape, tile, { axes });
  }

  /**
   * The rectangle whose rows lie anywhere, where the points are neighbouring columns of such: so they are where they came from a rectangle and
   * only axes other than the innermost were moved.
   */
  get pickedRows(): MatrixWindow | undefined {
    const outer = this.#axes?.slice(0, -1);
    const run = columnRunOf(this.#axes?.at(-1));
    const [height = 1, width] = this.tile;
    if (outer === undefined || run === undefined || run.width !== width) return undefined;
    if (this.tile.length !== 2) return undefined;
    const extent = this.shape.at(-1) ?? 1;
    const { rows: inner = 0, unit: columns = extent } = run.cut ?? {};
    const rows = [...outer, inner];
    const isOfRows = (index: Index): boolean => isUniform(index) || index.shape.at(-1) === 1;
    if (!rows.every(isOfRows) || extent % columns !== 0) return undefined;
    const row = sumOfProducts(rows, stridesOf([...this.shape.slice(0, -1), extent / columns]));
    return {
      rows: this.count / columns,
      columns,
      row: tileOfIndex(row).broadcastTo([height, 1]),
      column: run.start,
    };
  }

  /** The only place of a tensor without axes. */
  scalar(): Points {
    return this.#as("", () => new Points([], this.tile, { axes: [], position: 0 }));
  }

  /** The same places, counted in row-major order, of a tensor of another shape. */
  reshape(shape: readonly number[]): Points {
    if (shape.length === 0) return this.scalar();
    return this.#as(
      shape.join(),
      () =>
        new Points(shape, this.tile, {
          run: this.run,
          window: this.window,
          position: this.#known(),
          ...this.#reshapedAxes(shape),
        }),
    );
  }

  /** The axes of another shape, where these are known: those that a reshape leaves as they are stay what they are. */
  #reshapedAxes(shape: readonly number[]): { readonly axes?: readonly Index[] } {
    const { run, window } = this;
    if (run !== undefined || window !== undefined || this.#axes === undefined) return {};
    return { axes: axesOfReshape(this.#axes, this.shape, shape) };
  }

  #as(key: string, make: () => Points): Points {
    const known = this.#reshaped.get(key);
    if (known !== undefined) return known;
    const made = make();
    this.#reshaped.set(key, made);
    return made;
  }

  /** The position where it is known without computing it from a run or a rectangle. */
  #known(): Index | undefined {
    return this.run === undefined && this.window === undefined ? this.position : undefined;
  }

  /** The row-major position. */
  get position(): Index {
    this.#position ??= this.#computePosition();
    return this.#position;
  }

  #computePosition(): Index {
    if (this.run !== undefined)
      return addIndex(iota(i32, this.tile, { axis: this.tile.length - 1 }), this.run);
    if (this.window === undefined) return sumOfProducts(this.axes, stridesOf(this.shape));
    const { row, column } = rowAndColumn(this.window, this.tile);
    return addIndex(scaleIndex(row, this.window.columns), column);
  }

  /** The index along each axis. */
  get axes(): readonly Index[] {
    this.#axes ??= this.#computeAxes();
    return this.#axes;
  }

  /** Axes that make up the rows of a rectangle come from its rows alone, the others from its columns. */
  #computeAxes(): readonly Index[] {
    const { window, shape, split } = this;
    if (window === undefined) return axesOfPosition(this.position, shape);
    const { row, column } = rowAndColumn(window, this.tile);
    const last = shape.at(-1) ?? 1;
    if (split === undefined && last % window.columns === 0) {
      const rows = axesOfPosition(row, [...shape.slice(0, -1), last / window.columns]);
      return [...rows.slice(0, -1), cutIndex(rows.at(-1) ?? 0, window.columns, column)];
    }
    if (split === undefined) return axesOfPosition(this.position, shape);
    return [
      ...axesOfPosition(row, shape.slice(0, split)),
      ...axesOfPosition(column, shape.slice(split)),
    ];
  }

  /** Computes position and axes now, so that they can be used inside loops and after them. */
  settle(): void {
    void this.position;
    void this.axes;
  }

  axis(at: number): Index {
    const index = this.axes[at];
    if (index === undefined)
      throw new Error(`points of ${this.shape.length} axes have no axis ${at}`);
    return index;
  }

  /** Whether all lanes are at one place. */
  get isUniform(): boolean {
    return this.#known() !== undefined && isUniform(this.position);
  }

  get count(): number {
    return sizeOf(this.shape);
  }
}

function rowAndColumn({ row, column }: MatrixWindow, [height = 1, width = 1]: readonly number[]) {
  const down = isUniform(row) ? addIndex(iota(i32, [height, 1], { axis: 0 }), row) : row;
  return { row: down, column: columnIndex(column, width) };
}

export function sumOfProducts(indices: readonly Index[], factors: readonly number[]): Index {
  return indices.reduce<Index>(
    (sum, index, i) => addIndex(sum, scaleIndex(index, factors[i] ?? 0)),
    0,
  );
}

/** An index for each axis of a row-major position. */
export function axesOfPosition(position: Index, shape: readonly number[]): readonly Index[] {
  const strides = stridesOf(shape);
  return shape.map((extent, axis) => {
    if (extent === 1) return 0;
    const above = divideIndex(position, strides[axis] ?? 1);
    return axis === shape.findIndex((each) => each !== 1) ? above : remainderIndex(above, extent);
  });
}

/** The axes of a shape by those of another one of as many elements: runs of axes with the same product are counted through together. */
function axesOfReshape(
  axes: readonly Index[],
  from: readonly number[],
  to: readonly number[],
): readonly Index[] {
  const found: Index[] = [];
  let [first, next] = [0, 0];
  while (next < to.length) {
    // The least runs of both with the same product.
    let [before, after, last] = [1, to[next] ?? 1, first];
    const start = next++;
    while (before !== after) {
      if (before < after) before *= from[last++] ?? 1;
      else after *= to[next++] ?? 1;
    }
    const position = positionOf(axes.slice(first, last), from.slice(first, last));
    found.push(...axesOfPosition(position, to.slice(start, next)));
    first = last;
  }
  return found;
}

/** The row-major position; where the last axis lies along columns, it stays known that it does. */
function positionOf(axes: readonly Index[], shape: readonly number[]): Index {
  const [last, unit] = [axes.at(-1), shape.at(-1)];
  if (last === undefined || unit === undefined || columnRunOf(last) === undefined)
    return sumOfProducts(axes, stridesOf(shape));
  const outer = sumOfProducts(axes.slice(0, -1), stridesOf(shape.slice(0, -1)));
  return columnRunOf(last)?.cut === undefined
    ? cutIndex(outer, unit, last)
    : addIndex(scaleIndex(outer, unit), last);
}
