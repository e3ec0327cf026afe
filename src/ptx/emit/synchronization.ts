/**
 * Barriers, cluster barriers and semaphores. An arrival of the language is made by the first lane of each
 * warp, once the warp's lanes have met, so that no lane of a thread waits for another warp:
 *
 *   barrier with arrivals: 2         mbarrier.init 2 · scale
 *
 *   | who arrives                    | scale 1              | scale 4                             |
 *   |--------------------------------|----------------------|-------------------------------------|
 *   | program thread                 | does not occur       | 4 warps, one arrival each           |
 *   | one warp on its own            | 1 arrival            | 1 lane, an arrival of count 4       |
 *   | copy                           | arrive.expect_tx     | expect_tx, an arrival of count 4    |
 *
 * Barriers on which a program thread arrives somewhere have its number of warps as their scale, all others 1. A wait keeps the
 * parity of the next phase in a bit for each barrier; every lane waits, and so sees what was released.
 */
import { bool, i32, u32 } from "../../formats/dtype.ts";
import type { Op, Region, Value } from "../../ir/node.ts";
import type { synchronizationOps } from "../../ir/ops/synchronization.ts";
import type { MemoryScope } from "../../ir/schema.ts";
import { multiplySizes } from "../../ir/size.ts";
import { walkOps } from "../../ir/traverse.ts";
import { lanesPerWarp } from "../../targets/target.ts";
import type { Operand, Register } from "../module.ts";
import { address, discard, integer } from "../operands.ts";
import {
  fencedForTensors,
  tensorFence,
  threadBarrier,
  threadBarrierNumber,
  threadLanes,
  warpBarrier,
} from "./barriers.ts";
import type { EmitContext, EmitRules } from "./context.ts";
import { stopAfterFailure, tryUntilDone } from "./failure.ts";
import { clusterSize } from "./grid.ts";
import { insideIndices, insidePeer } from "./memory/bounds-traps.ts";
import { shareElements } from "./memory/broadcast-from-owner.ts";
import type { BarrierValue, ScalarValue } from "./values.ts";

/** All lanes of the block meet. */
export function blockBarrier(context: EmitContext, reason: string): void {
  fencedForTensors(context, () => {
    context.code.emit("bar.sync", [integer(0)], reason);
  });
}

export function inCluster({ kernel }: EmitContext): boolean {
  return clusterSize(kernel.grid) > 1;
}

/** All lanes of the cluster meet. */
export function clusterBarrier(context: EmitContext, reason: string): void {
  fencedForTensors(context, () => {
    context.code.emit("barrier.cluster.arrive.release.aligned", [], reason);
    context.code.emit("barrier.cluster.wait.acquire.aligned");
  });
}

const phaseBits = 32;

function allocateBarrier(op: Op<"alloc_barrier">, context: EmitContext): void {
  const { code, numbers } = context;
  const [result] = op.results;
  if (result === undefined) throw new Error("a barrier has a name");
  const { count, arrivals, scale } = op.attributes;
  if (scale === undefined) throw new Error("nothing is decided of how a barrier is arrived at");
  const offset = context.sharedOffset(result);
  code.guarded(firstLane(context), () => {
    for (let index = 0; index < count; index += 1)
      code.emit(`mbarrier.init.${barrierSpace(context)}.b64`, [
        address(numbers.shared, offset + 8 * index),
        integer(arrivals * scale),
      ]);
  });
  const words = Math.ceil(count / phaseBits);
  const phases = Array.from({ length: words }, () => code.constant("b32", 0));
  context.define(result, { kind: "barrier", offset, count, scale, phases });
}

function linearIndex(op: Op<"linear_index">, context: EmitContext): void {
  const { code } = context;
  const { strides } = op.attributes;
  const zero: Operand = integer(0);
  const sum = insideIndices(context, op).reduce<Operand>(
    (before, { register }, axis) =>
      code.make("b32", "mad.lo.u32", register, integer(strides[axis] ?? 0), before),
    zero,
  );
  const register = code.make("b32", "mov.b32", sum);
  context.define(op.results[0], { kind: "scalar", dtype: i32, register });
}

/** How the state space of barriers is spelled: targets without clusters know no other. */
function barrierSpace({ target }: EmitContext): "shared" | "shared::cta" {
  return target.features.includes("cluster") ? "shared::cta" : "shared";
}

