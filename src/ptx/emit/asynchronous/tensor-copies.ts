/**
 * Copies by tensor map (`layout/model/tensor-maps.ts`): one instruction for each box.
 *
 *   a bf16 [m, k], window rows 128 by depth 64 into shared(tile 128 64, swizzle 128)
 *     map  "load 64 of k, 128 of m every 2*k bytes, swizzle 128"
 *     copy coordinates {depth, rows}, one box
 *
 *   into shared memory                              out of it
 *     arrive.expect_tx  bytes of all boxes           (lanes have met, their writes are committed)
 *     cp.async.bulk.tensor … [barrier]               cp.async.bulk.tensor … .bulk_group
 */
import type { Op } from "../../../ir/node.ts";
import { elementsPerUnit, tensorCopyOf } from "../../../layout/model/tensor-maps.ts";
import type { MapAxis, TensorMap } from "../../../layout/model/tensor-maps.ts";
import type { TensorMapPlan } from "../../executable.ts";
import type { Operand, Register } from "../../module.ts";
import { address, discard, integer, pair, tensorAddress } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { indexQuotient, indexRemainder } from "../elementwise/division.ts";
import { clusterSize } from "../grid.ts";
import { addIndex, indexRegister } from "../memory/positions.ts";
import { selectedRegister } from "../memory/selected-array.ts";
import { sharedStart } from "../memory/shared.ts";
import type { SharedStart } from "../memory/shared.ts";
import { cachePolicy } from "../memory/cache-policy.ts";
import { insideIndices } from "../memory/bounds-traps.ts";
import { barrierAddress, emitArrival, releaseOf } from "../synchronization.ts";
import type { BarrierPlace } from "../synchronization.ts";
import type { GlobalValue, SharedValue } from "../values.ts";

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

/** The copy taken apart: each box with its map's address and its coordinates. */
interface PlannedCopy {
  readonly rank: number;
  readonly start: SharedStart;
  readonly bytes: number;
  readonly boxes: readonly {
    readonly map: Register;
    readonly offset: number;
    readonly coordinates: readonly Operand[];
  }[];
}

