/** Simulation of ops with regions, and of ops for finding mistakes. */
import type { Elements } from "../../formats/dtype.ts";
import type { Op, Region, Value } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import type { controlOps } from "../../ir/ops/control.ts";
import { reachesPeers } from "../../ir/traits.ts";
import { operandValues, walkOps } from "../../ir/traverse.ts";
import { dataShape, isData } from "../../ir/types.ts";
import type { Agent, Outcome, Poll } from "../agent.ts";
import { hasChanged } from "../wait-queue.ts";
import { breakHere } from "../debugger.ts";
import { parsePrintFormat } from "../../support/print-format.ts";
import { assertionReport, falseText, printText, stepReport, valueText } from "../print-messages.ts";
import { placeText } from "../../happens-before/access.ts";
import { moveSlots } from "../program.ts";
import type { Assembler, SimulationRules } from "../program.ts";
import { decodeValue, numberAt, scalarAt, toElements } from "../values.ts";
import type { ScalarValue, SlotValue } from "../values.ts";
import { isView } from "../view.ts";
import { BarrierArray } from "../barriers.ts";
import { emitSync, ownPoint } from "./execution-barriers.ts";
import { profileMark } from "./profile.ts";

function loop(op: Op<"loop">, code: Assembler): void {
  const { lower, upper, step, initial } = op.operands;
  const [index = -1, ...carries] = code.slotsOf(op.regions.body.parameters);
  const [from, to, by] = [code.slot(lower), code.slot(upper), code.slot(step)];
  const begin = moveSlots(code.slotsOf(initial), carries);
  code.emit(op, (agent) => {
    requirePositiveStep(agent, op, by);
    begin(agent);
    agent.slots[index] = agent.slots[from];
    return "proceed";
  });
  const exit = code.label();
  const head = code.steps.length;
  code.emit(op, (agent) => {
    if (scalarAt(agent, index) >= scalarAt(agent, to)) agent.position = exit.position;
    return "proceed";
  });
  const ends = endOfRound(code, op, code.loopRegion(index, op.regions.body), carries);
  code.emit(op, (agent) => {
    if (ends(agent)) {
      agent.position = exit.position;
      return "proceed";
    }
    // Both are bigint where the bounds are i64.
    agent.slots[index] = numberAt(agent, index) + numberAt(agent, by);
    agent.position = head;
    return "proceed";
  });
  code.place(exit);
  emitMoves(code, op, carries);
}

/** Moves what the round yields into the carries, and tells whether the loop ends there. */
function endOfRound(
  code: Assembler,
  { attributes }: Op<"loop"> | Op<"while">,
  yielded: readonly number[],
  carries: readonly number[],
): (agent: Agent) => boolean {
  if (attributes.breaks !== true) {
    const advance = moveSlots(yielded, carries);
    return (agent) => {
      advance(agent);
      return false;
    };
  }
  const flag = code.spareSlot();
  const advance = moveSlots(yielded, [...carries, flag]);
  return (agent) => {
    advance(agent);
    return agent.slots[flag] !== 0;
  };
}

function requirePositiveStep(agent: Agent, op: Op<"loop">, slot: number): void {
  const step = scalarAt(agent, slot);
  if (step > 0) return;
  agent.machine.findings.stop(stepReport(step, op.location, placeText(agent.place())), op);
}

/** Gives the op's results the values in `slots`. */
function emitMoves(
  code: Assembler,
  op: Op<"loop"> | Op<"while"> | Op<"if"> | Op<"switch"> | Op<"scoped">,
  slots: readonly number[],
): void {
  if (slots.length === 0) return;
  const move = moveSlots(slots, code.slotsOf(op.results));
  code.emit(op, (agent) => {
    move(agent);
    return "proceed";
  });
}

function whileLoop(op: Op<"while">, code: Assembler): void {
  const { condition, body } = op.regions;
  const tested = code.slotsOf(condition.parameters);
  const carries = code.slotsOf(body.parameters);
  const begin = moveSlots(code.slotsOf(op.operands.initial), tested);
  const count = code.spareSlot();
  code.emit(op, (agent) => {
    begin(agent);
    agent.slots[count] = 0;
    agent.poll = undefined;
    return "proceed";
  });
  const head = code.steps.length;
  const exit = code.label();
  code.emit(op, (agent) => beginRound(agent, op, tested));
  const [flag = -1] = code.loopRegion(count, condition);
  const enter = moveSlots(tested, carries);
  code.emit(op, (agent) => {
    if (agent.slots[flag] === 0) {
      agent.position = exit.position;
      agent.poll = undefined;
    } else enter(agent);
    return "proceed";
  });
  const ends = endOfRound(code, op, code.loopRegion(count, body), tested);
  code.emit(op, (agent) => {
    if (ends(agent)) {
      agent.position = exit.position;
      agent.poll = undefined;
      return "proceed";
    }
    agent.slots[count] = numberAt(agent, count) + 1;
    agent.position = head;
    return "proceed";
  });
  code.place(exit);
  emitMoves(code, op, tested);
}

