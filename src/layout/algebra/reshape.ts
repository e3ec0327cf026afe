/**
 * Reshaping a register layout: the same elements in row-major order under other axes. It works where
 * the boundaries of the axes fall between digits of the coordinates.
 *
 *   | layout                          | from      | to           | result                                     |
 *   |---------------------------------|-----------|--------------|--------------------------------------------|
 *   | (L2 L3 L4 R1 W0 W1 | R0 L0 L1)  | [64, 8]   | [8, 8, 8]    | (R1 W0 W1 | L2 L3 L4 | R0 L0 L1)           |
 *   | (L2 L3 L4 R1 W0 W1 | R0 L0 L1)  | [64, 8]   | [512]        | (R0 L0 L1 L2 L3 L4 R1 W0 W1)               |
 *   | (L0 L1 L2 L3 L4)                | [4, 96]   | [12, 32]     | (L0 L1 L2 L3 L4)                           |
 *   | (L0 L1 L2 L3 L4)                | [12, 32]  | [32, 12]     | flat(L0 L1 L2 L3 L4)                       |
 *   | (L0 | R0 L1)                    | [2, 6]    | [12]         | undefined: the second axis has padding     |
 */
import { product } from "./index-bits.ts";
import { collapse, expand, expandFlat, mergeAxes, splitAxes } from "./expansion.ts";
import type { Digit } from "./expansion.ts";
import { flatLayout } from "./register-layout.ts";
import type { DistributedLayout, RegisterLayout } from "./register-layout.ts";

export function reshapeLayout(
  layout: RegisterLayout,
  from: readonly number[],
  to: readonly number[],
): RegisterLayout | undefined {
  if (layout.kind !== "axes") return layout;
  const expansion = expand(layout, from);
  if (expansion === undefined) return undefined;
  const axes: (readonly Digit[])[] = [];
  for (const group of matchingGroups(from, to)) {
    const merged = mergeAxes({
      shape: from.slice(...group.from),
      axes: expansion.axes.slice(...group.from),
    });
    const parts = merged && splitAxes(merged, to.slice(...group.to));
    if (parts === undefined) return reshapeFlat(layout, from);
    axes.push(...parts.axes);
  }
  return collapse({ shape: to, axes }) ?? reshapeFlat(layout, from);
}

function reshapeFlat(
  layout: DistributedLayout,
  from: readonly number[],
): RegisterLayout | undefined {
  const expansion = expandFlat(layout, from);
  const merged = expansion && collapse(expansion);
  return merged && flatLayout(merged.axes[0] ?? []);
}

/** A flat layout by the tile's axes; undefined where its bits straddle them. */
export function splitFlat(
  layout: DistributedLayout,
  shape: readonly number[],
): DistributedLayout | undefined {
  const expansion = expand(layout, shape);
  return expansion && collapse(expansion);
}

interface Group {
  readonly from: readonly [number, number];
  readonly to: readonly [number, number];
}

/** The shortest runs of axes with equal products, from the front; ranges are half open. */
function matchingGroups(from: readonly number[], to: readonly number[]): readonly Group[] {
  const groups: Group[] = [];
  let source = 0;
  let target = 0;
  while (source < from.length || target < to.length) {
    const start = { source, target };
    let left = from[source++] ?? 1;
    let right = to[target++] ?? 1;
    while (left !== right) {
      if (left < right) left *= from[source++] ?? 1;
      else right *= to[target++] ?? 1;
      if (source > from.length || target > to.length) {
        const sizes = `${product(from)} and ${product(to)}`;
        throw new Error(`shapes of ${sizes} elements cannot be reshaped into each other`);
      }
    }
    groups.push({
      from: [start.source, Math.min(source, from.length)],
      to: [start.target, Math.min(target, to.length)],
    });
  }
  return groups;
}
