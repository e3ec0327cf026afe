/**
 * Matrix products: a block of four rows by eight columns is summed in eight vectors, down k.
 *
 *   c[i … i+3, j … j+7] += a[i … i+3, k] · b[k, j … j+7]
 *
 * Factors lie in f32 (of integers in i32), the right one in whole vectors a row; other formats are converted before.
 */
import { f32, i32 as int32 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { Value } from "../../ir/node.ts";
import { call, i32, load, op as operation, read, splat } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Callee, Expression } from "../loops/ir.ts";
import { castRule } from "./arithmetic.ts";
import { windowLanes } from "./access.ts";
import { computesInSingle } from "./floats.ts";
import type { HeldTile } from "./held.ts";
import { laneKind } from "./lanes.ts";
import { overElements } from "./loops-of-tiles.ts";
import { tileAddress } from "./lowering.ts";
import type { Lowering } from "./lowering.ts";
import { storeIntoTile, tileOf } from "./tiles.ts";

export interface Factor {
  readonly value: Value;
  readonly dtype: DType;
  readonly shape: readonly number[];
}

/** The format in which products are summed; undefined where vectors do not have it. */
export function productDtype(left: DType, right: DType, accumulator: DType): DType | undefined {
  const isNarrow = (dtype: DType): boolean =>
    dtype.kind === "float" && dtype.bits <= 16 && castRule(dtype, f32) !== undefined;
  const single = (dtype: DType): boolean => dtype.name === "f32" || isNarrow(dtype);
  if (single(left) && single(right) && computesInSingle(accumulator)) return f32;
  const integer = (dtype: DType): boolean => dtype.kind !== "float" && dtype.bits <= 32;
  if (integer(left) && integer(right) && accumulator.name === "i32") return int32;
  return undefined;
}

/** A factor in the format of the sums, its rows `width` elements apart. */
function packed(
  lowering: Lowering,
  { value, dtype, shape }: Factor,
  to: DType,
  width: number,
): HeldTile {
  const held = lowering.held(value);
  const [rows = 1, columns = 1] = shape;
  if (held.kind === "tile" && dtype === to && columns === width) return held;
  const tile = lowering.temporaryTile(to, [rows, width]);
  const cast = castRule(dtype, to);
  if (cast === undefined) throw new Error(`${dtype.name} is not converted to ${to.name}`);
  const source = held.kind === "ref" ? undefined : value;
  if (source !== undefined && held.kind !== "lazy") tileOf(lowering, value);
  lowering.root("pack", rows * columns, (b) =>
    overElements(lowering, b, shape, [[0], [1]], (elements, position) => {
      const lanes =
        held.kind === "ref"
          ? windowLanes(elements, held, position)
          : elements.evaluate(value, position);
      const builder = elements.builderAt(position);
      storeIntoTile(elements, tile, position, cast({ builder, relaxed: false }, lanes));
    }),
  );
  return tile;
}

/** Adds the product of the factors to the sums, a tile whose rows may be padded. */
export function emitProduct(lowering: Lowering, left: Factor, right: Factor, sums: HeldTile): void {
  const [m = 1, k = 1] = left.shape;
  const [, n = 1] = right.shape;
  const { dtype } = sums;
  const width = Math.ceil(n / 4) * 4;
  const a = packed(lowering, left, dtype, k);
  const b = packed(lowering, right, dtype, width);
  const padded = width === n ? sums : lowering.temporaryTile(dtype, [m, width]);
  if (padded !== sums) copyRows(lowering, sums, n, padded, width, m);
  const addresses = [a, b, padded].map((tile) => tileAddress(lowering.b, tile));
  const product = productFunction(lowering, dtype);
  lowering.b.run(call(product, ...addresses, i32.of(m), i32.of(width), i32.of(k)));
  if (padded !== sums) copyRows(lowering, padded, width, sums, n, m);
}

/** Rows of words from one distance to another. */
function copyRows(
  { b }: Lowering,
  from: HeldTile,
  fromWidth: number,
  to: HeldTile,
  toWidth: number,
  rows: number,
): void {
  const bytes = 4 * Math.min(fromWidth, toWidth);
  b.countedLoop(i32.of(0), i32.of(rows), 1, (row) => {
    const target = i32.add(to.base, i32.mul(row, i32.of(4 * toWidth)));
    const source = i32.add(from.base, i32.mul(row, i32.of(4 * fromWidth)));
    b.run(
      operation(
        "memory.copy",
        i32.add(target, i32.of(to.offset)),
        i32.add(source, i32.of(from.offset)),
        i32.of(bytes),
      ),
    );
  });
}

const functions = new WeakMap<Lowering, Map<string, Callee>>();

