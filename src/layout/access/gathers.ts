/**
 * Gathers and scatters: accesses whose elements are picked by index tiles and masks, as far as they are known before code is emitted. Which
 * registers of the tile share their index and their mask, and which window is left once indices are added to addresses one by one.
 *
 *   x: [n, 64]     x.at(rows).load({ where }), tile [16, 64] in (L0 L1 L2 L3 | R0 R1 R2 L4 W0 W1)
 *
 *   registers 0 … 7 have rows[register 0], so that 8 elements of a row may be moved at once
 */
import { gatheredShape, repetitionsOf } from "../../ir/indexed.ts";
import type { AccessOp, IndexedShape } from "../../ir/indexed.ts";
import type { Facts } from "../../ir/range-analysis/index.ts";
import { knownDivisor } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { refOf } from "../../ir/traverse.ts";
import { greatestCommonDivisor } from "../../support/integers.ts";
import type { DistributedLayout } from "../algebra/register-layout.ts";
import { layoutOf } from "../model/placed-types.ts";
import { repeatedRegisters } from "./register-sources.ts";
import type { GlobalBox, Index } from "./window.ts";

/** The axes of a window that are indexed, and how the tile lies over it. */
export interface GatheredAxes {
  readonly shape: IndexedShape;
  /** Of the window, in the order of the index tiles. */
  readonly indexed: readonly number[];
}

export interface GatheredTile extends GatheredAxes {
  /** Whether indices and mask are the same for registers that one instruction would access. */
  agree(registers: readonly number[]): boolean;
}

/** Undefined where the whole window is accessed. */
export function gatheredTile(
  op: AccessOp,
  layout: DistributedLayout | undefined,
  shape: readonly number[],
): GatheredTile | undefined {
  const { indices, where } = op.operands;
  if (indices.length === 0 && where === undefined) return undefined;
  const behind = repetitionsOf(op, shape).map(({ value, from, to, axes }) => {
    if (layout === undefined) throw new Error("a scalar has no tiles beside it");
    return repeatedRegisters({ layout: layoutOf(value), shape: from }, { layout, shape: to }, axes);
  });
  return {
    shape: gatheredShape(op),
    indexed: op.attributes.indexed ?? [],
    agree: ([first = 0, ...others]) =>
      behind.every((registers) => others.every((other) => registers[first] === registers[other])),
  };
}

/** The strides of the axes that are indexed. */
export function indexedStrides(window: GlobalBox, indexed: readonly number[]): readonly Size[] {
  return indexed.map((axis) => window.array[window.axes[axis]?.root ?? 0]?.stride ?? 1);
}

/**
 * The window with indexed axes at their first element and an axis that leads nowhere for each of the index tiles':
 * what indices add to an address is added element by element.
 */
export function heldWindow<P extends Index, W extends GlobalBox<P>>(
  window: W,
  { shape, indexed }: GatheredAxes,
  zero: P,
): W {
  const nowhere = window.array.length;
  const moved = indexedStrides(window, indexed).reduce<number>(
    (divisor, stride) => greatestCommonDivisor(divisor, knownDivisor(stride)),
    window.moved ?? 0,
  );
  return {
    ...window,
    moved: indexed.length === 0 ? window.moved : moved,
    array: [...window.array, { extent: 1, stride: 0 }],
    origin: [...window.origin, zero],
    axes: shape.shape.map(
      (size, axis) =>
        window.axes[shape.axisOf.indexOf(axis)] ?? { root: nowhere, size, bounds: [] },
    ),
  };
}

const testedPattern = /^index (\d+)$/;

/** How the kernel's text says that an index tile is tested. */
export function testedIndexText(position: number): string {
  return `index ${position}`;
}

/** The index tiles, by their position, of which the access asks whether they are inside. */
export function testedIndices({ attributes: { guard = [] } }: AccessOp): readonly number[] {
  return guard.map((text) => {
    const [, position] = testedPattern.exec(text) ?? [];
    if (position === undefined) throw new Error(`a guard names no index: ${text}`);
    return Number(position);
  });
}

/** The index tiles of which facts do not prove that each element is inside its axis. */
export function unprovedIndices(
  { operands, attributes }: AccessOp,
  facts: Facts,
): readonly number[] {
  if (attributes.inBounds === true) return [];
  const { shape } = refOf(operands.ref);
  return operands.indices.flatMap((value, position) => {
    const size = shape[attributes.indexed?.[position] ?? 0] ?? 1;
    const fact = facts.of(value);
    return fact.least >= 0n && facts.endsWithin(fact, 1, size) ? [] : [position];
  });
}