/** One lane's arrival on a barrier of its own block; older targets must take the state. */
export function emitArrival(
  context: EmitContext,
  { base, offset }: BarrierPlace,
  count: number,
): void {
  const { code } = context;
  const space = barrierSpace(context);
  const state = space === "shared" ? code.register("b64") : discard;
  const counted = count === 1 ? [] : [integer(count)];
  if (space === "shared" && count > 1)
    code.emit("mbarrier.arrive.noComplete.shared.b64", [
      code.register("b64"),
      address(base, offset),
      integer(count - 1),
    ]);
  code.emit(`mbarrier.arrive.${space}.b64`, [
    state,
    address(base, offset),
    ...(space === "shared" ? [] : counted),
  ]);
}

/** Where a barrier is: a shared::cta address and an offset. */
export interface BarrierPlace {
  readonly base: Register;
  readonly offset: number;
}

/** The lane that does once what is for everybody who runs this. */
export function firstLane({ code, numbers, scope, kernel }: EmitContext): Register {
  if (scope.warps < kernel.warps) return numbers.leader;
  if (kernel.threads.length === 1 || scope.threads.length === 1) return numbers.elected;
  const [first = 0] = scope.threads;
  const own = code.make("pred", "setp.eq.u32", numbers.thread, integer(first));
  return code.make("pred", "and.pred", own, numbers.elected);
}

/** Makes new barriers known to everybody who may use them, once after a series of allocations. */
export function publishBarriers(context: EmitContext): void {
  const { code, kernel, scope, target } = context;
  if (target.features.includes("tma")) {
    code.emit("fence.mbarrier_init.release.cluster", [], "barriers begin before anyone uses them");
    code.emit("fence.proxy.async.shared::cta", [], "the copy engine sees them too");
  }
  const everybody = scope.threads.length === kernel.threads.length && scope.warps === kernel.warps;
  if (!everybody) threadBarrier(context, "barriers are ready");
  else if (inCluster(context)) clusterBarrier(context, "barriers are ready in the whole cluster");
  else blockBarrier(context, "barriers are ready");
}

/** Gives the bytes of a scope's barriers back; everybody has met before. */
export function endBarriers(context: EmitContext, body: Region): void {
  const { code, numbers } = context;
  for (const op of body.ops) {
    if (op.kind !== "alloc_barrier") continue;
    const [result] = op.results;
    if (result === undefined) continue;
    const { offset, count } = context.barrier(result);
    code.guarded(firstLane(context), () => {
      for (let index = 0; index < count; index += 1)
        code.emit(`mbarrier.inval.${barrierSpace(context)}.b64`, [
          address(numbers.shared, offset + 8 * index),
        ]);
    });
  }
}

/** The shared::cta address of one barrier of an array. */
export function barrierAddress(
  context: EmitContext,
  barrier: BarrierValue,
  index: ScalarValue | undefined,
): BarrierPlace {
  const { code, numbers } = context;
  const { offset } = barrier;
  if (index === undefined) return { base: numbers.shared, offset };
  const { register, constant } = index;
  if (constant !== undefined) return { base: numbers.shared, offset: offset + 8 * constant };
  const base = code.make("b32", "mad.lo.u32", register, integer(8), numbers.shared);
  return { base, offset };
}

/** The shared::cluster address of the same place in another block. */
export function peerAddress(
  { code }: EmitContext,
  { base, offset }: BarrierPlace,
  rank: Register,
): Register {
  const own = code.make("b32", "add.u32", base, integer(offset));
  return code.make("b32", "mapa.shared::cluster.u32", own, rank);
}

function arrive(op: Op<"barrier_arrive">, context: EmitContext): void {
  const { code, numbers, scope } = context;
  const barrier = context.barrier(op.operands.barrier);
  const place = barrierAddress(context, barrier, insideIndices(context, op)[0]);
  const count = scope.warps === 1 ? barrier.scale : 1;
  const peer = insidePeer(context, op);
  const remote = peer && peerAddress(context, place, peer.register);
  warpBarrier(context, "the warp's lanes are done before one of them arrives");
  tensorFence(context, "before");
  const counted = count === 1 ? [] : [integer(count)];
  code.guarded(numbers.leader, () => {
    if (remote === undefined) emitArrival(context, place, count);
    else
      code.emit(`mbarrier.arrive${releaseOf(op)}.shared::cluster.b64`, [
        discard,
        address(remote),
        ...counted,
      ]);
  });
}

