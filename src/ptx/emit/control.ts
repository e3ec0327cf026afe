/**
 * Control flow. Conditions and bounds are scalars, the same in all lanes of the agent, so branches are
 * uniform. A loop tests once before its first round and then at the end of each:
 *
 *       mov   %i, lower            carries begin in their own registers
 *       setp.ge %p, %i, upper
 *       @%p bra $exit
 *   $loop:
 *       … body …                   moves what it yields into the carries
 *       add   %i, %i, step
 *       setp.lt %q, %i, upper
 *       @%q bra $loop
 *   $exit:
 *
 * One that may break jumps there behind its moves, too, where the last of what it yields says so.
 */
import type { Op, Region, Value } from "../../ir/node.ts";
import type { controlOps } from "../../ir/ops/control.ts";
import { traitsOf } from "../../ir/traits.ts";
import { breakFlag, walkOps, yieldedValues } from "../../ir/traverse.ts";
import type { Register } from "../module.ts";
import { integer } from "../operands.ts";
import { accumulatorWordCount } from "./asynchronous/products.ts";
import { threadBarrier } from "./barriers.ts";
import type { EmitContext, EmitRules } from "./context.ts";
import { assertion, debugPrint, requirePositiveStep } from "./debug.ts";
import { beginRounds, leaveAfterFailure } from "./failure.ts";
import { mayStandStill } from "./failure-cell.ts";
import { freshValue, moveTogether } from "./moves.ts";
import type { HandedValue } from "./moves.ts";
import { blockBarrier, endBarriers, joinWarpPhases, phasesBefore } from "./synchronization.ts";
import { profileMark } from "./profile.ts";
import type { ScalarValue } from "./values.ts";

function handed(context: EmitContext, value: Value): HandedValue {
  const { kind } = value.type;
  if (kind === "tile") return context.tile(value);
  return kind === "inflight" ? context.inflight(value) : context.scalar(value);
}

/** What a region's yield hands on. */
function yielded(context: EmitContext, region: Region): readonly HandedValue[] {
  return yieldedValues(region).map((value) => handed(context, value));
}

/** Registers for what a loop carries, with the first values in them. */
function beginCarries(context: EmitContext, op: Op<"loop"> | Op<"while">): readonly HandedValue[] {
  const initial = op.operands.initial.map((value) => handed(context, value));
  const carries = op.results.map((result, position) => {
    const first = initial[position];
    // An accumulator in flight stays in its registers from beginning to end.
    return first?.kind === "inflight" ? first : freshValue(context, result);
  });
  moveTogether(context, initial, carries);
  return carries;
}

/** Moves what a round yields into the carries, and leaves the loop where it breaks there. */
function endRound(
  context: EmitContext,
  op: Op<"loop"> | Op<"while">,
  carries: readonly HandedValue[],
  exit: string,
): void {
  const flag = breakFlag(op);
  if (flag === undefined) {
    moveTogether(context, yielded(context, op.regions.body), carries);
    return;
  }
  // It may be a carry itself, which the moves overwrite.
  const ends = freshValue(context, flag);
  moveTogether(context, yielded(context, op.regions.body), [...carries, ends]);
  if (ends.kind === "scalar") context.code.jumpIf(ends.register, exit);
}

function defineAll(
  context: EmitContext,
  values: readonly Value[],
  emitted: readonly HandedValue[],
): void {
  values.forEach((value, position) => {
    const known = emitted[position];
    if (known !== undefined) context.define(value, known);
  });
}

/** Loops that wait or multiply are left as they are; the assembler may unroll the others. */
function keepRolled({ code }: EmitContext, ...regions: readonly Region[]): void {
  let rolled = false;
  for (const region of regions)
    walkOps(region, (op) => {
      rolled ||= traitsOf(op).unrolls === "never";
    });
  if (rolled) code.pragma("nounroll");
}