/**
 * A round that begins as the one before, which has changed nothing and found nothing changed, would end as that: its agent waits until
 * something that it has looked at changes. So a loop that polls lets others go on, and one that polls for ever is a deadlock.
 */
function beginRound(agent: Agent, op: Op<"while">, slots: readonly number[]): Outcome {
  const { poll, changes } = agent;
  const carried = slots.map((slot) => agent.slots[slot]);
  const repeats =
    poll?.loop === op &&
    poll.changes === changes &&
    poll.carried.every((value, position) => isSame(value, carried[position])) &&
    !hasChanged(poll.polled);
  if (repeats) return agent.waitForChange(poll.polled, () => pollText(poll));
  agent.poll = { loop: op, carried, changes, polled: new Map() };
  return "proceed";
}

function isSame(left: SlotValue, right: SlotValue): boolean {
  if (left === right || Object.is(left, right)) return true;
  if (!ArrayBuffer.isView(left) || !ArrayBuffer.isView(right)) return false;
  const bytes = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
    new Uint8Array(buffer, byteOffset, byteLength);
  const [own, other] = [bytes(left), bytes(right)];
  return own.every((byte, position) => byte === other[position]);
}

function pollText({ polled }: Poll): string {
  const names = [...polled.keys()].map(({ name }) => name);
  if (names.length === 0) return "nothing: its loop repeats without an end";
  return `a change of ${names.join(" or ")}, which its loop looks at again and again`;
}

/** Regions of which the step `enter` chooses one, by setting the position to one of the starts. */
function branches(
  op: Op<"if"> | Op<"switch">,
  code: Assembler,
  regions: readonly Region[],
  choose: (agent: Agent) => number,
): void {
  const starts = regions.map(() => code.label());
  const exit = code.label();
  code.emit(op, (agent) => {
    agent.position = starts[choose(agent)]?.position ?? exit.position;
    return "proceed";
  });
  for (const [position, region] of regions.entries()) {
    const start = starts[position];
    if (start !== undefined) code.place(start);
    emitMoves(code, op, code.region(region));
    code.emit(op, (agent) => {
      agent.position = exit.position;
      return "proceed";
    });
  }
  code.place(exit);
}

/** Ends the life of what the scope allocated, by whoever comes first. */
function releaseScope(
  agent: Agent,
  op: Op<"scoped">,
  allocated: SlotValue[],
  sites: readonly number[],
): void {
  const { checker } = agent.machine;
  for (const site of sites) {
    const value = allocated[site];
    if (value === undefined) continue;
    allocated[site] = undefined;
    if (checker !== undefined && agent.timeline !== undefined) {
      const { knowledge } = agent.timeline;
      if (value instanceof BarrierArray) {
        checker.barriersEnded(value, agent, op, knowledge);
        agent.block.cluster.retire(value);
      } else if (isView(value)) checker.release(value.memory, agent, op, knowledge);
    }
    agent.machine.giveShared(site, value);
  }
}

/** Whether other blocks of the cluster arrive on barriers of the scope: these begin in all blocks before anyone uses them. */
function isToldByPeers({ regions: { body } }: Op<"scoped">): boolean {
  const own = new Set(body.ops.flatMap((op) => (op.kind === "alloc_barrier" ? op.results : [])));
  let found = false;
  walkOps(body, (op) => {
    if (!operandValues(op).some((each) => own.has(each))) return;
    found ||= reachesPeers(op);
  });
  return found;
}

function scoped(op: Op<"scoped">, code: Assembler): void {
  const together = code.company === "together";
  if (together)
    emitSync(code, op, isToldByPeers(op) ? ({ cluster }) => cluster.scopePoint : ownPoint);
  const { yielded, sites } = code.scopeRegion(op.regions.body);
  emitMoves(code, op, yielded);
  if (together) emitSync(code, op, ownPoint);
  code.emit(op, (agent) => {
    releaseScope(agent, op, together ? agent.block.allocated : agent.allocated, sites);
    return "proceed";
  });
}

function onThreads(op: Op<"on_threads">, code: Assembler): void {
  const runs = code.kernel.threads.map((_, thread) => op.attributes.threads.includes(thread));
  const exit = code.label();
  code.emit(op, (agent) => {
    if (runs[agent.thread] !== true) agent.position = exit.position;
    return "proceed";
  });
  code.companyRegion("alone", op.regions.body);
  code.place(exit);
}

