/** Simulation of ops that allocate memory, make windows on it, and move data synchronously. */
import { binaryElements, selectElements } from "../../formats/arithmetic/index.ts";
import type { BinaryFunction } from "../../formats/arithmetic/index.ts";
import { allocateElements, isWide } from "../../formats/dtype.ts";
import type { DType, Elements } from "../../formats/dtype.ts";
import type { AnyOp, Op, Value } from "../../ir/node.ts";
import type { atomicFunctions, memoryOps } from "../../ir/ops/memory.ts";
import { statedOrder } from "../../ir/traits.ts";
import type { StatedOrder } from "../../ir/traits.ts";
import { requireUsable } from "../window-checks.ts";
import type { Agent, Outcome } from "../agent.ts";
import type { Allocation } from "../allocation.ts";
import type { Block } from "../block.ts";
import { fillElements, gather, gatherInside, scatter } from "../memory.ts";
import { accessedView, distinctRounds, requireApart } from "../gathered-view.ts";
import { endReleases, orderAccess } from "../memory-order.ts";
import { reachOf } from "../../happens-before/memory-scopes.ts";
import type { Assembler, SimulationRules } from "../program.ts";
import { elementsAt, numberAt, scalarAt, toScalar, viewAt } from "../values.ts";
import type { SlotValue } from "../values.ts";
import { isView, reshapeView, sliceView, transposeView, wholeView } from "../view.ts";
import type { View, ViewFault } from "../view.ts";
import { countOf, dtypeOf, shapeOf } from "./elementwise.ts";

/** Emits the step of an allocation, which gives whoever shares it the same value. */
export function emitAllocation(code: Assembler, op: Allocation["op"]): void {
  const site = code.allocate(op);
  const target = code.result(op);
  const sharing = code.allocations[site]?.sharing;
  const find = (agent: Agent): SlotValue => {
    if (sharing === "grid") return agent.machine.gridAllocation(site);
    if (sharing === "block") return agent.block.allocation(site);
    return (agent.allocated[site] ??= agent.block.makeAllocation(site));
  };
  code.emit(op, (agent) => {
    agent.slots[target] = find(agent);
    return "proceed";
  });
}

export function zeroOf(dtype: DType): number | bigint {
  return isWide(dtype) ? 0n : 0;
}

/** The same window on the shared memory of another block. */
export function peerView(view: View, block: Block): View {
  const value = block.allocation(view.memory.description.site);
  if (!isView(value)) throw new Error("the peer has no such memory");
  return { ...view, memory: value.memory };
}

/** What is wrong with a window that must lie inside its source: any in smem, an index anywhere. */
function faultOf(
  op: Op<"slice_ref">,
  view: View,
  starts: readonly number[],
  sizes: readonly number[],
  dropped: readonly boolean[],
): ViewFault | undefined {
  const shared = view.memory.description.space !== "gmem";
  for (let axis = 0; axis < sizes.length; axis++) {
    const isIndex = dropped[axis] === true;
    if (!shared && !isIndex) continue;
    const start = starts[axis] as number;
    const size = sizes[axis] as number;
    const inside =
      start >= (view.lower[axis] as number) && start + size <= (view.upper[axis] as number);
    if (!inside)
      return {
        kind: isIndex ? "index" : "window",
        op,
        axis,
        start,
        size,
        first: view.lower[axis] as number,
        end: view.upper[axis] as number,
      };
  }
  return undefined;
}

function sliceRef(op: Op<"slice_ref">, code: Assembler): void {
  const source = code.slot(op.operands.ref);
  const offsets = code.slotsOf(op.operands.offsets);
  const target = code.result(op);
  const sizes = op.attributes.sizes.map((size) => code.size(size));
  const dropped = sizes.map((_, axis) => op.attributes.dropped.includes(axis));
  code.emit(op, (agent) => {
    const view = viewAt(agent, source);
    const starts = offsets.map((slot) => numberAt(agent, slot));
    const window = sliceView(view, starts, sizes, dropped);
    const fault = view.fault ?? faultOf(op, view, starts, sizes, dropped);
    agent.slots[target] = fault === undefined ? window : { ...window, fault };
    return "proceed";
  });
}