/** sums += a · b: addresses, then rows, columns (a multiple of four) and k. */
function productFunction(lowering: Lowering, dtype: DType): Callee {
  const known = functions.get(lowering) ?? new Map<string, Callee>();
  functions.set(lowering, known);
  const found = known.get(dtype.name);
  if (found !== undefined) return found;
  const { module } = lowering;
  const blocks = [4, 2, 1].map((rows) =>
    [2, 1].map((vectors) => blockFunction(lowering, dtype, rows, vectors)),
  );
  const callee = module.define(
    `product_${dtype.name}`,
    ["i32", "i32", "i32", "i32", "i32", "i32"],
    [],
    (b, left, right, sums, m, n, k) => {
      const row = b.variable(i32.of(0), "i");
      const [byFour = [], byTwo = [], byOne = []] = blocks;
      const band = (list: readonly Callee[], rows: number): void => {
        const a = b.keep(i32.add(left, i32.mul(read(row), i32.mul(k, i32.of(4)))), "a");
        const c = b.keep(i32.add(sums, i32.mul(read(row), i32.mul(n, i32.of(4)))), "c");
        const column = b.variable(i32.of(0), "j");
        const [wide, narrow] = list;
        if (wide === undefined || narrow === undefined) return;
        const block = (callee: Callee): Expression =>
          call(
            callee,
            a,
            i32.add(right, i32.mul(read(column), i32.of(4))),
            i32.add(c, i32.mul(read(column), i32.of(4))),
            n,
            k,
          );
        b.whileLoop(
          () => operation("i32.le_s", i32.add(read(column), i32.of(8)), n),
          () => {
            b.run(block(wide));
            b.set(column, i32.add(read(column), i32.of(8)));
          },
        );
        b.if(operation("i32.lt_s", read(column), n), () => b.run(block(narrow)));
        b.set(row, i32.add(read(row), i32.of(rows)));
      };
      b.whileLoop(
        () => operation("i32.le_s", i32.add(read(row), i32.of(4)), m),
        () => band(byFour, 4),
      );
      b.if(operation("i32.le_s", i32.add(read(row), i32.of(2)), m), () => band(byTwo, 2));
      b.if(operation("i32.lt_s", read(row), m), () => band(byOne, 1));
    },
    { names: ["left", "right", "sums", "m", "n", "k"] },
  );
  known.set(dtype.name, callee);
  return callee;
}

/** One block of the sums: a, b, c, columns of a row of b and c, and k. */
function blockFunction(
  { module, relaxed }: Lowering,
  dtype: DType,
  rows: number,
  vectors: number,
): Callee {
  const float = laneKind(dtype) === "f32";
  const add = (b: FunctionBuilder, sum: Expression, left: Expression, right: Expression) => {
    if (float && relaxed) return operation("f32x4.relaxed_madd", left, right, sum);
    return operation(
      float ? "f32x4.add" : "i32x4.add",
      sum,
      b.keep(operation(float ? "f32x4.mul" : "i32x4.mul", left, right)),
    );
  };
  return module.define(
    `product_${rows}x${4 * vectors}_${dtype.name}`,
    ["i32", "i32", "i32", "i32", "i32"],
    [],
    (b, left, right, result, n, k) => {
      const stride = b.keep(i32.mul(n, i32.of(4)), "stride");
      const places = Array.from({ length: rows }, (_, row) =>
        b.keep(i32.add(left, i32.mul(i32.mul(k, i32.of(4)), i32.of(row))), "row"),
      );
      const sums = Array.from({ length: rows * vectors }, () =>
        b.variable(splat("f32x4", 0), "sum"),
      );
      const place = b.variable(i32.of(0), "k");
      const end = b.keep(i32.mul(k, i32.of(4)), "end");
      const column = b.variable(right, "b");
      b.if(operation("i32.gt_s", end, i32.of(0)), () =>
        b.loop((again) => {
          const columns = Array.from({ length: vectors }, (_, index) =>
            b.keep(load("v128.load", read(column), 16 * index), "b"),
          );
          places.forEach((row, index) => {
            const one = b.keep(load("v128.load32_splat", i32.add(row, read(place))), "a");
            columns.forEach((vector, side) => {
              const sum = sums[index * vectors + side];
              if (sum !== undefined) b.set(sum, add(b, read(sum), one, vector));
            });
          });
          b.set(column, i32.add(read(column), stride));
          b.set(place, i32.add(read(place), i32.of(4)));
          b.branch(again, operation("i32.lt_u", read(place), end));
        }),
      );
      for (let row = 0; row < rows; row++) {
        const to = b.keep(i32.add(result, i32.mul(stride, i32.of(row))), "to");
        for (let side = 0; side < vectors; side++) {
          const sum = sums[row * vectors + side];
          if (sum === undefined) continue;
          const old = load("v128.load", to, 16 * side);
          const total = operation(float ? "f32x4.add" : "i32x4.add", old, read(sum));
          b.store("v128.store", to, total, 16 * side);
        }
      }
    },
    { names: ["left", "right", "sums", "n", "k"] },
  );
}