function warps(op: Op<"warps">, code: Assembler): void {
  const [index = -1] = code.slotsOf(op.regions.body.parameters);
  const join = code.label();
  code.emit(op, (agent) => {
    agent.fork(index);
    agent.position = join.position;
    return "switch";
  });
  code.companyRegion("alone", op.regions.body);
  code.emit(op, (agent) => {
    agent.ended = true;
    agent.machine.checker?.agentEnded(agent);
    agent.parent?.ownWork.wake();
    return "ended";
  });
  code.place(join);
  code.emit(op, (agent) =>
    agent.join()
      ? "proceed"
      : agent.wait(
          agent.ownWork,
          () => agent.warpsEnded(),
          () => "its warps",
        ),
  );
}

function slotText({ type }: Value, held: SlotValue, whole = false): string {
  if (!isData(type)) throw new Error(`${type.kind} is no data`);
  const shape = dataShape(type);
  const elements =
    shape.length > 0 ? (held as Elements) : toElements(type.dtype, held as ScalarValue);
  return valueText(type.dtype, shape, elements, whole);
}

function debugPrint(op: Op<"debug_print">, code: Assembler): void {
  const { values } = op.operands;
  const slots = code.slotsOf(values);
  const { whole } = parsePrintFormat(op.attributes.format);
  code.emit(op, (agent) => {
    const texts = values.map((value, position) =>
      slotText(value, agent.slots[slots[position] ?? -1], whole[position]),
    );
    agent.machine.print(printText(op.attributes.format, texts, agent.place()));
    return "proceed";
  });
}

/** The numbers whose comparison gave a scalar, by which a failure is understood. */
function comparedText(code: Assembler, condition: Value): (agent: Agent) => string {
  const compared = comparisonOf(code, condition);
  if (compared === undefined || condition.type.kind !== "scalar") return () => "false";
  const { left, right } = compared.operands;
  const [first, second] = [code.slot(left), code.slot(right)];
  return ({ slots }) =>
    `${slotText(left, slots[first])} ${opName(compared)} ${slotText(right, slots[second])} is false`;
}

function comparisonOf({ kernel }: Assembler, condition: Value): Op<"compare"> | undefined {
  const found: Op<"compare">[] = [];
  walkOps(kernel.body, (op) => {
    if (op.kind === "compare" && op.results.includes(condition)) found.push(op);
  });
  return found[0];
}

function assertion(op: Op<"assert">, code: Assembler): void {
  const { condition } = op.operands;
  const slot = code.slot(condition);
  const { type } = condition;
  const scalarText = comparedText(code, condition);
  code.emit(op, (agent) => {
    const held = agent.slots[slot];
    const holds = type.kind === "tile" ? !(held as Uint8Array).includes(0) : held !== 0;
    if (holds) return "proceed";
    const found =
      type.kind === "tile" ? falseText(held as Uint8Array, type.shape) : scalarText(agent);
    const { message } = op.attributes;
    const report = assertionReport(message, op.location, `${found} in ${placeText(agent.place())}`);
    return agent.machine.findings.stop(report, op);
  });
}

function debugBreak(op: Op<"debug_break">, code: Assembler): void {
  const { values } = op.operands;
  const slots = code.slotsOf(values);
  code.emit(op, (agent) => {
    const { thread, block, iterations } = agent.place();
    const named = op.attributes.names.map((name, position) => {
      const value = values[position];
      const held = agent.slots[slots[position] ?? -1];
      return [name, value === undefined ? undefined : decodeValue(value, held)] as const;
    });
    breakHere(Object.fromEntries(named), thread, block, iterations);
    return "proceed";
  });
}

export const controlRules: Pick<SimulationRules, keyof typeof controlOps> = {
  loop,
  while: whileLoop,

  if(op, code) {
    const slot = code.slot(op.operands.condition);
    branches(op, code, [op.regions.then, op.regions.otherwise], (agent) =>
      agent.slots[slot] === 0 ? 1 : 0,
    );
  },

  switch(op, code) {
    const slot = code.slot(op.operands.index);
    const last = op.regions.cases.length - 1;
    branches(op, code, op.regions.cases, (agent) =>
      Math.min(last, Math.max(0, numberAt(agent, slot))),
    );
  },

  scoped,
  on_threads: onThreads,
  warps,

  yield() {
    throw new Error("a yield belongs to its region");
  },

  debug_print: debugPrint,
  print_layout() {
    // Tiles have layouts where they are compiled.
  },
  assert: assertion,
  profile_mark: profileMark,
  debug_break: debugBreak,
};