/** Checks and counts an access of the running step. */
export function touch(agent: Agent, view: View, mode: "read" | "write", bytes: number): void {
  if (view.fault !== undefined) requireUsable(agent, view);
  if (mode === "read") agent.polls(view.memory);
  else endReleases(view);
  agent.machine.checker?.ordinary(agent, view, mode);
  agent.machine.statistics.bytes += bytes;
}

/** The same of an access that others may make at the same time. */
function touchStrong(
  agent: Agent,
  view: View,
  mode: "observe" | "atomic",
  { scope }: StatedOrder,
  bytes: number,
): void {
  if (view.fault !== undefined) requireUsable(agent, view);
  agent.polls(view.memory);
  agent.machine.checker?.ordinary(agent, view, mode, reachOf[scope]);
  agent.machine.statistics.bytes += bytes;
}

function bytesOf(value: Value): number {
  return (countOf(value) * dtypeOf(value).bits) / 8;
}

/** A byte of memory may be any number, since hosts write what they like: it is true where it is not 0. */
function makeTruth(elements: Uint8Array): void {
  for (let element = 0; element < elements.length; element++)
    if (elements[element] !== 0) elements[element] = 1;
}

function load(op: Op<"load">, code: Assembler): void {
  const [result] = op.results;
  if (result === undefined) throw new Error("load has no result");
  const dtype = dtypeOf(result);
  const target = code.slot(result);
  const viewOf = accessedView(code, op, shapeOf(result));
  const { fill } = op.operands;
  const fillSlot = fill === undefined ? undefined : code.slot(fill);
  const isFilledByTile = fill?.type.kind === "tile";
  const zero = zeroOf(dtype);
  const pool = code.pool(dtype, countOf(result));
  const isScalar = result.type.kind === "scalar";
  const bytes = bytesOf(result);
  code.emit(op, (agent) => {
    const view = viewOf(agent);
    touch(agent, view, "read", bytes);
    const filled =
      fillSlot !== undefined && isFilledByTile ? elementsAt(agent, fillSlot).slice() : undefined;
    const elements = filled ?? pool.take();
    if (filled !== undefined) gatherInside(view, filled);
    else gather(view, elements, fillSlot === undefined ? zero : scalarAt(agent, fillSlot));
    if (dtype.kind === "bool") makeTruth(elements as Uint8Array);
    agent.slots[target] = isScalar ? toScalar(elements) : elements;
    if (isScalar) pool.give(elements);
    return "looked";
  });
}

function atomicLoad(op: Op<"atomic_load">, code: Assembler): void {
  const { fill } = op.operands;
  const dtype = dtypeOf(fill);
  const target = code.result(op);
  const viewOf = accessedView(code, op, shapeOf(fill));
  const read = elementReader(code, fill);
  const pool = code.pool(dtype, countOf(fill));
  const isScalar = fill.type.kind === "scalar";
  const bytes = bytesOf(fill);
  const stated = statedOrder(op);
  code.emit(op, (agent) => {
    const view = viewOf(agent);
    touchStrong(agent, view, "observe", stated, bytes);
    orderAccess(agent, view, stated, { reads: true, writes: () => false, updates: false });
    const elements = pool.take();
    copyElements(read(agent), elements);
    gatherInside(view, elements);
    agent.slots[target] = isScalar ? toScalar(elements) : elements;
    if (isScalar) pool.give(elements);
    return "looked";
  });
}

