/** Tiles whose elements count along one axis: the lane's part of the coordinate, and the register's. */
import { i32 } from "../../../formats/dtype.ts";
import type { Op } from "../../../ir/node.ts";
import { product } from "../../../layout/algebra/index-bits.ts";
import { expand } from "../../../layout/algebra/expansion.ts";
import { registersPerLane } from "../../../layout/algebra/register-layout.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { tileFromElements } from "../elements.ts";
import { emitCast } from "../elementwise/casts.ts";
import { indexQuotient, indexRemainder } from "../elementwise/division.ts";
import type { TileValue } from "../values.ts";
import { placesOf, TilePlaces } from "./valid-registers.ts";
import { resultTile } from "./rearrange.ts";

export function iota(op: Op<"iota">, context: EmitContext): void {
  const { dtype, axis } = op.attributes;
  const [result] = op.results;
  const type = resultTile(result);
  const countOf = counter(context, type, axis);
  const known = new Map<Register, Register>();
  const elements = Array.from(
    { length: registersPerLane(type.layout, type.shape) },
    (_, register) => {
      const count = countOf(register);
      const element = known.get(count) ?? emitCast(context, i32, dtype, count);
      known.set(count, element);
      return element;
    },
  );
  context.define(result, tileFromElements(context, type, elements));
}

type Counter = (register: number) => Register;

/** b32: the coordinate of a register's element. */
function counter(
  context: EmitContext,
  { layout, shape }: Pick<TileValue, "layout" | "shape">,
  axis: number,
): Counter {
  const expansion = layout.kind === "splat" ? undefined : expand(layout, shape);
  if (expansion !== undefined) {
    const places = new TilePlaces(context, expansion);
    return sums(context, places.coordinate(axis), (register) =>
      places.registerCoordinate(axis, register),
    );
  }
  // Rows that lanes share out unevenly: the coordinate is a part of the element's number.
  const places = placesOf(context, layout, shape);
  const numberOf = sums(context, places.number, (register) => places.registerNumber(register));
  const inner = product(shape.slice(axis + 1));
  const { code } = context;
  return (register) => {
    const rows = indexQuotient(code, numberOf(register), inner);
    return indexRemainder(code, rows, shape[axis] ?? 1);
  };
}

function sums(
  { code }: EmitContext,
  lane: Register | undefined,
  partOf: (register: number) => number,
): Counter {
  const known = new Map<number, Register>();
  const sum = (part: number): Register => {
    if (lane === undefined) return code.constant("b32", part);
    return part === 0 ? lane : code.make("b32", "add.u32", lane, integer(part));
  };
  return (register) => {
    const part = partOf(register);
    const made = known.get(part) ?? sum(part);
    known.set(part, made);
    return made;
  };
}
