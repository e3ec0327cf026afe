/**
 * Gathers and scatters: index tiles, and a mask. By the layout check a thread holds the index and
 * the mask of every element of the tile that it holds, so that each register of the tile has its own:
 *
 *   x.at(rows).load({ where }), rows: [16], where: [16, 1], tile [16, 64] in (L0 L1 L2 L3 | R0 R1 R2 L4 W0 W1)
 *
 *   | register | index of            | accessed where | traps where                         |
 *   |----------|---------------------|----------------|-------------------------------------|
 *   | 0 … 7    | rows, register 0    | where          | rows[register 0] ≥ n, and where     |
 *
 * An index must be inside its axis, like one that drops it (`bounds-traps.ts`): where the kernel's `guard` says so, lanes ask
 * before anything is accessed.
 */
import type { Value } from "../../../ir/node.ts";
import { gatheredShape, repetitionsOf } from "../../../ir/indexed.ts";
import type { AccessOp, Repetition } from "../../../ir/indexed.ts";
import { sizeText } from "../../../ir/size.ts";
import type { Size } from "../../../ir/size.ts";
import { repeatedRegisters } from "../../../layout/access/register-sources.ts";
import { tileParts } from "../../../layout/access/lane-coordinates.ts";
import { testedIndices } from "../../../layout/access/gathers.ts";
import type { GatheredAxes } from "../../../layout/access/gathers.ts";
import { viewedShape } from "../../../layout/algebra/register-layout.ts";
import type { DistributedLayout } from "../../../layout/algebra/register-layout.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { tileElements } from "../elements.ts";
import { trapOutside } from "../failure.ts";
import { Conjunctions, TileGuards } from "./guards.ts";
import type { Truth } from "./guards.ts";
import { ThreadCoordinates } from "./thread-coordinates.ts";
import { isShort, requireShort } from "./address-arithmetic.ts";

/** An axis of the window that an index tile picks along. */
export interface GatheredAxis {
  /** Of the window. */
  readonly axis: number;
  /** For each register of the tile; undefined for padding. b64 where the axis may have 2³¹ elements or more, else b32. */
  readonly indices: readonly (Register | undefined)[];
  /** The extent of the axis. */
  readonly size: Size;
}

export interface Gather extends GatheredAxes {
  readonly axes: readonly GatheredAxis[];
  /** What the mask says of a register's element. */
  truths(register: number): readonly Truth[];
}

interface GatheredTile {
  /** Undefined for a scalar. */
  readonly layout: DistributedLayout | undefined;
  readonly shape: readonly number[];
}

/** Undefined where the whole window is accessed; asks for indices that may not be inside. */
export function gatherOf(
  context: EmitContext,
  op: AccessOp,
  window: readonly Size[],
  tile: GatheredTile,
  byElements: boolean,
): Gather | undefined {
  const { indices, where } = op.operands;
  if (indices.length === 0 && where === undefined) return undefined;
  const shape = gatheredShape(op);
  const spread = repetitionsOf(op, tile.shape);
  const checked = context.checksPromises && op.attributes.inBounds === true;
  const tested = checked ? indices.map((_, position) => position) : testedIndices(op);
  const found = spread.map((each, position) => {
    const elements = elementsAt(context, each, tile.layout);
    return tested.includes(position) ? movableIndices(context, elements) : elements;
  });
  const masks = maskOf(context, where, found[indices.length]);
  const low = new Map<Register, Register>();
  const indexed = op.attributes.indexed ?? [];
  const axes = indexed.map((axis, position): GatheredAxis => {
    const own = found[position];
    if (own === undefined) throw new Error("an axis without its indices");
    const size = window[axis] ?? 1;
    // Where elements are found one by one, coordinates have 32 bits.
    if (byElements) requireShort(context, size, op.location);
    const short = byElements || isShort(size);
    const indices = own.map((index) => (index && short ? lowWord(context, low, index) : index));
    return { axis, indices, size };
  });
  const inTile = tileTruths(context, tile);
  const unsure = tested.map((position) => ({
    size: window[axes[position]?.axis ?? 0] ?? 1,
    given: found[position] ?? [],
  }));
  const conditions = (register: number) => [inTile(register), ...masks(register)];
  requireIndices(context, unsure, conditions, low);
  return { shape, indexed, axes, truths: masks };
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

interface UnsureIndices {
  readonly size: Size;
  readonly given: readonly (Register | undefined)[];
}

/** Traps where an index of an element that is accessed is not inside its axis. */
function requireIndices(
  context: EmitContext,
  unsure: readonly UnsureIndices[],
  conditions: (register: number) => readonly Truth[],
  low: ReadonlyMap<Register, Register>,
): void {
  const { code } = context;
  const conjunctions = new Conjunctions(context);
  const asked = new Set<string>();
  let outside: Register | undefined;
  for (const { size, given } of unsure)
    given.forEach((index, register) => {
      const condition = conjunctions.all(conditions(register));
      if (index === undefined || condition === false) return;
      // One tile may pick along several axes, which have ends of their own.
      const where = typeof condition === "boolean" ? "" : condition.name;
      const key = `${index.name} ${sizeText(size)} ${where}`;
      if (asked.has(key)) return;
      asked.add(key);
      const beyond = isBeyond(context, index, size);
      const own = condition === true ? beyond : code.make("pred", "and.pred", beyond, condition);
      outside = outside === undefined ? own : code.make("pred", "or.pred", outside, own);
    });
  if (outside === undefined) return;
  trapOutside(context, outside, "an index is not inside", () => {
    const given = new Set(unsure.flatMap((each) => each.given.flatMap((index) => index ?? [])));
    const all = [...given].flatMap((index) => [index, low.get(index) ?? index]);
    return [...new Set(all)].map((index) => [index, integer(0)]);
  });
}

/** Copies of the indices, which a failure moves to the first element (`failure.ts`). */
function movableIndices(
  { code, failureCell }: EmitContext,
  elements: readonly (Register | undefined)[],
): readonly (Register | undefined)[] {
  if (failureCell === undefined) return elements;
  const copies = new Map<Register, Register>();
  return elements.map((index) => {
    if (index === undefined) return undefined;
    const type = index.type === "b64" ? "b64" : "b32";
    const copy = copies.get(index) ?? code.make(type, `mov.${type}`, index);
    copies.set(index, copy);
    return copy;
  });
}

/** As an unsigned number what lies before the first element is behind the last. */
function isBeyond(context: EmitContext, index: Register, size: Size): Register {
  const bits = index.type === "b64" ? 64 : 32;
  const end = typeof size === "number" ? integer(size) : context.size(size, bits);
  return context.code.make("pred", `setp.ge.u${bits}`, index, end);
}

/** Whether a register's element is one of the tile, of which a layout may hold more than there is. */
function tileTruths(
  context: EmitContext,
  { layout, shape }: Pick<GatheredTile, "layout" | "shape">,
): (register: number) => Truth {
  if (layout === undefined) return () => true;
  const parts = tileParts(layout, viewedShape(layout, shape));
  if (parts === undefined) throw new Error(`${layout.text} does not spread [${shape.join()}]`);
  const guards = new TileGuards(context, parts, new ThreadCoordinates(context, parts), {
    rooms: [],
  });
  return (register) => guards.of(register);
}

/** b32: what is left of an index that is inside its axis, which has fewer than 2³¹ elements. */
function lowWord({ code }: EmitContext, known: Map<Register, Register>, index: Register): Register {
  if (index.type !== "b64") return index;
  const found = known.get(index) ?? code.make("b32", "cvt.u32.u64", index);
  known.set(index, found);
  return found;
}