function loop(op: Op<"loop">, context: EmitContext): void {
  const { code } = context;
  const { body } = op.regions;
  const [indexValue, ...parameters] = body.parameters;
  const bounds = [op.operands.lower, op.operands.upper, op.operands.step].map((value) =>
    context.scalar(value),
  );
  const [lower, upper, step] = bounds;
  if (lower === undefined || upper === undefined || step === undefined || !indexValue)
    throw new Error("a loop has bounds and an index");
  const type = lower.dtype.bits === 64 ? "64" : "32";
  const index = code.make(`b${type}`, `mov.b${type}`, lower.register);
  const carries = beginCarries(context, op);
  const [head, exit] = [code.label("loop"), code.label("exit")];
  if (mayStandStill(op, context.windows.facts))
    requirePositiveStep(op, context, step.register, exit);
  code.jumpIf(code.make("pred", `setp.ge.s${type}`, index, upper.register), exit);
  code.place(head);
  keepRolled(context, body);
  context.define(indexValue, { kind: "scalar", dtype: lower.dtype, register: index });
  defineAll(context, parameters, carries);
  context.region(body);
  code.at(op.location);
  endRound(context, op, carries, exit);
  const goesOn = mayPassLargest(upper, step, type)
    ? code.make(
        "pred",
        `setp.gt.u${type}`,
        code.make(`b${type}`, `sub.s${type}`, upper.register, index),
        step.register,
      )
    : undefined;
  code.emit(`add.s${type}`, [index, index, step.register]);
  code.jumpIf(goesOn ?? code.make("pred", `setp.lt.s${type}`, index, upper.register), head);
  code.place(exit);
  defineAll(context, op.results, carries);
}

/** Whether the index behind the last round may be beyond the largest integer, so that it cannot be compared. */
function mayPassLargest(upper: ScalarValue, step: ScalarValue, type: "32" | "64"): boolean {
  if (step.constant === 1) return false;
  const largest = type === "32" ? 2 ** 31 - 1 : 2 ** 63;
  return (upper.constant ?? largest) + (step.constant ?? largest) > largest;
}

function whileLoop(op: Op<"while">, context: EmitContext): void {
  const { code } = context;
  const { condition, body } = op.regions;
  const carries = beginCarries(context, op);
  const [head, exit] = [code.label("while"), code.label("exit")];
  const rounds = beginRounds(context);
  code.place(head);
  keepRolled(context, condition, body);
  defineAll(context, condition.parameters, carries);
  context.region(condition);
  const [flag] = yieldedValues(condition);
  if (flag === undefined) throw new Error("the condition of while yields a bool");
  code.jumpIf(context.scalar(flag).register, exit, { negated: true });
  defineAll(context, body.parameters, carries);
  context.region(body);
  code.at(op.location);
  endRound(context, op, carries, exit);
  leaveAfterFailure(context, rounds, { head, exit });
  code.jump(head);
  code.place(exit);
  defineAll(context, op.results, carries);
}

/** Registers that branches give their results in; an accumulator that they all give stays in its own. */
function branchResults(context: EmitContext, op: Op<"if"> | Op<"switch">): readonly HandedValue[] {
  return op.results.map((result) => {
    const { type } = result;
    if (type.kind !== "inflight") return freshValue(context, result);
    const first = context.accumulatorRegisters.of(result);
    if (first !== result) return context.inflight(first);
    const { dtype, shape } = type;
    const count = accumulatorWordCount(context, shape, dtype);
    return { kind: "inflight", dtype, shape, words: context.code.registers("b32", count) };
  });
}

function choice(op: Op<"if">, context: EmitContext): void {
  const { code } = context;
  const { then, otherwise } = op.regions;
  const results = branchResults(context, op);
  const condition = context.scalar(op.operands.condition).register;
  const exit = code.label("join");
  const hasOtherwise = otherwise.ops.length > 1 || results.length > 0;
  const other = hasOtherwise ? code.label("else") : exit;
  code.jumpIf(condition, other, { negated: true });
  context.region(then);
  moveTogether(context, yielded(context, then), results);
  if (hasOtherwise) {
    code.jump(exit);
    code.place(other);
    context.region(otherwise);
    moveTogether(context, yielded(context, otherwise), results);
  }
  code.place(exit);
  defineAll(context, op.results, results);
}