/** How an arrival on a peer's barrier is spelled: without a word it tells its own block of ordinary accesses. */
export function releaseOf({
  attributes: { scope },
}: Op<"barrier_arrive"> | Op<"copy_async">): string {
  return scope === "cluster" ? ".release.cluster" : "";
}

/** The instruction that waits; `acquire.cluster` where arrivals tell of ordinary accesses in another block. */
function tryWait({ attributes: { scope } }: Op<"barrier_wait">, { target }: EmitContext): string {
  if (!target.features.includes("cluster")) return "mbarrier.test_wait.parity.shared.b64";
  const order = scope === "cluster" ? ".acquire.cluster" : "";
  return `mbarrier.try_wait.parity${order}.shared::cta.b64`;
}

function wait(op: Op<"barrier_wait">, context: EmitContext): void {
  const { code } = context;
  const barrier = context.barrier(op.operands.barrier);
  const [index] = insideIndices(context, op);
  const { base, offset } = barrierAddress(context, barrier, index);
  const asked = op.operands.parity && context.scalar(op.operands.parity).register;
  const parity =
    asked === undefined
      ? nextParity(context, barrier, index)
      : code.make("b32", "and.b32", asked, integer(1));
  const attempt = tryWait(op, context);
  tryUntilDone(context, () => code.make("pred", attempt, address(base, offset), parity));
  tensorFence(context, "after");
  warpBarrier(context, "lanes may have left the wait one by one");
}

/** Every lane asks, so that each sees what was released; the answer is yes where all lanes have heard so. */
function test(op: Op<"barrier_test">, context: EmitContext): void {
  const { code, scope, target } = context;
  const [index] = insideIndices(context, op);
  const { base, offset } = barrierAddress(context, context.barrier(op.operands.barrier), index);
  const { register } = context.scalar(op.operands.parity);
  const parity = code.make("b32", "and.b32", register, integer(1));
  const order = op.attributes.scope === "cluster" ? ".acquire.cluster" : "";
  const opcode = target.features.includes("cluster")
    ? `mbarrier.test_wait.parity${order}.shared::cta.b64`
    : "mbarrier.test_wait.parity.shared.b64";
  const own = code.make("pred", opcode, address(base, offset), parity);
  const all =
    scope.warps === 1
      ? code.make("pred", "vote.sync.all.pred", own, integer(-1))
      : code.make(
          "pred",
          "barrier.red.and.pred",
          threadBarrierNumber(context),
          threadLanes(context),
          own,
        );
  tensorFence(context, "after");
  context.define(op.results[0], { kind: "scalar", dtype: bool, register: all });
}

/** Takes the parity of the phase to wait for, and turns it for the next time. */
function nextParity(
  context: EmitContext,
  { phases, count }: BarrierValue,
  index: ScalarValue | undefined,
): Register {
  const { code } = context;
  const known = index === undefined ? 0 : index.constant;
  if (known !== undefined) {
    const word = phaseWord(phases, Math.floor(known / phaseBits));
    const parity = code.make("b32", "bfe.u32", word, integer(known % phaseBits), integer(1));
    code.emit("xor.b32", [word, word, integer(2 ** (known % phaseBits))]);
    return parity;
  }
  const position = index?.register;
  if (position === undefined) throw new Error("a barrier of an array has an index");
  if (count <= phaseBits) {
    const word = phaseWord(phases, 0);
    const shifted = code.make("b32", "shr.u32", word, position);
    const parity = code.make("b32", "and.b32", shifted, integer(1));
    const mask = code.make("b32", "shl.b32", code.constant("b32", 1), position);
    code.emit("xor.b32", [word, word, mask]);
    return parity;
  }
  const bit = code.make("b32", "and.b32", position, integer(phaseBits - 1));
  const mask = code.make("b32", "shl.b32", code.constant("b32", 1), bit);
  // The word is chosen by comparing, since registers cannot be indexed.
  const number = code.make("b32", "shr.u32", position, integer(5));
  const parity = code.constant("b32", 0);
  phases.forEach((word, ordinal) => {
    const here = code.make("pred", "setp.eq.u32", number, integer(ordinal));
    code.guarded(here, () => {
      code.emit("bfe.u32", [parity, word, bit, integer(1)]);
      code.emit("xor.b32", [word, word, mask]);
    });
  });
  return parity;
}

