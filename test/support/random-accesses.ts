/** Random accesses to memory: windows, loads and stores, elements picked by index tiles and masks. */
import { f32, i32, i64 } from "../../src/formats/dtype.ts";
import { indexedShape } from "../../src/ir/indexed.ts";
import type { Value } from "../../src/ir/node.ts";
import { dataType, scalarType } from "../../src/ir/types.ts";
import { RandomValues, shapes } from "./random-values.ts";
import type { DataValue } from "./random-values.ts";

/** Rows that a block handles, and columns of every array. */
export const blockRows = 4;
export const columns = 8;

export const windowShape = [blockRows, columns];

export class RandomAccesses extends RandomValues {
  /** Windows on initialised memory that the thread owns, in sight. */
  protected buffers: Value[] = [];
  protected inputs: readonly Value[] = [];

  /** The block's rows of an array; the last block's may reach beyond it. */
  protected window(array: Value): Value {
    const index = this.number("block_index", {}, { axis: "i" });
    const rows = this.constant(i32, [], blockRows);
    const first = this.number("binary", { left: index, right: rows }, { fn: "mul" });
    const offsets = [first, this.constant(i32, [], 0)];
    return this.one("slice_ref", { ref: array, offsets }, { sizes: windowShape, dropped: [] });
  }

  protected load(): void {
    if (this.chance(0.5))
      this.give("load", { ref: this.#view(this.random.pick(this.buffers)), indices: [] }, {});
    else {
      const ref = this.window(this.random.pick(this.inputs));
      const dtype = ref.type.kind === "ref" ? ref.type.dtype : f32;
      this.give("load", { ref, indices: [], fill: this.constantOf(scalarType(dtype)) }, {});
    }
  }

  /** Elements of a window by one or two index tiles that stay inside it, or by a mask, or both. */
  protected pick(): void {
    const ref = this.chance(0.5)
      ? this.#view(this.random.pick(this.buffers))
      : this.window(this.random.pick(this.inputs));
    if (ref.type.kind !== "ref") return;
    const extents = ref.type.shape.map(Number);
    const indexed = extents.flatMap((_, axis) => (this.chance(0.6) ? [axis] : []));
    const shape = this.random.pick(shapes.filter(({ length }) => length > 0));
    const indices = indexed.map((axis) => this.#indexTile(shape, extents[axis] ?? 1));
    const picked = indexedShape(extents, indexed, indexed.length === 0 ? [] : shape).shape;
    const where = this.chance(0.5) ? this.#mask(picked.map(Number)) : undefined;
    const fill = this.constantOf(scalarType(ref.type.dtype));
    this.give("load", { ref, indices, ...(where && { where }), fill }, { indexed });
  }

  /** Stores to distinct rows or elements of a buffer, with or without a mask. */
  protected scatter(): void {
    const ref = this.random.pick(this.buffers);
    if (ref.type.kind !== "ref") return;
    const axis = this.random.below(2);
    const extents = ref.type.shape.map(Number);
    const order = this.#distinct(extents[axis] ?? 1);
    const where = this.chance(0.5) ? this.#mask(extents) : undefined;
    const value = this.ofType(dataType(ref.type.dtype, extents));
    const operands = { ref, value, indices: [order], ...(where && { where }) };
    this.add("store", operands, { indexed: [axis] }, {});
  }

  /** Each number below an extent once: in their order, or turned around. */
  #distinct(extent: number): Value {
    const numbers = this.one("iota", {}, { dtype: i32, shape: [extent], axis: 0 });
    if (this.chance(0.3)) return numbers;
    const last = this.constant(i32, [extent], extent - 1);
    return this.one("binary", { left: last, right: numbers }, { fn: "sub" });
  }

  /** Numbers from 0 below an extent, of either width. */
  #indexTile(shape: readonly number[], extent: number): Value {
    const dtype = this.chance(0.7) ? i32 : i64;
    const any = this.spread(this.pickFrom(this.pool), shape);
    const whole = any.type.dtype === dtype ? any : this.cast(any, dtype);
    const by = this.constant(dtype, shape, dtype === i64 ? BigInt(extent) : extent);
    const rest = this.one("binary", { left: whole, right: by }, { fn: "rem" });
    // Remainders have the sign of the dividend.
    const moved = this.one("binary", { left: rest, right: by }, { fn: "add" });
    return this.one("binary", { left: moved, right: by }, { fn: "rem" });
  }

  /** A mask over a tile, of which some axes repeat. */
  #mask(shape: readonly number[]): Value {
    const own = shape.map((extent) => (this.chance(0.3) ? 1 : extent));
    const zero = this.constant(i32, own, 0);
    const any = this.ofType(dataType(i32, own));
    return this.one("compare", { left: any, right: zero }, { predicate: "gt" });
  }

  /** A window on the buffer: itself, a part, or the whole in another arrangement. */
  #view(buffer: Value): Value {
    const zero = () => this.constant(i32, [], 0);
    const row = () => this.constant(i32, [], this.random.below(blockRows));
    const makers = [
      () => buffer,
      () =>
        this.one(
          "slice_ref",
          { ref: buffer, offsets: [zero(), zero()] },
          { sizes: windowShape, dropped: [] },
        ),
      () =>
        this.one(
          "slice_ref",
          { ref: buffer, offsets: [row(), zero()] },
          { sizes: [1, columns], dropped: [0] },
        ),
      () => this.one("transpose_ref", { ref: buffer }, { permutation: [1, 0] }),
      () => this.one("reshape_ref", { ref: buffer }, { shape: [columns, blockRows] }),
    ];
    return this.random.pick(makers)();
  }

  protected storeSomewhere(): void {
    const ref = this.#view(this.random.pick(this.buffers));
    if (ref.type.kind !== "ref") return;
    const shape = ref.type.shape.map(Number);
    this.store(ref, this.ofType(dataType(ref.type.dtype, shape)));
  }

  protected store(ref: Value, value: DataValue): void {
    this.add("store", { ref, value, indices: [] }, {}, {});
  }
}
