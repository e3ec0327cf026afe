/**
 * The layout of a reduction's window over threads: each has several vectors of one row, as wide as memory is accessed, and reduces them
 * without exchange with other threads:
 *
 *   1 row of 4096 bf16      thread 0    0 … 7    1024 … 1031    2048 … 2055    3072 … 3079
 *                           thread 1    8 … 15   1032 … 1039    …
 */
import { dtypes } from "../../formats/dtype.ts";
import { iota } from "../../lang/index.ts";
import type { Scalar, Tile } from "../../lang/index.ts";
import { threadsPerBlock } from "../support/sizes.ts";

export class VectorizedLayout {
  readonly #rows: number;
  readonly #columns: number;
  readonly #widest: number;
  /** Elements of a thread. */
  readonly each: number;

  constructor(rows: number, columns: number, widest: number) {
    this.#rows = rows;
    this.#columns = columns;
    this.each = (rows * columns) / threadsPerBlock;
    this.#widest = Math.min(widest, this.each);
  }

  /** [rows, columns] as [threads, elements of each]. */
  byThreads(tile: Tile): Tile {
    const [rows, widest] = [this.#rows, this.#widest];
    const bits = (name: string, count: number): string =>
      Array.from({ length: Math.log2(count) }, (_, bit) => `${name}${bit}`).join(" ");
    return tile
      .reshape([rows, this.each / widest, threadsPerBlock / rows, widest])
      .transpose([0, 2, 1, 3])
      .reshape([threadsPerBlock, this.each])
      .layoutCast(
        `(${bits("L", 32)} ${bits("W", threadsPerBlock / 32)} | ${bits("R", this.each)})`,
      );
  }

  /** The columns of a step. */
  positions(step: Scalar<"i32">): Tile<"i32"> {
    const tile = iota(dtypes.i32, [this.#rows, this.#columns], { axis: 1 });
    return (this.byThreads(tile) as Tile<"i32">).add(step.mul(this.#columns));
  }

  /** The column of an element of each thread, [threads, 1], in a step of its own. */
  position(step: Tile<"i32">, element: Tile<"i32">): Tile<"i32"> {
    const [each, widest] = [threadsPerBlock / this.#rows, this.#widest];
    const lane = iota(dtypes.i32, [threadsPerBlock, 1], { axis: 0 }).rem(each);
    return step
      .mul(this.#columns)
      .add(element.div(widest).mul(each).add(lane).mul(widest))
      .add(element.rem(widest));
  }

  /** What belongs to threads, [threads, 1], as [rows, threads of each]. */
  byRows(tile: Tile): Tile {
    return tile.reshape([this.#rows, threadsPerBlock / this.#rows]);
  }
}
