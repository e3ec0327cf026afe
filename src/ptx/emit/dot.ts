/**
 * `dot`: the matrix product of two tiles, by the instruction that was chosen for it.
 *
 *   | instruction | operands                          | a step                                  |
 *   |-------------|-----------------------------------|-----------------------------------------|
 *   | wgmma       | windows of shared memory          | 64 rows, all columns, 32 bytes of k     |
 *   | mma.sync    | fragments in registers            | 16 rows, 8 columns, 32 bytes of k       |
 *   | fma         | a lane's own rows and columns      | one product, in the order of k          |
 */
import { f32, tf32 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { Op, Value } from "../../ir/node.ts";
import { elementTable, padding } from "../../layout/algebra/element-maps.ts";
import { registersPerLane } from "../../layout/algebra/register-layout.ts";
import { promotedDepth } from "../../ir/precisions.ts";
import { isPromoted, tileOf } from "../../layout/model/product-instructions.ts";
import type { Product } from "../../layout/model/product-instructions.ts";
import type { Register } from "../module.ts";
import { braces, integer } from "../operands.ts";
import {
  accumulatorWordCount,
  accumulatorWords,
  sharedRef,
  startProduct,
  tensorTypeName,
  waitForProducts,
} from "./asynchronous/products.ts";
import type { ProductOperands } from "./asynchronous/products.ts";
import type { EmitContext } from "./context.ts";
import { tileElements, tileFromElements } from "./elements.ts";
import { emitCast } from "./elementwise/casts.ts";
import { emitConstant } from "./elementwise/constants.ts";
import { emitBinary } from "./elementwise/functions.ts";
import { multiplyDoubles } from "./double-products.ts";
import { wordClass } from "./values.ts";
import type { TileValue } from "./values.ts";
import { layoutOf } from "../../layout/model/placed-types.ts";

type Emission = (op: Op<"dot">, context: EmitContext, result: Value) => TileValue;

const instructions: { readonly [I in Product["instruction"]]: Emission } = {
  wgmma: byWgmma,
  "mma.sync": byMma,
  fma: byFma,
};

export function dot(op: Op<"dot">, context: EmitContext): void {
  const { instruction } = op.attributes;
  const [result] = op.results;
  if (instruction === undefined || result === undefined || !(instruction in instructions))
    throw new Error(`a dot by ${instruction ?? "no instruction"}`);
  const emit = instructions[instruction as Product["instruction"]];
  context.define(result, emit(op, context, result));
}

function dimensions({ operands }: Op<"dot">): readonly [m: number, n: number, k: number] {
  const [left, right] = [matrixOf(operands.left), matrixOf(operands.right)];
  const [m = 0, k = 0] = left;
  return [m, right[1] ?? 0, k];
}

/** The shape of a tile, or of the window that is read in its place. */
function matrixOf({ type, id }: Value): readonly number[] {
  if (type.kind === "tile" || type.kind === "ref") return type.shape.map(Number);
  throw new Error(`%${id} is no matrix`);
}

function initialTile(op: Op<"dot">, context: EmitContext): TileValue | undefined {
  const { accumulator } = op.operands;
  return accumulator && context.tile(accumulator);
}

function byWgmma(op: Op<"dot">, context: EmitContext, result: Value): TileValue {
  const { left, right } = op.operands;
  const { dtype, shape } = tileOf(result);
  const count = accumulatorWordCount(context, shape, dtype);
  const initial = initialTile(op, context);
  const [m, n, k] = dimensions(op);
  const factors = {
    left: left.type.kind === "ref" ? sharedRef(context, left) : context.tile(left),
    right: sharedRef(context, right),
  };
  const add = (words: readonly Register[], part?: ProductOperands["part"]): readonly Register[] => {
    const whole = { accumulator: dtype, words, shape: [m, n, k], ...factors, groups: 1 } as const;
    // What registers held before does not count where sums of a part are to be added to others.
    startProduct(context, part === undefined ? whole : { ...whole, part, adds: integer(0) });
    waitForProducts(context, 0);
    return words;
  };
  const tile = { kind: "tile", dtype, shape, layout: layoutOf(result) } as const;
  if (!isPromoted(op)) return { ...tile, words: add(accumulatorWords(context, count, initial)) };
  let words = initial?.words;
  for (let from = 0; from < k; from += promotedDepth) {
    const part = { from, to: Math.min(from + promotedDepth, k) };
    const sums = add(context.code.registers("b32", count), part);
    words = words === undefined ? sums : addedInF32(context, words, sums);
  }
  return { ...tile, words: words ?? [] };
}

function addedInF32(
  { code }: EmitContext,
  words: readonly Register[],
  sums: readonly Register[],
): readonly Register[] {
  return words.map((word, index) => {
    const sum = sums[index];
    if (sum === undefined) throw new Error("both sums have their words");
    return code.make("b32", "add.rn.f32", word, sum);
  });
}

function byMma(op: Op<"dot">, context: EmitContext, result: Value): TileValue {
  const { code } = context;
  const [warpRows, warpColumns] = op.attributes.warps ?? [];
  if (warpRows === undefined || warpColumns === undefined)
    throw new Error("mma.sync is made by a grid of warps");
  const [left, right] = [
    roundedToTf32(context, op, context.tile(op.operands.left)),
    roundedToTf32(context, op, context.tile(op.operands.right)),
  ];
  const [m, n, k] = dimensions(op);
  const { dtype, shape } = tileOf(result);
  if (dtype.bits === 64) {
    const counts = { rows: m / (16 * warpRows), columns: n / (8 * warpColumns), k };
    const words = multiplyDoubles(context, counts, left, right, initialTile(op, context));
    return { kind: "tile", dtype, shape, layout: layoutOf(result), words };
  }
  const depth = 256 / left.dtype.bits;
  const [rows, columns, steps] = [m / (16 * warpRows), n / (8 * warpColumns), k / depth];
  const perTile = dtype.bits === 16 ? 2 : 4;
  const words = accumulatorWords(context, rows * columns * perTile, initialTile(op, context));
  const name = ({ name: own }: DType): string =>
    own === "f32" ? "tf32" : tensorTypeName({ name: own } as DType);
  const sum = tensorTypeName(dtype);
  const opcode = `mma.sync.aligned.m16n8k${depth}.row.col.${sum}.${name(left.dtype)}.${name(right.dtype)}.${sum}`;
  for (let step = 0; step < steps; step += 1)
    for (let row = 0; row < rows; row += 1)
      for (let column = 0; column < columns; column += 1) {
        const at = perTile * (row * columns + column);
        const sums = braces(words.slice(at, at + perTile));
        const a = 4 * (row * steps + step);
        const b = 2 * (step * columns + column);
        code.emit(opcode, [
          sums,
          braces(left.words.slice(a, a + 4)),
          braces(right.words.slice(b, b + 2)),
          sums,
        ]);
      }
  return { kind: "tile", dtype, shape, layout: layoutOf(result), words };
}

/** f32 operands of a tf32 product are rounded to it as `cast` does, and TMA: halves to even, and NaN stays NaN. */
function roundedToTf32(context: EmitContext, op: Op<"dot">, tile: TileValue): TileValue {
  if (tile.dtype !== f32 || op.attributes.precision !== "tf32") return tile;
  return { ...tile, words: tile.words.map((word) => emitCast(context, f32, tf32, word)) };
}

/** For each register of a lane, the number of its element, as lane 0 sees it. */
function elementsOf(layout: TileValue["layout"], shape: readonly number[]): Int32Array {
  return elementTable(layout, shape).subarray(0, registersPerLane(layout, shape));
}

/** Lanes multiply what they hold: rows of the left operand, columns of the right one. */
function byFma(op: Op<"dot">, context: EmitContext, result: Value): TileValue {
  const { code } = context;
  const { dtype: given, shape } = tileOf(result);
  const layout = layoutOf(result);
  const [, n, k] = dimensions(op);
  const dtype = given.bits === 16 ? f32 : given;
  const sums = initialElements(op, context, layout, result).map((sum) =>
    emitCast(context, given, dtype, sum),
  );
  const left = factor(context, op, "left", dtype);
  const right = factor(context, op, "right", dtype);
  const fused = dtype.kind === "float";
  for (let depth = 0; depth < k; depth += 1)
    elementsOf(layout, shape).forEach((element, register) => {
      if (element === padding) return;
      const [row, column] = [Math.floor(element / n), element % n];
      const a = left.get(row * k + depth);
      const b = right.get(depth * n + column);
      const sum = sums[register];
      if (a === undefined || b === undefined || sum === undefined)
        throw new Error("a lane lacks a factor of its product");
      if (fused) sums[register] = code.make(wordClass(dtype), `fma.rn.${dtype.name}`, a, b, sum);
      else {
        const multiplied = emitBinary(context, "mul", dtype, a, b);
        sums[register] = emitBinary(context, "add", dtype, sum, multiplied);
      }
    });
  const rounded = sums.map((sum) => emitCast(context, dtype, given, sum));
  return tileFromElements(context, { dtype: given, shape, layout }, rounded);
}

function initialElements(
  op: Op<"dot">,
  context: EmitContext,
  layout: TileValue["layout"],
  result: Value,
): Register[] {
  const { dtype, shape } = tileOf(result);
  const initial = initialTile(op, context);
  if (initial !== undefined) return [...tileElements(context, initial)];
  const count = registersPerLane(layout, shape);
  return Array.from({ length: count }, () => emitConstant(context.code, dtype, 0));
}

/** The elements of a factor in the accumulator's format, by their number, as lane 0 holds them. */
function factor(
  context: EmitContext,
  op: Op<"dot">,
  side: "left" | "right",
  dtype: DType,
): ReadonlyMap<number, Register> {
  const tile = roundedToTf32(context, op, context.tile(op.operands[side]));
  const registers = tileElements(context, tile);
  const found = new Map<number, Register>();
  elementsOf(tile.layout, tile.shape).forEach((element, index) => {
    const register = registers[index];
    if (element === padding || register === undefined || found.has(element)) return;
    found.set(element, emitCast(context, tile.dtype, dtype, register));
  });
  return found;
}
