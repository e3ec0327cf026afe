/**
 * From what the user wrote beside a value to operands of one shape: plain numbers become constants,
 * smaller values are broadcast.
 *
 *   tile<f32, [128, 64]> .mul( tile<f32, [64]> )     the right one is broadcast to [128, 64]
 *   tile<f32, [128, 64]> .mul( 2 )                   a constant of f32, [128, 64]
 */
import { i32 } from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";
import type { Literal } from "../ir/schema.ts";
import type { Value } from "../ir/node.ts";
import { sizeText } from "../ir/size.ts";
import type { Size } from "../ir/size.ts";
import { isData } from "../ir/types.ts";
import type { DataType } from "../ir/types.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { broadcastValue, joinShapes, shapeOf } from "./broadcast.ts";
import { constantValue, isPlain } from "./constants.ts";
import { isSize, sizeValue } from "./sizes.ts";
import { describe, origin, Traced, useValue, wrongKind } from "./traced.ts";

/** The type of a scalar or a tile of some trace. */
function dataType(item: unknown): DataType | undefined {
  if (!(item instanceof Traced)) return undefined;
  const { type } = item[origin].value;
  return isData(type) ? type : undefined;
}

const remedies: { readonly [kind: string]: string } = {
  ref: "load the window first, with `.load()`",
  inflight: "wait for the accumulator first, with `.wait()`",
};

/** Refuses what is neither traced data nor a plain number. */
export function wrongOperand(label: string, item: unknown, location: Location): never {
  const remedy = item instanceof Traced ? remedies[item[origin].value.type.kind] : undefined;
  return wrongKind(
    `an operand of ${label}`,
    "a tile, a scalar or a number",
    item,
    location,
    remedy,
  );
}

/** The operands as values of `dtype` and of one shape; a constant takes both from the others. */
export function resolveOperands<const T extends readonly unknown[]>(
  label: string,
  dtype: DType,
  items: T,
  location: Location,
): { readonly [I in keyof T]: Value };
export function resolveOperands(
  label: string,
  dtype: DType,
  items: readonly unknown[],
  location: Location,
): readonly Value[] {
  const found: (Value | Literal)[] = [];
  const shapes: (readonly number[])[] = [];
  for (const item of items) {
    const operand = isPlain(item) ? item : operandValue(label, dtype, item, location);
    found.push(operand);
    if (!isPlain(operand)) shapes.push(shapeOf(operand));
  }
  const shape = joinShapes(label, shapes, location);
  const resolved: Value[] = [];
  for (const item of found)
    resolved.push(
      isPlain(item)
        ? constantValue(dtype, shape, item, location)
        : broadcastValue(item, shape, location),
    );
  return resolved;
}

function operandValue(label: string, dtype: DType, item: unknown, location: Location): Value {
  if (item instanceof Traced && dataType(item) !== undefined) return useValue(item, location);
  return isSize(item)
    ? sizeOperand(label, dtype, item, location)
    : wrongOperand(label, item, location);
}

/** A size is an i32; anything else has to be asked for. */
function sizeOperand(label: string, dtype: DType, size: Size, location: Location): Value {
  const value = sizeValue(size, location);
  if (dtype === i32) return value;
  throw new TilewrightError({
    code: "TW2003",
    message: `operands of ${label} have different dtypes`,
    location,
    expected: dtype.name,
    found: `i32, the size ${sizeText(size)}`,
    remedy: `write constant(${dtype.name}, ${sizeText(size)})`,
  });
}

/** The dtype that plain numbers among `items` take: that of a traced one. */
export function commonDType(label: string, items: readonly unknown[], location: Location): DType {
  for (const item of items) {
    const type = dataType(item);
    if (type !== undefined) return type.dtype;
  }
  for (const item of items) if (!isPlain(item)) wrongOperand(label, item, location);
  throw new TilewrightError({
    code: "TW1009",
    message: `${label} of plain values alone has no dtype`,
    location,
    expected: "at least one tile or scalar",
    found: items.map(describe).join(" and "),
  });
}
