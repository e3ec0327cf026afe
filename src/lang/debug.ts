/** Means for finding mistakes in kernels. They cost nothing on a device that does not run them. */
import type { Value } from "../ir/node.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { isReadable, isRecord } from "../support/options.ts";
import { isDataObject } from "./elementwise.ts";
import type { Scalar } from "./elementwise.ts";
import type { Tile } from "./tile.ts";
import { emit } from "./trace.ts";
import { flattenTree, rebuildTree } from "./tree.ts";
import type { Tree } from "./tree.ts";
import { useValue, wrongKind } from "./traced.ts";

function dataValue(role: string, item: unknown, location: Location): Value {
  if (!isDataObject(item)) return wrongKind(role, "a tile or a scalar", item, location);
  return useValue(item, location);
}

/** Prints when the kernel runs; each `{}` of the text takes the next value. Of a long tile it prints the ends, for `{whole}` all elements in order. */
export function debugPrint(format: string, ...values: readonly (Scalar | Tile)[]): void {
  const location = captureLocation();
  if (typeof format !== "string")
    return wrongKind(
      "the first argument of debugPrint",
      "a text",
      format,
      location,
      'write debugPrint("value {}", value)',
    );
  const operands = {
    values: values.map((value) => dataValue("a value of debugPrint", value, location)),
  };
  emit("debug_print", operands, { format }, location);
}

/**
 * The same values, of which the compiler knows nothing: what computes with them is neither folded with what made them, nor merged with equal
 * computations before, nor moved out of loops.
 */
export function optimizationBarrier<const T extends Tree>(values: T): T;
export function optimizationBarrier(values: unknown): unknown {
  const location = captureLocation();
  const { shape, leaves } = flattenTree("values", values, location);
  if (leaves.length === 0)
    return wrongKind("what optimizationBarrier takes", "tiles and scalars", values, location);
  const operands = { values: leaves.map(({ value }) => value) };
  return rebuildTree(shape, emit("optimization_barrier", operands, {}, location), location);
}

/**
 * Has the compiler tell how a tile lies over lanes and registers here, under a name (TW7514): on the console, or among the notes of the
 * compilation. The simulator knows no layouts and tells nothing. The kernel stays the same.
 */
export function printLayout(tile: Tile, name?: string): void {
  const location = captureLocation();
  if (name !== undefined && typeof name !== "string")
    return wrongKind(
      "the name of printLayout",
      "a text",
      name,
      location,
      'write printLayout(tile, "name")',
    );
  const source = dataValue("what printLayout takes", tile, location);
  emit("print_layout", { source }, name === undefined ? {} : { name }, location);
}

/** Stops the kernel with `message` where the condition is false, in any element of a tile. */
export function assert(condition: Scalar<"bool"> | Tile<"bool">, message: string): void {
  const location = captureLocation();
  if (typeof message !== "string")
    return wrongKind("the message of assert", "a text", message, location);
  const operands = { condition: dataValue("the condition of assert", condition, location) };
  emit("assert", operands, { message }, location);
}

/** Stops the simulator in the debugger, with the named values in sight. */
export function debugBreak(values: { readonly [name: string]: Scalar | Tile } = {}): void {
  const location = captureLocation();
  if (!isRecord(values) || !isReadable(values, []))
    return wrongKind(
      "what debugBreak takes",
      "an object of values by name",
      values,
      location,
      "write debugBreak({ value })",
    );
  const operands = {
    values: Object.values(values).map((value) =>
      dataValue("a value of debugBreak", value, location),
    ),
  };
  emit("debug_break", operands, { names: Object.keys(values) }, location);
}
