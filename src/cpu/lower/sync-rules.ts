/**
 * Lowering of barriers, semaphores and meetings of threads. A barrier is two words of memory, arrivals so far and phases that
 * are complete; each thread counts the phases that it has waited for.
 */
import type { AnyOp, Op, Value } from "../../ir/node.ts";
import type { synchronizationOps } from "../../ir/ops/synchronization.ts";
import { multiplySizes } from "../../ir/size.ts";
import { constantOf, i32, load, op as operation, read } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import { expressionOf } from "./held.ts";
import type { HeldBarriers, HeldSemaphores } from "./held.ts";
import type { Lowering } from "./lowering.ts";
import type { LoweringRules } from "./regions.ts";

/** All threads of the block meet. */
export function syncThreads(lowering: Lowering, op: AnyOp): void {
  const threads = lowering.kernel.threads.length;
  if (threads === 1) return;
  const { b } = lowering;
  const point = lowering.syncWords("block", 2);
  const mine = b.variable(load("i32.load", point(), 4), "generation");
  const arrived = b.keep(i32.add(load("i32.load", point()), i32.of(1)));
  b.store("i32.store", point(), arrived);
  b.if(operation("i32.eq", arrived, i32.of(threads)), () => {
    b.store("i32.store", point(), i32.of(0));
    b.store("i32.store", point(), i32.add(read(mine), i32.of(1)), 4);
  });
  lowering.flow.wait(
    () => operation("i32.ne", load("i32.load", point(), 4), read(mine)),
    op.location,
  );
}

function barriersOf(lowering: Lowering, value: Value): HeldBarriers {
  const held = lowering.held(value);
  if (held.kind !== "barriers") throw new Error(`%${value.id} is no barrier`);
  return held;
}

/** The number of a barrier of an array, which must be one of it. */
function barrierIndex(
  lowering: Lowering,
  op: AnyOp,
  { count }: HeldBarriers,
  index: Value | undefined,
): Expression {
  if (index === undefined) return i32.of(0);
  const number = lowering.scalar(index);
  const known = constantOf(number);
  if (known === undefined || known < 0 || known >= count)
    lowering.failIf(
      lowering.b,
      operation("i32.ge_u", number, i32.of(count)),
      lowering.fault("bounds", "an index outside of an array of barriers", op.location),
    );
  return number;
}

/** The address of a barrier's words. */
function barrierAt(lowering: Lowering, barriers: HeldBarriers, index: Expression): Expression {
  return lowering.b.keep(i32.add(barriers.base, i32.mul(index, i32.of(8))), "barrier");
}

/** One arrival. */
export function arrive(
  lowering: Lowering,
  op: AnyOp,
  barrier: Value,
  index: Value | undefined,
): void {
  const { b } = lowering;
  const barriers = barriersOf(lowering, barrier);
  const at = barrierAt(lowering, barriers, barrierIndex(lowering, op, barriers, index));
  const arrived = b.keep(i32.add(load("i32.load", at, barriers.offset), i32.of(1)));
  b.store("i32.store", at, arrived, barriers.offset);
  b.if(operation("i32.ge_s", arrived, i32.of(barriers.arrivals)), () => {
    b.store("i32.store", at, i32.of(0), barriers.offset);
    const phase = load("i32.load", at, barriers.offset + 4);
    b.store("i32.store", at, i32.add(phase, i32.of(1)), barriers.offset + 4);
  });
}

function barrierWait(op: Op<"barrier_wait">, lowering: Lowering): void {
  const { barrier, index, parity } = op.operands;
  const barriers = barriersOf(lowering, barrier);
  const number = barrierIndex(lowering, op, barriers, index);
  const at = barrierAt(lowering, barriers, number);
  const seen = lowering.b.keep(
    i32.add(lowering.seenPhases().address(barriers.seen), i32.mul(number, i32.of(4))),
    "seen",
  );
  const phase = (): Expression => load("i32.load", at, barriers.offset + 4);
  const wanted = parity === undefined ? undefined : lowering.scalar(parity);
  lowering.flow.wait(
    () =>
      wanted === undefined
        ? operation("i32.gt_s", phase(), load("i32.load", seen))
        : operation("i32.and", operation("i32.xor", phase(), wanted), i32.of(1)),
    op.location,
  );
  const { b } = lowering;
  b.store(
    "i32.store",
    seen,
    wanted === undefined ? i32.add(load("i32.load", seen), i32.of(1)) : phase(),
  );
}

function barrierTest(op: Op<"barrier_test">, lowering: Lowering): void {
  const { barrier, index, parity } = op.operands;
  const barriers = barriersOf(lowering, barrier);
  const at = barrierAt(lowering, barriers, barrierIndex(lowering, op, barriers, index));
  const phase = load("i32.load", at, barriers.offset + 4);
  lowering.holdScalar(
    op.results[0],
    operation("i32.and", operation("i32.xor", phase, lowering.scalar(parity)), i32.of(1)),
  );
}

