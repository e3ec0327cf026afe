/**
 * `scaled_dot`: products of narrow floats by instructions of a warp that take scales, 16 rows by 8 columns by 32 bytes of k each.
 *
 *   mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e2m1.f32.ue8m0
 *     {sums}, {a}, {b}, {sums}, {aScales}, {byte, thread}, {bScales}, {byte, thread}
 *
 * A lane's word of scales has four blocks of a row; `byte` and `thread` say which of them, and whose of each four lanes, an instruction takes.
 */
import type { DTypeName } from "../../formats/dtype.ts";
import { kindOfScaledDot } from "../../ir/infer/scaled-dot.ts";
import type { Op } from "../../ir/node.ts";
import { elementTable } from "../../layout/algebra/element-maps.ts";
import { registersPerLane } from "../../layout/algebra/register-layout.ts";
import { layoutOf } from "../../layout/model/placed-types.ts";
import { tileOf } from "../../layout/model/product-instructions.ts";
import { scaleFormatOf, scalesOfStep } from "../../targets/scaled-products.ts";
import type { Operand } from "../module.ts";
import { braces, integer } from "../operands.ts";
import { accumulatorWords } from "./asynchronous/products.ts";
import type { EmitContext } from "./context.ts";
import type { TileValue } from "./values.ts";

const typeNames: { readonly [N in DTypeName]?: string } = {
  f8e4m3fn: "e4m3",
  f8e5m2: "e5m2",
  f6e2m3fn: "e2m3",
  f6e3m2fn: "e3m2",
  f4e2m1fn: "e2m1",
};

export function scaledDot(op: Op<"scaled_dot">, context: EmitContext): void {
  const { code } = context;
  const { operands, attributes } = op;
  const [result] = op.results;
  const [warpRows, warpColumns] = attributes.warps ?? [];
  if (result === undefined || warpRows === undefined || warpColumns === undefined)
    throw new Error("a product with scales is made by a grid of warps");
  const kind = kindOfScaledDot(op);
  const [left, right] = [context.tile(operands.left), context.tile(operands.right)];
  const { dtype, shape } = tileOf(result);
  const [m = 0, n = 0] = shape;
  const k = left.shape[1] ?? 0;
  const [rows, columns, steps] = [m / (16 * warpRows), n / (8 * warpColumns), k / kind.depth];
  const initial = operands.accumulator && context.tile(operands.accumulator);
  const words = accumulatorWords(context, rows * columns * 4, initial);
  const perStep = scalesOfStep(kind);
  const ofLeft = scalesReader(context.tile(operands.leftScales), 2);
  const ofRight = scalesReader(context.tile(operands.rightScales), 4);
  const types = [left, right].map((tile) => typeNames[tile.dtype.name] ?? "").join(".");
  const opcode = `mma.sync.aligned.kind::${kind.name}.block_scale.scale_vec::${perStep}X.m16n8k${kind.depth}.row.col.f32.${types}.f32.${scaleFormatOf(kind)}`;
  for (let step = 0; step < steps; step += 1)
    for (let row = 0; row < rows; row += 1)
      for (let column = 0; column < columns; column += 1) {
        const at = 4 * (row * columns + column);
        const sums = braces(words.slice(at, at + 4));
        const a = 4 * (row * steps + step);
        const b = 2 * (step * columns + column);
        code.emit(opcode, [
          ...[sums, braces(left.words.slice(a, a + 4)), braces(right.words.slice(b, b + 2)), sums],
          ...ofLeft(16 * warpRows * row, step * perStep),
          ...ofRight(8 * warpColumns * column, step * perStep),
        ]);
      }
  context.define(result, { kind: "tile", dtype, shape, layout: layoutOf(result), words });
}

/** Gives the operands that name the scales of fragments from a row and a block on. */
function scalesReader(
  { words, shape, layout }: TileValue,
  threads: number,
): (row: number, block: number) => readonly Operand[] {
  const [, blocks = 1] = shape;
  const registers = registersPerLane(layout, shape);
  const table = elementTable(layout, shape);
  // Of each four lanes, those of even numbers have the scales of row g where only two of them can be named.
  const lanes = Array.from({ length: threads }, (_, thread) => (4 / threads) * thread);
  return (row, block) => {
    for (const [thread, lane] of lanes.entries()) {
      const own = table.subarray(lane * registers, (lane + 1) * registers);
      const place = own.indexOf(row * blocks + block);
      const word = words[place >> 2];
      if (place >= 0 && word !== undefined)
        return [word, braces([integer(place & 3), integer(thread)])];
    }
    throw new Error(`no lane has the scale of row ${row} and block ${block}`);
  };
}