function phaseWord(phases: readonly Register[], position: number): Register {
  const word = phases[position];
  if (word === undefined) throw new Error(`a barrier has no phase word ${position}`);
  return word;
}

/** Registers of a processor, which its lanes share evenly at the start, in steps of 8. */
const registersPerProcessor = 65536;

function setRegisters(op: Op<"set_registers">, { code, kernel, target }: EmitContext): void {
  if (!target.features.includes("setmaxnreg")) return;
  const lanes = kernel.threads.length * kernel.warps * lanesPerWarp;
  const atStart = Math.min(255, Math.floor(registersPerProcessor / lanes / 8) * 8);
  const { count } = op.attributes;
  const way = count < atStart ? "dec" : "inc";
  code.emit(`setmaxnreg.${way}.sync.aligned.u32`, [integer(count)]);
}

type CounterOp = Op<"semaphore_signal"> | Op<"semaphore_wait"> | Op<"semaphore_read">;

/** How PTX spells the scope of an op on a counter. */
const scopeSpelling: { readonly [S in MemoryScope]: string } = {
  block: "cta",
  cluster: "cluster",
  device: "gpu",
  system: "sys",
};

function scopeOf({ attributes: { scope = "device" } }: CounterOp, { target }: EmitContext): string {
  // Where there are no clusters, each block is one.
  const known = scope !== "cluster" || target.features.includes("cluster");
  return scopeSpelling[known ? scope : "block"];
}

function signal(op: Op<"semaphore_signal">, context: EmitContext): void {
  const { code, numbers, scope } = context;
  const place = counterAddress(context, op);
  const increment = context.scalar(op.operands.increment).register;
  threadBarrier(context, "all lanes are done before the signal");
  code.guarded(scope.warps === 1 ? numbers.leader : numbers.elected, () => {
    code.emit(`red.release.${scopeOf(op, context)}.global.add.u32`, [address(place), increment]);
  });
}

function counterAddress(context: EmitContext, op: CounterOp): Register {
  const { code } = context;
  const { base, shape } = context.semaphore(op.operands.semaphore);
  let linear: Register | undefined;
  insideIndices(context, op).forEach(({ register }, axis) => {
    linear =
      linear === undefined
        ? register
        : code.make("b32", "mad.lo.u32", linear, context.size(shape[axis] ?? 1), register);
  });
  if (linear === undefined) return base;
  return code.make("b64", "mad.wide.u32", linear, integer(4), base);
}

/** One lane looks again and again; the others wait for it. */
function semaphoreWait(op: Op<"semaphore_wait">, context: EmitContext): void {
  const { code, numbers, scope } = context;
  const place = counterAddress(context, op);
  const wanted = context.scalar(op.operands.value).register;
  const over = code.label("counted");
  const one = scope.warps === 1 ? numbers.leader : numbers.elected;
  code.jumpIf(one, over, { negated: true, uniform: false });
  const again = code.label("poll");
  code.place(again);
  const retry = afterPoll(context, again, over);
  const reach = scopeOf(op, context);
  const seen = code.make("b32", `ld.acquire.${reach}.global.u32`, address(place));
  const reached = code.make("pred", "setp.ge.s32", seen, wanted);
  if (op.attributes.decrement) {
    const lower = code.make("b32", "sub.s32", seen, wanted);
    code.jumpIf(reached, retry, { negated: true, uniform: false });
    const swap = `atom.acq_rel.${reach}.global.cas.b32`;
    const found = code.make("b32", swap, address(place), seen, lower);
    const changed = code.make("pred", "setp.ne.b32", found, seen);
    code.jumpIf(changed, again, { uniform: false });
  } else code.jumpIf(reached, retry, { negated: true, uniform: false });
  code.place(over);
  threadBarrier(context, "all lanes go on once one has seen the count");
}

