/** Which lane holds which element of a tile, as tables, and elements by their coordinates. */
import type { Value } from "../../src/ir/node.ts";
import { elementTable, padding } from "../../src/layout/algebra/element-maps.ts";
import { registersPerLane } from "../../src/layout/algebra/register-layout.ts";
import type { RegisterLayout } from "../../src/layout/algebra/register-layout.ts";

export type Shape = readonly number[];
/** For each lane of the program thread, the elements it holds. */
export type Holdings = readonly ReadonlySet<number>[];

export function product(shape: Shape): number {
  return shape.reduce((count, extent) => count * extent, 1);
}

export function shapeOf({ type }: Value): Shape {
  return type.kind === "tile" || type.kind === "inflight" ? type.shape : [];
}

export function holdingsOf(layout: RegisterLayout, shape: Shape, warps: number): Holdings {
  const registers = registersPerLane(layout, shape);
  const table = elementTable(layout, shape, warps);
  return Array.from({ length: 32 * warps }, (_, lane) => {
    const held = new Set<number>();
    for (let at = lane * registers; at < (lane + 1) * registers; at += 1) {
      const element = table[at];
      if (element !== undefined && element !== padding) held.add(element);
    }
    return held;
  });
}

export function coordinates(element: number, shape: Shape): number[] {
  const found = shape.slice();
  let rest = element;
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    const extent = shape[axis] ?? 1;
    found[axis] = rest % extent;
    rest = Math.floor(rest / extent);
  }
  return found;
}

export function numberOf(found: Shape, shape: Shape): number {
  return found.reduce((sum, coordinate, axis) => sum * (shape[axis] ?? 1) + coordinate, 0);
}

/** Thread bits along which lanes share out the given axes. */
export function sharedBits(layout: RegisterLayout, rank: number, axes: readonly number[]): number {
  if (layout.kind === "splat") return 0;
  if (layout.kind === "flat") return -1;
  const leading = rank - layout.axes.length;
  const owners = axes.flatMap((axis) => layout.axes[axis - leading] ?? []);
  return owners.reduce((mask, bit) => (bit < 0 ? mask | (1 << (-1 - bit)) : mask), 0);
}
