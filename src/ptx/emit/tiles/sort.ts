/**
 * Sorting along an axis, all of it or its first elements (`sorting-network.ts`). What is moved is a carrier:
 *
 *   | op                       | carrier                                                                        |
 *   |--------------------------|--------------------------------------------------------------------------------|
 *   | keys alone               | the key, since equal keys are the same number                                  |
 *   | positions                | the key with its number along the axis, which makes the order stable           |
 *   | payloads, with positions | the same, and the payloads                                                     |
 */
import { i32 } from "../../../formats/dtype.ts";
import type { Op } from "../../../ir/node.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { TileValue } from "../values.ts";
import { alignedElements, tileFromAligned } from "./left-aligned-keys.ts";
import { numbersAlong } from "./arg-reduce.ts";
import type { Carrier } from "./combining.ts";
import { elementOfKey, orderedKey } from "./keys.ts";
import type { KeyOrder } from "./keys.ts";
import { convertTile } from "./convert.ts";
import { TilePlaces } from "./valid-registers.ts";
import { RankedKeys } from "./key-index-pairs.ts";
import { resultTile } from "./rearrange.ts";
import { axisOf, workingTile } from "./scan.ts";
import type { WorkingAxis } from "./scan.ts";
import { bitsOf, SortingNetwork } from "./sorting-network.ts";
import type { Comparison } from "./sorting-network.ts";

export function sort(op: Op<"sort">, context: EmitContext): void {
  const { keys, payloads } = op.operands;
  const { axis, descending } = op.attributes;
  const [first, ...others] = [keys, ...payloads].map((value) =>
    workingTile(context, context.tile(value), axis, op),
  );
  if (first === undefined) throw new Error("a sort without keys");
  const order: KeyOrder = { descending, equalZeros: false, nan: "greatest" };
  const working = axisOf(first, axis);
  const hasPositions = op.attributes.positions === true;
  const carried = carriersOf(context, first, others, axis, order, hasPositions);
  const padded = withPaddingLast(context, working, carried);
  const network = new SortingNetwork(context, op, working, padded, carried);
  const kept = op.attributes.first;
  const sorted = kept === undefined ? network.sorted() : network.first(kept);
  const moved = [first, ...others, ...(hasPositions ? [{ ...first, dtype: i32 }] : [])];
  const results = moved.map((tile, position) =>
    tileFromAligned(
      context,
      tile,
      sorted.map((carrier) => carried.element(carrier, position)),
    ),
  );
  results.forEach((tile, position) => {
    const target = op.results[position];
    const { layout } = resultTile(target);
    context.define(target, convertTile(context, tile, layout, op));
  });
}

/** What the network moves. */
interface Carried extends Comparison {
  readonly carriers: readonly Carrier[];
  /** The element of the key, of the payload at `position` - 1, or behind all payloads its number; in the highest bits. */
  element(carrier: Carrier, position: number): Register;
}

function carriersOf(
  context: EmitContext,
  keys: TileValue,
  payloads: readonly TileValue[],
  axis: number,
  order: KeyOrder,
  hasPositions: boolean,
): Carried {
  const { dtype, layout, shape } = keys;
  const elements = alignedElements(context, keys).map((element) =>
    orderedKey(context, dtype, element, order),
  );
  const keyOf = (key: Register): Register => elementOfKey(context, dtype, key, order);
  if (payloads.length === 0 && !hasPositions)
    return {
      carriers: elements.map((key) => [key]),
      last: [integer(-1)],
      before: (left, right) => beforeOf(context, left, right),
      element: (carrier) => keyOf(at(carrier, 0)),
    };
  const ranked = new RankedKeys(context, dtype, 2 ** bitsOf(shape[axis] ?? 1));
  const numberOf = numbersAlong(context, layout, shape, axis);
  const columns = payloads.map((payload) => alignedElements(context, payload));
  return {
    carriers: elements.map((key, register) => [
      ...ranked.join(key, numberOf(register)),
      ...columns.map((column) => at(column, register)),
    ]),
    last: ranked.last,
    before: (left, right) => ranked.before(left, right),
    element: (carrier, position) => {
      if (position === 0) return keyOf(ranked.key(carrier));
      if (position > payloads.length) return ranked.number(carrier);
      return at(carrier, ranked.width + position - 1);
    },
  };
}

function beforeOf({ code }: EmitContext, left: Carrier, right: Carrier): Register {
  const own = at(left, 0);
  return code.make("pred", `setp.lt.u${own.type === "b64" ? 64 : 32}`, own, at(right, 0));
}

function at(registers: readonly Register[], index: number): Register {
  const register = registers[index];
  if (register === undefined) throw new Error("a register outside its list");
  return register;
}

function withPaddingLast(
  context: EmitContext,
  { along, axis }: WorkingAxis,
  { carriers, last }: Carried,
): readonly Carrier[] {
  const places = new TilePlaces(context, along.expansion);
  const { code } = context;
  return carriers.map((carrier, register) => {
    const inside = places.inside(register, [axis]);
    if (inside === true) return carrier;
    return carrier.map((each, index) => {
      const replacement = last[index];
      if (replacement === undefined) return each;
      const type = each.type === "b64" ? "b64" : "b32";
      return inside === false
        ? code.make(type, `mov.${type}`, replacement)
        : code.make(type, `selp.${type}`, each, replacement, inside);
    });
  });
}
