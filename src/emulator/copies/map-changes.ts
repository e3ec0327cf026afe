/**
 * Tensor maps that a kernel changes: `tensormap.replace` sets one field of the 128 bytes, at once and for
 * ordinary accesses; `tensormap.cp_fenceproxy` copies a map to global memory and releases it to copies.
 *
 *   tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [map], 1, %r0;
 *                          field       space              axis  value
 *
 * What hardware and assembler make of the values was measured: counts lose one and are cut to their field,
 * and a type other than tf32 leaves the bit of tf32 as it is.
 */
import { forLanes, lanesOf, recordOrdinary } from "../asynchronous.ts";
import type { Issuer } from "../asynchronous.ts";
import { mapOrderOf } from "../checks/tensor-map-order.ts";
import type {
  AddressKind,
  Collective,
  CollectiveInstruction,
  CollectiveRule,
  OperandView,
  Place,
} from "../collective.ts";
import { checkWritten } from "../reports.ts";
import {
  largestRank,
  mapFields,
  setField,
  setStride,
  tensorMapBytes,
} from "../tensor-map-fields.ts";
import type { BitField } from "../tensor-map-fields.ts";
import { CarriedBytes } from "./bytes.ts";

/** Sets a field of a map; `axis` is 0 where the field has none. */
type Replace = (view: DataView, axis: number, value: bigint) => void;

function word(value: bigint): number {
  return Number(BigInt.asUintN(32, value));
}

function plain(field: BitField): Replace {
  return (view, _axis, value) => setField(view, field, word(value));
}

/** Counts are held less one. */
function count(field: (axis: number) => BitField): Replace {
  return (view, axis, value) => setField(view, field(axis), word(value - 1n));
}

const tf32Types = 11n;
const tf32Distance = 4;

const setType: Replace = (view, _axis, value) => {
  const isTf32 = value >= tf32Types;
  setField(view, mapFields.type, word(value) - (isTf32 ? tf32Distance : 0));
  if (isTf32) setField(view, mapFields.tf32, 1);
};

const setSwizzle: Replace = (view, _axis, value) => {
  setField(view, mapFields.swizzle, word(value));
  setField(view, mapFields.wideSwizzle, 0);
};

interface MapField {
  readonly replace: Replace;
  /** The largest value whose bits in a map are known. */
  readonly largest?: number;
  /** How many axes it has; 0 where it is one for the map. */
  readonly axes: number;
}

const fields: { readonly [name: string]: MapField } = {
  global_address: { replace: (view, _axis, value) => view.setBigUint64(0, value, true), axes: 0 },
  rank: { replace: plain(mapFields.rank), axes: 0 },
  box_dim: { replace: count(mapFields.box), axes: largestRank },
  global_dim: { replace: count(mapFields.extent), axes: largestRank },
  global_stride: { replace: setStride, axes: largestRank - 1 },
  element_stride: { replace: count(mapFields.elementStride), axes: largestRank },
  elemtype: { replace: setType, axes: 0, largest: 12 },
  interleave_layout: { replace: plain(mapFields.interleave), axes: 0 },
  swizzle_mode: { replace: setSwizzle, axes: 0, largest: 3 },
  fill_mode: { replace: plain(mapFields.fill), axes: 0 },
};

function placeOf(issuer: Issuer, operand: OperandView, kind: AddressKind): Place {
  const { machine, warp, lane, instruction } = issuer;
  const address = operand.address(warp, lane);
  const bytes = tensorMapBytes;
  return machine.resolve({ warp, instruction, lane, kind, address, bytes, alignment: bytes });
}

function spaceOf(modifiers: readonly string[]): AddressKind {
  if (modifiers.includes("global")) return "global";
  return modifiers.includes("shared::cta") ? "shared" : "generic";
}

function replaceRule(instruction: CollectiveInstruction): Collective | undefined {
  const { modifiers, operands } = instruction;
  const field = fields[modifiers[2] ?? ""];
  const [target] = operands;
  const value = operands.at(-1);
  if (field === undefined || target === undefined || value === undefined) return undefined;
  const constant = value.operand.kind === "integer" ? Number(value.operand.value) : 0;
  if (constant > (field.largest ?? Infinity)) return undefined;
  const ordinal = operands[1]?.operand;
  const axis = field.axes === 0 ? 0 : ordinal?.kind === "integer" ? Number(ordinal.value) : -1;
  if (axis < 0 || axis >= Math.max(1, field.axes)) return undefined;
  const isWide = modifiers.at(-1) === "b64";
  return forLanes(instruction, (issuer) => {
    const { machine, warp, lane } = issuer;
    const place = placeOf(issuer, target, spaceOf(modifiers));
    checkWritten(machine, warp, instruction, place, tensorMapBytes);
    recordOrdinary(issuer, place, tensorMapBytes, "write");
    const { bytes } = place.views;
    const view = new DataView(bytes.buffer, bytes.byteOffset + place.offset, tensorMapBytes);
    const bits = isWide ? value.wide(warp, lane) : BigInt(value.word(warp, lane));
    field.replace(view, axis, bits);
    machine.changed();
  });
}

/** `[dst], [src], 128`: all lanes of the warp copy one map. */
function copyRule(instruction: CollectiveInstruction): Collective | undefined {
  const [target, source] = instruction.operands;
  if (target === undefined || source === undefined) return undefined;
  return {
    aligned: true,
    run: ({ machine, warp, mask }) => {
      const [lane = 0] = lanesOf(mask);
      const issuer = { machine, warp, lane, instruction };
      const from = placeOf(issuer, source, "shared");
      const to = placeOf(issuer, target, "global");
      checkWritten(machine, warp, instruction, from, tensorMapBytes);
      recordOrdinary(issuer, from, tensorMapBytes, "read");
      recordOrdinary(issuer, to, tensorMapBytes, "write");
      const carried = new CarriedBytes(tensorMapBytes);
      carried.take(0, from.views, from.offset, tensorMapBytes);
      carried.put(0, to.views, to.offset, tensorMapBytes);
      if (warp.timeline !== undefined) mapOrderOf(machine).release(warp.timeline);
      machine.changed();
      return "done";
    },
  };
}

export const tensormap: CollectiveRule = (instruction) => {
  const [first, second] = instruction.modifiers;
  if (first === "replace" && second === "tile") return replaceRule(instruction);
  return first === "cp_fenceproxy" ? copyRule(instruction) : undefined;
};
