/**
 * Where four elements of a tile lie, a coordinate an axis:
 *
 *   [row, column+]     lanes go along the columns; the innermost loop counts them, or the rows
 */
import { i32 } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";

/** Where along an axis: a number, or a local. */
export interface Coordinate {
  readonly at: Expression;
  /** Whether it is the first of four along the vector's axis. */
  readonly vector: boolean;
  /** Whether the innermost loop counts it. */
  readonly inner: boolean;
}

export type Position = readonly Coordinate[];

export const origin: Coordinate = { at: i32.of(0), vector: false, inner: false };

export function coordinateKey({ at, vector }: Pick<Coordinate, "at" | "vector">): string {
  const text =
    at.form === "local" ? at.local.name : at.form === "constant" ? String(at.value) : "?";
  return vector ? `${text}+` : text;
}

export function vectorAxis(position: Position): number {
  return position.findIndex(({ vector }) => vector);
}