/** One comparison a case; the last case takes everything above, the first everything below. */
function switchCases(op: Op<"switch">, context: EmitContext): void {
  const { code } = context;
  const results = branchResults(context, op);
  const { register } = context.scalar(op.operands.index);
  const exit = code.label("join");
  const last = op.regions.cases.length - 1;
  op.regions.cases.forEach((region, position) => {
    const next = code.label("case");
    if (position < last)
      code.jumpIf(code.make("pred", "setp.gt.s32", register, integer(position)), next);
    context.region(region);
    moveTogether(context, yielded(context, region), results);
    if (position < last) code.jump(exit);
    code.place(next);
  });
  code.place(exit);
  defineAll(context, op.results, results);
}

/** Allocations of a scope end with it; outside `on_threads` all program threads come and go together. */
function scoped(op: Op<"scoped">, context: EmitContext): void {
  const { body } = op.regions;
  const together = context.scope.threads.length === context.kernel.threads.length;
  const meet = (reason: string): void => {
    if (together && context.scope.warps === context.kernel.warps) blockBarrier(context, reason);
    else threadBarrier(context, reason);
  };
  meet("all enter the scope together");
  context.region(body);
  defineAll(context, op.results, yielded(context, body));
  context.code.at(op.location);
  meet("all have left the scope, whose memory may be used again");
  endBarriers(context, body);
}

function onThreads(op: Op<"on_threads">, context: EmitContext): void {
  const { code, numbers, kernel } = context;
  const { threads } = op.attributes;
  if (threads.length === kernel.threads.length) {
    context.region(op.regions.body);
    return;
  }
  const exit = code.label("threads");
  code.jumpIf(runsHere(context, threads, numbers.thread), exit, { negated: true });
  const outer = context.scope;
  context.scope = { ...outer, threads };
  context.region(op.regions.body);
  context.scope = outer;
  code.place(exit);
}

function runsHere({ code }: EmitContext, threads: readonly number[], thread: Register): Register {
  const [only] = threads;
  if (threads.length === 1 && only !== undefined)
    return code.make("pred", "setp.eq.u32", thread, integer(only));
  const mask = threads.reduce((bits, each) => bits | (1 << each), 0);
  const own = code.make("b32", "shl.b32", code.constant("b32", 1), thread);
  const bit = code.make("b32", "and.b32", own, integer(mask));
  return code.make("pred", "setp.ne.u32", bit, integer(0));
}

function warps(op: Op<"warps">, context: EmitContext): void {
  const { body } = op.regions;
  const [index] = body.parameters;
  if (index === undefined || index.type.kind !== "scalar") throw new Error("warps have an index");
  const before = phasesBefore(context, body);
  threadBarrier(context, "warps begin on their own");
  const outer = context.scope;
  context.scope = { ...outer, warps: 1 };
  context.define(index, {
    kind: "scalar",
    dtype: index.type.dtype,
    register: context.numbers.warp,
  });
  context.region(body);
  context.scope = outer;
  context.code.at(op.location);
  threadBarrier(context, "warps have ended");
  joinWarpPhases(context, before);
}

export const controlRules: EmitRules<typeof controlOps> = {
  loop,
  while: whileLoop,
  if: choice,
  switch: switchCases,
  scoped,
  on_threads: onThreads,
  warps,
  yield: () => {
    // What a region yields is moved by the op that the region belongs to.
  },
  debug_print: debugPrint,
  print_layout() {
    // What was chosen is told as a note of the placement.
  },
  assert: assertion,
  profile_mark: profileMark,
  debug_break: () => {
    // The debugger is the simulator's; on hardware nothing happens.
  },
};
