/**
 * What picks the elements of an access: tiles of indices, and a mask. By the layout law a lane holds the index and
 * the mask of every element of the tile that it holds, so that each register of the tile has its own:
 *
 *   x.at(rows).load({ where }), rows: [16], where: [16, 1], tile [16, 64] in (L0 L1 L2 L3 | R0 R1 R2 L4 W0 W1)
 *
 *   | register | index           | accessed where                |
 *   |----------|-----------------|-------------------------------|
 *   | 0 … 7    | register 0      | rows[register 0] < n, where   |
 *
 * An index outside its axis is never followed: it counts as out of bounds.
 */
import type { Value } from "../../../ir/node.ts";
import { pickedShape, repetitionsOf } from "../../../ir/indexed.ts";
import type { AccessOp, IndexedShape, Repetition } from "../../../ir/indexed.ts";
import type { Size } from "../../../ir/size.ts";
import type { DistributedLayout } from "../../../layout/algebra/register-layout.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { tileElements } from "../elements.ts";
import { repeatedRegisters } from "../tiles/rearrange.ts";
import type { Truth } from "./guards.ts";

/** An axis of the window that an index tile picks along. */
export interface PickedAxis {
  /** Of the window. */
  readonly axis: number;
  readonly value: Value;
  /** b32, for each register of the tile; undefined for padding. */
  readonly indices: readonly (Register | undefined)[];
}

export interface Picks {
  readonly shape: IndexedShape;
  readonly axes: readonly PickedAxis[];
  /** What must hold of a register's element besides being inside the window's axes that are not indexed. */
  truths(register: number): readonly Truth[];
  /** Whether indices and mask are the same for registers that one instruction would access. */
  agree(registers: readonly number[]): boolean;
}

/** Undefined where the whole window is accessed. */
export function picksOf(
  context: EmitContext,
  op: AccessOp,
  window: readonly Size[],
  tile: { readonly layout: DistributedLayout | undefined; readonly shape: readonly number[] },
): Picks | undefined {
  const { indices, where } = op.operands;
  if (indices.length === 0 && where === undefined) return undefined;
  const shape = pickedShape(op);
  const spread = repetitionsOf(op, tile.shape);
  const found = spread.map((each) => elementsAt(context, each, tile.layout));
  const indexed = op.attributes.indexed ?? [];
  const ranges = new Map<string, Truth>();
  const axes = indexed.map((axis, position): PickedAxis & { readonly inside: readonly Truth[] } => {
    const value = indices[position];
    const own = found[position];
    if (value === undefined || own === undefined) throw new Error("an axis without its indices");
    const size = window[axis] ?? 1;
    const inside = own.map((index) =>
      index === undefined ? true : insideAxis(context, ranges, { value, index, size }),
    );
    const low = own.map((index) => index && lowWord(context, ranges, index));
    return { axis, value, indices: low, inside };
  });
  const masks = maskOf(context, where, found[indices.length]);
  const truths = (register: number): readonly Truth[] => [
    ...axes.map(({ inside }) => inside[register] ?? true),
    ...masks(register),
  ];
  return {
    shape,
    axes,
    truths,
    agree: ([first = 0, ...others]) =>
      others.every((other) => {
        const same = (left: readonly unknown[], right: readonly unknown[]): boolean =>
          left.every((each, position) => each === right[position]);
        return (
          axes.every((axis) => axis.indices[first] === axis.indices[other]) &&
          same(truths(first), truths(other))
        );
      }),
  };
}

/** The register of an operand's element for each register of the tile that it is repeated over. */
function elementsAt(
  context: EmitContext,
  { value, to, axes }: Repetition,
  layout: DistributedLayout | undefined,
): readonly (Register | undefined)[] {
  if (layout === undefined) throw new Error("a scalar has no tiles beside it");
  const tile = context.tile(value);
  const elements = tileElements(context, tile);
  return repeatedRegisters(tile, { layout, shape: to }, axes).map((register) =>
    register === undefined ? undefined : elements[register],
  );
}

function maskOf(
  context: EmitContext,
  where: Value | undefined,
  elements: readonly (Register | undefined)[] | undefined,
): (register: number) => readonly Truth[] {
  if (where === undefined) return () => [];
  if (where.type.kind === "scalar") {
    const { register } = context.scalar(where);
    return () => [register];
  }
  return (register) => [elements?.[register] ?? true];
}

interface Index {
  readonly value: Value;
  readonly index: Register;
  readonly size: Size;
}

/** Whether an index is inside its axis; as an unsigned number what is before the first is behind the last. */
function insideAxis(
  context: EmitContext,
  known: Map<string, Truth>,
  { value, index, size }: Index,
): Truth {
  const { facts } = context.windows;
  const fact = facts.of(value);
  if (fact.least >= 0n && facts.endsWithin(fact, 1, size)) return true;
  const bits = index.type === "b64" ? 64 : 32;
  const key = `inside ${index.name} ${typeof size === "number" ? size : context.size(size, bits).name}`;
  const found = known.get(key);
  if (found !== undefined) return found;
  const end = typeof size === "number" ? integer(size) : context.size(size, bits);
  const made = context.code.make("pred", `setp.lt.u${bits}`, index, end);
  known.set(key, made);
  return made;
}

/** b32: what is left of an index that is inside its axis, which has fewer than 2³¹ elements. */
function lowWord(context: EmitContext, known: Map<string, Truth>, index: Register): Register {
  if (index.type !== "b64") return index;
  const key = `low ${index.name}`;
  const found = known.get(key);
  if (found !== undefined && typeof found !== "boolean") return found;
  const made = context.code.make("b32", "cvt.u32.u64", index);
  known.set(key, made);
  return made;
}
