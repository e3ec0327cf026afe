/**
 * An array of a list, by an index that is known at run time: its address is selected bit by bit of the index, among
 * addresses that are parameters.
 *
 *   of four      selp %lower, %xs1, %xs0, %bit0;   selp %upper, %xs3, %xs2, %bit0;   selp %base, %upper, %lower, %bit1;
 *
 * An index that is not there selects some array of the list; it is the access that asks, and traps.
 */
import type { Op } from "../../../ir/node.ts";
import { arrayIndex } from "../../../layout/access/indexed-barriers.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { GlobalValue } from "../values.ts";
import { positionOf } from "./positions.ts";

export function selectedArray(context: EmitContext, op: Op<"select_ref">): GlobalValue {
  const { refs, index } = op.operands;
  const { name = "list", guard = [] } = op.attributes;
  const arrays = refs.map((ref) => globalArray(context.ref(ref)));
  const [first] = arrays;
  const [root] = op.results;
  const place = arrayIndex(op);
  if (first === undefined || root === undefined || place === undefined)
    throw new Error("select_ref selects one of several");
  const { register } = context.scalar(index);
  const bases = arrays.map(({ base }) => base);
  const base = selectedRegister(context, bases, register);
  const { redirects, failureCell } = context;
  if (failureCell !== undefined && base !== first.base) redirects.set(base, first.base);
  const bound = { start: positionOf(context, index), count: 1, size: place.extent };
  return {
    ...first,
    root,
    name,
    base,
    readOnly: arrays.every(({ readOnly }) => readOnly),
    required: guard.includes(place.text) ? [bound] : [],
  };
}

function globalArray(array: ReturnType<EmitContext["ref"]>): GlobalValue {
  if (array.kind !== "global") throw new Error("lists are of arrays in global memory");
  return array;
}

/** The register of that number. */
export function selectedRegister(
  context: EmitContext,
  registers: readonly Register[],
  index: Register,
): Register {
  return selectedBy(context, registers, index, 0);
}

/** The register of that number, by the bits of the index from `bit` on. */
function selectedBy(
  context: EmitContext,
  bases: readonly Register[],
  index: Register,
  bit: number,
): Register {
  const [first] = bases;
  if (first === undefined) throw new Error("there is no array to select");
  if (bases.length === 1) return first;
  const { code } = context;
  const own = code.make("b32", "and.b32", index, integer(2 ** bit));
  const isSet = code.make("pred", "setp.ne.u32", own, integer(0));
  const half: Register[] = [];
  for (let even = 0; even < bases.length; even += 2) {
    const [low, high] = bases.slice(even, even + 2);
    if (low === undefined) continue;
    half.push(high === undefined ? low : code.make("b64", "selp.b64", high, low, isSet));
  }
  return selectedBy(context, half, index, bit + 1);
}