/** Barriers begin anew each time that the block allocates them, with the first of its threads that comes there. */
function allocBarrier(op: Op<"alloc_barrier">, lowering: Lowering): void {
  const { count, arrivals } = op.attributes;
  const [result] = op.results;
  if (result === undefined) throw new Error("alloc_barrier has no result");
  const { b } = lowering;
  const key = `barrier ${result.id}${lowering.alone ? ` ${lowering.thread}` : ""}`;
  const words = lowering.syncWords(key, 2 * count + 1);
  const turns = lowering.syncWords(`turns of ${key} ${lowering.thread}`, 1);
  const seen = lowering.seenPhases().take(key, count);
  const turn = b.keep(i32.add(load("i32.load", turns()), i32.of(1)), "turn");
  b.store("i32.store", turns(), turn);
  const first = operation("i32.gt_s", turn, load("i32.load", words(), 8 * count));
  b.if(first, () => {
    b.run(operation("memory.fill", words(), i32.of(0), i32.of(8 * count)));
    b.store("i32.store", words(), turn, 8 * count);
  });
  b.run(
    operation("memory.fill", lowering.seenPhases().address(seen), i32.of(0), i32.of(4 * count)),
  );
  lowering.hold(result, {
    kind: "barriers",
    base: b.keep(words()),
    offset: 0,
    count,
    arrivals,
    seen,
  });
}

function linearIndex(op: Op<"linear_index">, lowering: Lowering): void {
  const { extents, strides } = op.attributes;
  let sum: Expression = i32.of(0);
  op.operands.indices.forEach((value, axis) => {
    const index = lowering.scalar(value);
    lowering.failIf(
      lowering.b,
      operation("i32.ge_u", index, i32.of(extents[axis] ?? 0)),
      lowering.fault("bounds", "an index outside of an array of barriers", op.location),
    );
    sum = i32.add(sum, i32.mul(index, i32.of(strides[axis] ?? 0)));
  });
  lowering.holdScalar(op.results[0], sum);
}

type CounterOp = Op<"semaphore_signal"> | Op<"semaphore_wait"> | Op<"semaphore_read">;

/** The address of a counter. */
function counterAt(lowering: Lowering, op: CounterOp): Expression {
  const held = lowering.held(op.operands.semaphore);
  if (held.kind !== "semaphores") throw new Error("no semaphore");
  const { base, shape }: HeldSemaphores = held;
  let place: Expression = i32.of(0);
  shape.forEach((extent, axis) => {
    const value = op.operands.indices[axis];
    const index = value === undefined ? i32.of(0) : expressionOf(lowering.index(value));
    lowering.failIf(
      lowering.b,
      operation("i32.ge_u", index, expressionOf(extent)),
      lowering.fault("bounds", "an index outside of an array of semaphores", op.location),
    );
    place = i32.add(i32.mul(place, expressionOf(extent)), index);
  });
  return lowering.b.keep(i32.add(base, i32.mul(place, i32.of(4))), "counter");
}

export const synchronizationRules: Pick<LoweringRules, keyof typeof synchronizationOps> = {
  alloc_barrier: allocBarrier,
  linear_index: linearIndex,
  barrier_arrive(op, lowering) {
    if (op.operands.peer !== undefined) lowering.refuse(op, "a cluster of blocks");
    arrive(lowering, op, op.operands.barrier, op.operands.index);
  },
  barrier_wait: barrierWait,
  barrier_test: barrierTest,
  delay() {
    // Time passes anyway.
  },
  block_sync(op, lowering) {
    syncThreads(lowering, op);
  },
  // Without clusters the block is its own: it meets where it waits.
  cluster_arrive() {},
  cluster_wait(op, lowering) {
    syncThreads(lowering, op);
  },
  set_registers() {},
  grid_dependency() {},
  alloc_semaphore(op, lowering) {
    const { shape } = op.attributes;
    const [result] = op.results;
    if (result === undefined) throw new Error("alloc_semaphore has no result");
    lowering.order = "in order";
    const base = lowering.launchMemory(`semaphore ${result.id}`, multiplySizes(4, ...shape), true);
    lowering.hold(result, {
      kind: "semaphores",
      base,
      shape: shape.map((size) => lowering.size(size)),
    });
  },
  semaphore_signal(op, lowering) {
    const counter = counterAt(lowering, op);
    const increment = lowering.scalar(op.operands.increment);
    lowering.b.run(operation("i32.atomic.rmw.add", counter, increment));
  },
  semaphore_wait(op, lowering) {
    const counter = counterAt(lowering, op);
    const value = lowering.scalar(op.operands.value);
    lowering.flow.wait(
      () => operation("i32.ge_s", load("i32.atomic.load", counter), value),
      op.location,
    );
    if (op.attributes.decrement) lowering.b.run(operation("i32.atomic.rmw.sub", counter, value));
  },
  semaphore_read(op, lowering) {
    lowering.holdScalar(op.results[0], load("i32.atomic.load", counterAt(lowering, op)));
  },
};