function atomicStore(op: Op<"atomic_store">, code: Assembler): void {
  const { value } = op.operands;
  const viewOf = accessedView(code, op, shapeOf(value));
  const read = elementReader(code, value);
  const bytes = bytesOf(value);
  const stated = statedOrder(op);
  code.emit(op, (agent) => {
    const view = viewOf(agent);
    requireApart(agent, op, view);
    touchStrong(agent, view, "atomic", stated, bytes);
    orderAccess(agent, view, stated, { reads: false, writes: () => true, updates: false });
    scatter(view, read(agent));
    return "switch";
  });
}

/** Reads a data operand as elements; a scalar as one element that the next call overwrites. */
function elementReader(code: Assembler, value: Value): (agent: Agent) => Elements {
  const slot = code.slot(value);
  if (value.type.kind === "tile") return (agent) => elementsAt(agent, slot);
  const one = allocateElements(dtypeOf(value), 1);
  return (agent) => {
    one[0] = scalarAt(agent, slot);
    return one;
  };
}

function copyElements(from: Elements, to: Elements): void {
  to.set(from as never);
}

function store(op: Op<"store">, code: Assembler): void {
  const { value } = op.operands;
  const viewOf = accessedView(code, op, shapeOf(value));
  const read = elementReader(code, value);
  const bytes = bytesOf(value);
  code.emit(op, (agent) => {
    const view = viewOf(agent);
    requireApart(agent, op, view);
    touch(agent, view, "write", bytes);
    scatter(view, read(agent));
    return "switch";
  });
}

type AtomicFunction = (typeof atomicFunctions)[number];

const updates: { readonly [F in Exclude<AtomicFunction, "exchange">]: BinaryFunction } = {
  add: "add",
  min: "min",
  max: "max",
  and: "and",
  or: "or",
  xor: "xor",
};

/** Emits a step that replaces elements by `update` of the old ones and gives those. */
function emitUpdate(
  code: Assembler,
  op: Op<"atomic"> | Op<"atomic_compare_exchange">,
  prepare: (agent: Agent) => (old: Elements, target: Elements) => void,
  writes: (flat: number) => boolean = () => true,
): void {
  const { value } = op.operands;
  const dtype = dtypeOf(value);
  const result = code.result(op);
  const viewOf = accessedView(code, op, shapeOf(value));
  const pool = code.pool(dtype, countOf(value));
  const isScalar = value.type.kind === "scalar";
  const bytes = 2 * bytesOf(value);
  const stated = statedOrder(op);
  const access = { reads: true, writes, updates: true };
  code.emit(op, (agent) => {
    const view = viewOf(agent);
    touchStrong(agent, view, "atomic", stated, bytes);
    const old = pool.take();
    const updated = pool.take();
    fillElements(old, zeroOf(dtype));
    let outcome: Outcome = "looked";
    for (const round of distinctRounds(view)) {
      gatherInside(round, old);
      prepare(agent)(old, updated);
      orderAccess(agent, round, stated, access);
      // Who polls by an update that changes nothing only looks.
      if (agent.poll === undefined || !areEqual(old, updated)) {
        scatter(round, updated);
        outcome = "switch";
      }
    }
    agent.slots[result] = isScalar ? toScalar(old) : old;
    if (isScalar) pool.give(old);
    pool.give(updated);
    return outcome;
  });
}

function atomic(op: Op<"atomic">, code: Assembler): void {
  const { value } = op.operands;
  const { fn } = op.attributes;
  const dtype = dtypeOf(value);
  const read = elementReader(code, value);
  emitUpdate(code, op, (agent) => (old, updated) => {
    if (fn === "exchange") copyElements(read(agent), updated);
    else binaryElements(updates[fn], dtype, old, read(agent), updated);
  });
}

/** Of which elements the bits are equal: of floats too, where a NaN is what it is and zeros differ. */
function equalBits(left: Elements, right: Elements, flags: Uint8Array): void {
  const bytes = (of: Elements): Uint8Array =>
    new Uint8Array(of.buffer, of.byteOffset, of.byteLength);
  const [own, other] = [bytes(left), bytes(right)];
  const width = left.BYTES_PER_ELEMENT;
  flags.fill(1);
  own.forEach((byte, at) => {
    if (byte !== other[at]) flags[Math.floor(at / width)] = 0;
  });
}