function planCopy(
  context: EmitContext,
  op: Op<"copy_async">,
  global: GlobalValue,
  shared: SharedValue,
): PlannedCopy {
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
    rank: boxes[0]?.map.axes.length ?? 0,
    start,
    bytes: (elements * shared.dtype.bits) / 8,
    boxes: placed.flatMap(({ map, ...box }) => {
      const parameter = parameters.get(map);
      return parameter === undefined ? [] : [{ ...box, map: parameter }];
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

/** The ranks of a cluster that a multicast reaches, as a mask for rank 0 along its axes, and the shift. */
function multicastMask(context: EmitContext, axes: readonly string[]): Register {
  const { code, kernel, numbers } = context;
  const size = clusterSize(kernel.grid);
  const rank = indexRemainder(code, numbers.block, size);
  // The lowest rank of the group: the own one without its part along the axes.
  let lowest: Register = code.constant("b32", 0);
  let mask = 0;
  for (const other of ranksOf(kernel.grid, axes)) mask |= 1 << other;
  let inner = 1;
  for (const axis of kernel.grid.toReversed()) {
    if (axis.cluster > 1 && !axes.includes(axis.name)) {
      const high = indexQuotient(code, rank, inner);
      const own = indexRemainder(code, high, axis.cluster);
      lowest = code.make("b32", "mad.lo.u32", own, integer(inner), lowest);
    }
    inner *= axis.cluster;
  }
  return code.make("b32", "shl.b32", code.constant("b32", mask), lowest);
}

/** Ranks, relative to the group's lowest, that differ along the axes alone. */
function ranksOf(grid: EmitContext["kernel"]["grid"], axes: readonly string[]): readonly number[] {
  let ranks: readonly number[] = [0];
  let inner = 1;
  for (const axis of grid.toReversed()) {
    if (axes.includes(axis.name)) {
      const step = inner;
      ranks = Array.from({ length: axis.cluster }, (_, index) => index).flatMap((index) =>
        ranks.map((rank) => rank + index * step),
      );
    }
    inner *= axis.cluster;
  }
  return ranks;
}

export function tensorCopyIn(
  context: EmitContext,
  op: Op<"copy_async">,
  global: GlobalValue,
  shared: SharedValue,
): void {
  const { code, numbers, scope } = context;
  const { barrier } = op.operands;
  if (barrier === undefined) throw new Error("a copy into shared memory has a barrier");
  const own = context.barrier(barrier);
  const planned = planCopy(context, op, global, shared);
  const place = barrierAddress(context, own, insideIndices(context, op)[0]);
  const group =
    op.attributes.multicast.length > 0
      ? multicastMask(context, op.attributes.multicast)
      : undefined;
  const one = scope.warps === 1 ? electLane(context) : numbers.elected;
  const policy = cachePolicy(context, op);
  const opcode = `cp.async.bulk.tensor.${planned.rank}d.shared::cluster.global.mbarrier::complete_tx::bytes`;
  const operands = planned.boxes.map(({ map, offset, coordinates }) => [
    address(planned.start.base, planned.start.offset + offset),
    tensorAddress(map, coordinates),
    address(place.base, place.offset),
  ]);
  if (group === undefined) {
    code.guarded(one, () => {
      expectBytes(context, place, own.scale, planned.bytes);
      for (const box of operands)
        code.emit(`${opcode}${policy.suffix}`, [...box, ...policy.operands]);
    });
    return;
  }
  const skip = code.label("copied");
  code.jumpIf(one, skip, { negated: true, uniform: false });
  const { parts } = op.attributes;
  if (parts === undefined)
    expectEverywhere(op, context, place, { scale: own.scale, bytes: planned.bytes, group });
  // Each block copies a part, and expects all of them.
  else expectBytes(context, place, own.scale, planned.bytes * parts);
  const mask = code.make("b16", "cvt.u16.u32", group);
  for (const box of operands)
    code.emit(`${opcode}.multicast::cluster${policy.suffix}`, [...box, mask, ...policy.operands]);
  code.place(skip);
}

/**
 * pred: whether the lane is the one that starts a warp's copies. Of an elected lane the assembler knows that there is no other, and issues a copy as one
 * instruction; of lane 0 it does not, and makes a loop of twenty over all lanes that might be asked.
 */
function electLane({ code }: EmitContext): Register {
  const elected = code.register("pred");
  code.emit("elect.sync", [pair(discard, elected), integer(-1)]);
  return elected;
}

/** Tells the barrier how many bytes will land, and arrives once for the copy. */
function expectBytes(
  context: EmitContext,
  barrier: BarrierPlace,
  scale: number,
  bytes: number,
): void {
  const { code } = context;
  const place = address(barrier.base, barrier.offset);
  if (scale === 1) {
    code.emit("mbarrier.arrive.expect_tx.shared::cta.b64", [discard, place, integer(bytes)]);
    return;
  }
  code.emit("mbarrier.expect_tx.relaxed.cta.shared::cta.b64", [place, integer(bytes)]);
  emitArrival(context, barrier, scale);
}

/** The same on the barrier of every block that a multicast reaches. */
function expectEverywhere(
  op: Op<"copy_async">,
  context: EmitContext,
  { base, offset }: BarrierPlace,
  {
    scale,
    bytes,
    group,
  }: { readonly scale: number; readonly bytes: number; readonly group: Register },
): void {
  const { code } = context;
  const release = releaseOf(op);
  const own = code.make("b32", "add.u32", base, integer(offset));
  const left = code.make("b32", "mov.b32", group);
  const again = code.label("receiver");
  code.place(again);
  const reversed = code.make("b32", "brev.b32", left);
  const rank = code.make("b32", "clz.b32", reversed);
  const remote = code.make("b32", "mapa.shared::cluster.u32", own, rank);
  if (scale === 1)
    code.emit(`mbarrier.arrive.expect_tx${release}.shared::cluster.b64`, [
      discard,
      address(remote),
      integer(bytes),
    ]);
  else {
    code.emit("mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64", [
      address(remote),
      integer(bytes),
    ]);
    code.emit(`mbarrier.arrive${release}.shared::cluster.b64`, [
      discard,
      address(remote),
      integer(scale),
    ]);
  }
  const lower = code.make("b32", "sub.u32", left, integer(1));
  code.emit("and.b32", [left, left, lower]);
  const more = code.make("pred", "setp.ne.u32", left, integer(0));
  code.jumpIf(more, again, { uniform: false });
}

const reductionOpcodes = { add: "add", min: "min", max: "max" } as const;

export function tensorCopyOut(
  context: EmitContext,
  op: Op<"copy_async">,
  global: GlobalValue,
  shared: SharedValue,
): void {
  const { code, numbers, scope } = context;
  const planned = planCopy(context, op, global, shared);
  const { reduction } = op.attributes;
  const opcode =
    reduction === "none"
      ? `cp.async.bulk.tensor.${planned.rank}d.global.shared::cta.bulk_group`
      : `cp.reduce.async.bulk.tensor.${planned.rank}d.global.shared::cta.${reductionOpcodes[reduction]}.bulk_group`;
  const policy = cachePolicy(context, op);
  code.guarded(scope.warps === 1 ? numbers.leader : numbers.elected, () => {
    for (const { map, offset, coordinates } of planned.boxes)
      code.emit(`${opcode}${policy.suffix}`, [
        tensorAddress(map, coordinates),
        address(planned.start.base, planned.start.offset + offset),
        ...policy.operands,
      ]);
  });
}
