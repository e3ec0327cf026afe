/**
 * Elements by where they come from: a tile that is repeated, sliced or turned holds elements of another, and each
 * register of its first lane has one register of the other behind it.
 */
import { rowMajorStrides } from "../../formats/shape.ts";
import { firstThreadElements, padding } from "../algebra/element-maps.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";

export interface HeldTile {
  readonly layout: RegisterLayout;
  readonly shape: readonly number[];
}

/** The element of the source for each of the result; undefined where it comes from elsewhere. */
export type Origin = (element: number) => number | undefined;

/** The register of each element that the first lane holds. */
export function registersByElement(
  layout: RegisterLayout,
  shape: readonly number[],
): ReadonlyMap<number, number> {
  const registers = new Map<number, number>();
  firstThreadElements(layout, shape).forEach((element, register) =>
    registers.set(element, register),
  );
  return registers;
}

/** Along each axis of the result a step in the source. */
export function stepping(
  shape: readonly number[],
  strides: readonly number[],
  offset: number,
): Origin {
  return (element) => {
    let rest = element;
    let from = offset;
    for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
      const extent = shape[axis] ?? 1;
      from += (rest % extent) * (strides[axis] ?? 0);
      rest = Math.floor(rest / extent);
    }
    return from;
  };
}

/** The element of a tile that is repeated: its axis i runs along `axes[i]`, unless its extent is 1. */
export function repeating(
  from: readonly number[],
  to: readonly number[],
  axes: readonly number[],
): Origin {
  const own = rowMajorStrides(from);
  const strides = to.map(() => 0);
  axes.forEach((axis, index) => {
    if (from[index] !== 1) strides[axis] = own[index] ?? 0;
  });
  return stepping(to, strides, 0);
}

/** For each register of a tile the register of another that is repeated over it; undefined for padding. */
export function repeatedRegisters(
  source: HeldTile,
  target: HeldTile,
  axes: readonly number[],
): readonly (number | undefined)[] {
  const origin = repeating(source.shape, target.shape, axes);
  const registers = registersByElement(source.layout, source.shape);
  return Array.from(firstThreadElements(target.layout, target.shape), (element) => {
    if (element === padding) return undefined;
    const from = origin(element);
    const register = from === undefined ? undefined : registers.get(from);
    if (register === undefined) throw new Error(`element ${element} is not in its lane`);
    return register;
  });
}