/** One lane looks, and tells the others what it has seen: all of them have the same number. */
function semaphoreRead(op: Op<"semaphore_read">, context: EmitContext): void {
  const { code, numbers, scope } = context;
  const place = counterAddress(context, op);
  const seen = code.constant("b32", 0);
  code.guarded(scope.warps === 1 ? numbers.leader : numbers.elected, () => {
    code.emit(`ld.acquire.${scopeOf(op, context)}.global.u32`, [seen, address(place)]);
  });
  const [result] = op.results;
  const wanted = result !== undefined && context.isUsed(result);
  if (wanted) {
    const [register = seen] = shareElements(context, op, u32, undefined, [seen], counterShared);
    context.define(result, { kind: "scalar", dtype: i32, register });
  }
  // What goes through shared memory has met a barrier, what goes from lane to lane has not.
  if (!wanted || scope.warps === 1) threadBarrier(context, counterShared);
}

const counterShared = "all lanes have what one has seen";

/** Where a look in vain leads: to the next one, or on after a failure. */
function afterPoll(context: EmitContext, again: string, over: string): string {
  const { code, failureCell } = context;
  if (failureCell === undefined) return again;
  const retry = code.label("unreached");
  code.aside(() => {
    code.place(retry);
    stopAfterFailure(context, failureCell, { again, over });
  });
  return retry;
}

/** The parity words of barriers that warps of the region wait for, as they are before it. */
export function phasesBefore(
  context: EmitContext,
  body: Region,
): readonly { readonly phase: Register; readonly before: Register; readonly count: number }[] {
  const { code } = context;
  const barriers = new Set<Value>();
  const own = new Set<Value>();
  walkOps(body, (op) => {
    if (op.kind === "barrier_wait") barriers.add(op.operands.barrier);
    if (op.kind === "alloc_barrier") for (const result of op.results) own.add(result);
  });
  return [...barriers]
    .filter((barrier) => !own.has(barrier))
    .flatMap((barrier) => {
      const { phases, count } = context.barrier(barrier);
      return phases.map((phase, word) => ({
        phase,
        before: code.make("b32", "mov.b32", phase),
        count: Math.min(phaseBits, count - phaseBits * word),
      }));
    });
}

/** A thread has waited for what any of its warps has waited for: those that did wait agree. */
export function joinWarpPhases(context: EmitContext, words: ReturnType<typeof phasesBefore>): void {
  const { code } = context;
  for (const { phase, before, count } of words) {
    const changed = code.make("b32", "xor.b32", phase, before);
    const joined = code.make("b32", "mov.b32", before);
    for (let bit = 0; bit < count; bit += 1) {
      const own = code.make("b32", "and.b32", changed, integer(2 ** bit));
      const mine = code.make("pred", "setp.ne.u32", own, integer(0));
      const any = code.make(
        "pred",
        "barrier.red.or.pred",
        threadBarrierNumber(context),
        threadLanes(context),
        mine,
      );
      code.guarded(any, () => code.emit("xor.b32", [joined, joined, integer(2 ** bit)]));
    }
    code.emit("mov.b32", [phase, joined]);
  }
}

export const synchronizationRules: EmitRules<typeof synchronizationOps> = {
  alloc_barrier: allocateBarrier,
  linear_index: linearIndex,
  barrier_arrive: arrive,
  barrier_wait: wait,
  barrier_test: test,
  delay(op, context) {
    const { register } = context.scalar(op.operands.nanoseconds);
    context.code.emit("nanosleep.u32", [register]);
  },
  block_sync: (_, context) => {
    blockBarrier(context, "blockSync");
  },
  cluster_arrive: (_, context) => {
    tensorFence(context, "before");
    context.code.emit("barrier.cluster.arrive.release.aligned");
  },
  cluster_wait: (_, context) => {
    context.code.emit("barrier.cluster.wait.acquire.aligned");
    tensorFence(context, "after");
  },
  set_registers: setRegisters,
  grid_dependency(op, { code, target }) {
    if (!target.features.includes("cluster")) return;
    const form = op.attributes.action === "wait" ? "wait" : "launch_dependents";
    code.emit(`griddepcontrol.${form}`);
  },
  alloc_semaphore(op, context) {
    const [result] = op.results;
    const { shape, restored = false } = op.attributes;
    const name = `${op.attributes.name ?? "semaphore"} ${result?.id ?? 0}`;
    const bytes = multiplySizes(4, ...shape);
    const zeroed = restored ? "once" : true;
    const base = context.parameter({ kind: "scratch", name, bytes, zeroed });
    context.define(result, { kind: "semaphore", base, shape });
  },
  semaphore_signal: signal,
  semaphore_wait: semaphoreWait,
  semaphore_read: semaphoreRead,
};