function areEqual(left: Elements, right: Elements): boolean {
  const flags = new Uint8Array(left.length);
  equalBits(left, right, flags);
  return !flags.includes(0);
}

function compareExchange(op: Op<"atomic_compare_exchange">, code: Assembler): void {
  const { expected, value } = op.operands;
  const [wanted, replacement] = [elementReader(code, expected), elementReader(code, value)];
  const flags = new Uint8Array(countOf(value));
  const exchange = (agent: Agent) => (old: Elements, updated: Elements) => {
    equalBits(old, wanted(agent), flags);
    selectElements(flags, replacement(agent), old, updated);
  };
  emitUpdate(code, op, exchange, (flat) => flags[flat] === 1);
}

/** Emits a step that makes another view of a view. */
/** Emits the step of an op that makes a window of another. */
export function emitView(
  code: Assembler,
  op: AnyOp,
  source: Value,
  change: (view: View, agent: Agent) => View,
): void {
  const [slot, target] = [code.slot(source), code.result(op)];
  code.emit(op, (agent) => {
    agent.slots[target] = change(viewAt(agent, slot), agent);
    return "proceed";
  });
}

export const memoryRules: Pick<SimulationRules, keyof typeof memoryOps> = {
  alloc(op, code) {
    emitAllocation(code, op);
  },

  alloc_union(op, code) {
    emitAllocation(code, op);
  },

  union_member(op, code) {
    const { offset, dtype, shape, name } = op.attributes;
    const placement = { offset: (offset * 8) / dtype.bits, member: code.newMember(name) };
    emitView(code, op, op.operands.union, ({ memory }) =>
      wholeView(memory, dtype, shape, placement),
    );
  },

  slice_ref: sliceRef,

  transpose_ref(op, code) {
    const { permutation } = op.attributes;
    emitView(code, op, op.operands.ref, (view) => transposeView(view, permutation));
  },

  reshape_ref(op, code) {
    const shape = op.attributes.shape.map((size) => code.size(size));
    emitView(code, op, op.operands.ref, (view) => reshapeView(view, shape));
  },

  peer_ref(op, code) {
    const slot = code.slot(op.operands.rank);
    emitView(code, op, op.operands.ref, (view, agent) => {
      const { blocks } = agent.block.cluster;
      const rank = numberAt(agent, slot);
      const block = blocks[rank];
      if (block !== undefined) return peerView(view, block);
      const missing = { axis: 0, start: rank, size: 1, first: 0, end: blocks.length };
      return { ...view, fault: view.fault ?? { kind: "peer", op, ...missing } };
    });
  },

  select_ref(op, code) {
    const arrays = code.slotsOf(op.operands.refs);
    const [first = 0] = arrays;
    const [index, target] = [code.slot(op.operands.index), code.result(op)];
    const end = arrays.length;
    code.emit(op, (agent) => {
      const start = numberAt(agent, index);
      const slot = arrays[start];
      agent.slots[target] =
        slot === undefined
          ? {
              ...viewAt(agent, first),
              fault: { kind: "array", op, axis: 0, start, size: 1, first: 0, end },
            }
          : viewAt(agent, slot);
      return "proceed";
    });
  },

  // Only the code on devices reads it.
  address_of(op, code) {
    const [source, target] = [code.slot(op.operands.ref), code.result(op)];
    const isGlobal = op.operands.ref.type.kind === "ref" && op.operands.ref.type.space === "gmem";
    code.emit(op, (agent) => {
      const view = viewAt(agent, source);
      if (view.fault !== undefined) requireUsable(agent, view);
      agent.slots[target] = isGlobal ? 0n : 0;
      return "proceed";
    });
  },
  load,
  store,
  atomic,
  atomic_compare_exchange: compareExchange,
  atomic_load: atomicLoad,
  atomic_store: atomicStore,
};
