/**
 * Copies by tensor map (`layout/model/tensor-maps.ts`): one instruction for each box.
 *
 *   a bf16 [m, k], window rows 128 by depth 64 into shared(tile 128 64, swizzle 128)
 *     map  "load 64 of k, 128 of m every 2*k bytes, swizzle 128"
 *     copy coordinates {depth, rows}, one box
 */
import type { Op } from "../../../ir/node.ts";
import { elementsPerUnit, tensorCopyOf } from "../../../layout/model/tensor-maps.ts";
import type { MapAxis, TensorMap } from "../../../layout/model/tensor-maps.ts";
import type { TensorMapPlan } from "../../executable.ts";
import type { Register } from "../../module.ts";
import { address, integer, tensorAddress } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { addIndex, indexRegister } from "../memory/positions.ts";
import { selectedRegister } from "../memory/selected-array.ts";
import { sharedStart } from "../memory/shared.ts";
import type { GlobalValue, SharedValue } from "../values.ts";
import type { EngineCopy } from "./engine-copies.ts";

/** The parameter that a map is, made when it is first asked for: its generic address; of a list, the one of the array at hand. */
export function mapParameter(context: EmitContext, map: TensorMap): Register {
  const { axes, dtype, swizzle, fill, use } = map;
  const chosen = context.windows.definitions.get(map.root);
  if (chosen?.kind === "select_ref") {
    const { refs, index } = chosen.operands;
    const maps = refs.map((root) => mapParameter(context, { ...map, root }));
    return selectedRegister(context, maps, context.scalar(index).register);
  }
  const array = context.ref(map.root);
  if (array.kind !== "global") throw new Error("a tensor map describes an array");
  const plan: TensorMapPlan = {
    array: array.name,
    dtype,
    extents: axes.map(({ extent }) => extent),
    strides: axes.slice(1).map(({ stride }) => stride),
    box: axes.map(({ box }) => box),
    swizzle,
    fill,
    use,
  };
  return context.parameter({ kind: "tensorMap", map: plan });
}

export function planTensorCopy(
  context: EmitContext,
  op: Op<"copy_async">,
  global: GlobalValue,
  shared: SharedValue,
): EngineCopy {
  const { boxes } = tensorCopyOf(op, context.windows);
  const elements = shared.window.shape.reduce((total, extent) => total * extent, 1);
  const placed = boxes.map(({ offset, starts, map }) => ({
    map,
    offset,
    coordinates: map.axes.map((axis, position) => {
      const index = coordinate(context, global, axis, starts);
      // What it is divided by divides it, below 0 too.
      const shift = position === 0 ? Math.log2(elementsPerUnit(global.dtype)) : 0;
      return shift === 0 ? index : context.code.make("b32", "shr.s32", index, integer(shift));
    }),
  }));
  const start = sharedStart(context, shared);
  const parameters = new Map<TensorMap, Register>();
  for (const { map } of boxes)
    if (!parameters.has(map)) parameters.set(map, mapParameter(context, map));
  return {
    form: `tensor.${boxes[0]?.map.axes.length ?? 0}d.`,
    bytes: (elements * shared.dtype.bits) / 8,
    pieces: placed.flatMap(({ map, offset, coordinates }) => {
      const parameter = parameters.get(map);
      if (parameter === undefined) return [];
      return [
        {
          global: tensorAddress(parameter, coordinates),
          shared: address(start.base, start.offset + offset),
          size: [],
        },
      ];
    }),
  };
}

/** Where a box begins along an axis of its map; outside of it where an index is outside along an axis that the map has as part of another. */
function coordinate(
  context: EmitContext,
  global: GlobalValue,
  { roots, extent }: MapAxis,
  starts: readonly number[],
): Register {
  const { code } = context;
  const indices = roots.map(({ root, window, extent: size, tested }) => {
    const origin = global.origin[root];
    if (origin === undefined) throw new Error(`no origin along axis ${root}`);
    const constant = window === undefined ? 0 : (starts[window] ?? 0);
    const index = indexRegister(
      context,
      addIndex(context, origin, { register: undefined, constant }),
    );
    return { index, size, tested };
  });
  const inside = indices.flatMap(({ index, size, tested }) =>
    tested ? [code.make("pred", "setp.lt.u32", index, context.size(size))] : [],
  );
  const place = indices
    .map(({ index, size }) => ({ index, size }))
    .reduce((outer, { index, size }) => ({
      index: code.make("b32", "mad.lo.s32", outer.index, context.size(size), index),
      size,
    })).index;
  return inside.reduce(
    (known, each) => code.make("b32", "selp.b32", known, context.size(extent), each),
    place,
  );
}
