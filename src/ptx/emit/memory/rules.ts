/**
 * Emission of ops on memory. Windows are bookkeeping: what code they need, an addition for an offset, is
 * written where they are made; loads, stores and atomics do the rest.
 */
import type { Op, Value } from "../../../ir/node.ts";
import type { memoryOps } from "../../../ir/ops/memory.ts";
import { sliceAxes, testingNamed } from "../../../layout/access/slice.ts";
import type { AxisSlice } from "../../../layout/access/slice.ts";
import { liesInShared, transposeAxes } from "../../../layout/access/window.ts";
import type { EmitContext, EmitRules } from "../context.ts";
import type { Position, RefValue } from "../values.ts";
import { integer } from "../../operands.ts";
import { onlyAccess } from "./access.ts";
import { atomic, compareExchange } from "./atomics.ts";
import { atomicLoad, atomicStore } from "./ordered-accesses.ts";
import { globalScratch, reshapeRef } from "./global.ts";
import { movable, peerRank } from "./bounds-traps.ts";
import type { PeerRank } from "./bounds-traps.ts";
import { positionOf, positionSums } from "./positions.ts";
import { selectedArray } from "./selected-array.ts";
import { sharedWindow, sliceSharedValue, unionMember, wholeShared } from "./shared.ts";
import { load, store } from "./tiles.ts";
import { refOf } from "../../../ir/traverse.ts";
import { halveTensor, sliceTensor } from "../asynchronous/tensor-memory.ts";

/** The result of an op that makes a window. */
function windowOf(results: readonly Value[]): Value {
  const [result] = results;
  if (result === undefined) throw new Error("an op that makes a window has a result");
  return result;
}

/** Defines a window; what a shared one looks like to instructions is the placement's to know. */
function defineWindow(context: EmitContext, value: Value, made: RefValue): void {
  const shared = made.kind === "shared" && { window: sharedWindow(context, value) };
  context.define(value, { ...made, ...shared });
}

function sliceRef(op: Op<"slice_ref">, context: EmitContext): void {
  if (refOf(op.operands.ref).space === "tmem") {
    sliceTensor(op, context);
    return;
  }
  const source = context.ref(op.operands.ref);
  const { sizes, dropped, guard } = op.attributes;
  if (guard === undefined) throw new Error("nothing is decided of the bounds of a window");
  const slices = op.operands.offsets.map((offset, axis): AxisSlice<Position> => ({
    offset: positionOf(context, offset),
    size: sizes[axis] ?? 1,
    dropped: dropped.includes(axis),
  }));
  const testing = testingNamed(guard);
  const sliced =
    source.kind === "shared"
      ? sliceSharedValue(source, slices, testing)
      : {
          ...source,
          ...sliceAxes(source, liesInShared(source), slices, positionSums(context), testing),
        };
  defineWindow(context, windowOf(op.results), movable(context, sliced, source));
}

function transposeRef(op: Op<"transpose_ref">, context: EmitContext): void {
  const source = context.ref(op.operands.ref);
  const { permutation } = op.attributes;
  const value = windowOf(op.results);
  if (source.kind !== "shared") {
    defineWindow(context, value, { ...source, axes: transposeAxes(source.axes, permutation) });
    return;
  }
  const shape = transposeAxes(source.shape, permutation);
  const strides = transposeAxes(source.strides, permutation);
  defineWindow(context, value, { ...source, shape, strides });
}

export const memoryRules: EmitRules<typeof memoryOps> = {
  alloc(op, context) {
    const value = windowOf(op.results);
    if (op.attributes.space === "gmem") context.define(value, globalScratch(context, op, value));
    else context.define(value, wholeShared(context, value, context.sharedOffset(value)));
  },

  alloc_union(op, context) {
    const value = windowOf(op.results);
    context.define(value, wholeShared(context, value, context.sharedOffset(value)));
  },

  union_member(op, context) {
    const value = windowOf(op.results);
    context.define(value, unionMember(context, op, value));
  },

  slice_ref: sliceRef,
  transpose_ref: transposeRef,

  reshape_ref(op, context) {
    if (refOf(op.operands.ref).space === "tmem") {
      halveTensor(op, context);
      return;
    }
    const source = context.ref(op.operands.ref);
    defineWindow(context, windowOf(op.results), reshapeRef(context, source, op.attributes.shape));
  },

  peer_ref(op, context) {
    const source = context.ref(op.operands.ref);
    defineWindow(context, windowOf(op.results), onPeer(source, peerRank(context, op)));
  },

  select_ref(op, context) {
    defineWindow(context, windowOf(op.results), selectedArray(context, op));
  },

  address_of(op, context) {
    const { code } = context;
    const [unit] = onlyAccess(context, op).units();
    const [result] = op.results;
    if (unit === undefined || result?.type.kind !== "scalar")
      throw new Error("a window without its element");
    const { base, offset } = unit.address;
    const type = result.type.dtype.bits === 64 ? "b64" : "b32";
    const opcode = type === "b64" ? "add.s64" : "add.s32";
    const register = code.make(type, opcode, base, integer(offset));
    context.define(result, { kind: "scalar", dtype: result.type.dtype, register });
  },

  load,
  store,
  atomic,
  atomic_compare_exchange: compareExchange,
  atomic_load: atomicLoad,
  atomic_store: atomicStore,
};

function onPeer(source: RefValue, peer: PeerRank): RefValue {
  if (source.kind === "reshaped") return { ...source, source: onPeer(source.source, peer) };
  if (source.kind === "global") throw new Error("a peer has shared memory alone");
  return { ...source, rank: peer.rank, required: [...source.required, ...peer.required] };
}
