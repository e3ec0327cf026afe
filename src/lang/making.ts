/** How results of elementwise functions become objects, and bools are watched until something uses them. */
import type { Value } from "../ir/node.ts";
import { isData } from "../ir/types.ts";
import type { Location } from "../support/location.ts";
import { activeTrace, originOf } from "./trace.ts";
import type { Origin } from "./trace.ts";
import { Traced } from "./traced.ts";

/** Makes the object for a result. */
export const make = Symbol("make");

interface Maker {
  [make](made: Origin): unknown;
}

/** A tile without axes is a scalar to the IR, and stays a tile to its user. */
function makesTiles(item: unknown): item is Maker {
  return item instanceof Traced && make in item && "kind" in item && item.kind === "tile";
}

/** A result of `self` and `others`, made by the one of them that is a tile, if any. */
export function combine<R>(
  self: Maker,
  others: readonly unknown[],
  value: Value,
  location: Location,
): R {
  const maker = [self, ...others].find(makesTiles) ?? self;
  return maker[make](originOf(value, location)) as R;
}

/** Remembers a bool until something in the kernel uses it. */
export function noteCondition(value: Value, made: string, location: Location): Value {
  if (isData(value.type) && value.type.dtype.kind === "bool")
    activeTrace(made, location).expectUse(value, { made, location });
  return value;
}
