/** Simulation of ops by which program threads and blocks order themselves. */
import type { Op, Value } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import type { synchronizationOps } from "../../ir/ops/synchronization.ts";
import { refuseRank } from "../window-checks.ts";
import type { Agent } from "../agent.ts";
import type { Block } from "../block.ts";
import { BarrierArray } from "../barriers.ts";
import { touchCounter } from "../counter-scopes.ts";
import type { BarrierElement } from "../barriers.ts";
import { arrivalsText, reportOverrun } from "../race-messages.ts";
import { placeText } from "../../happens-before/access.ts";
import type { Origin } from "../../happens-before/access.ts";
import type { Knowledge } from "../../happens-before/knowledge.ts";
import type { Assembler, SimulationRules } from "../program.ts";
import type { Semaphore } from "../semaphores.ts";
import { barrierAt, numberAt, semaphoreAt } from "../values.ts";
import { arriveAt, emitSync, ownPoint, waitAt } from "./execution-barriers.ts";
import { emitAllocation } from "./memory.ts";

/** Finds the barrier that an op names; stops the run where its index is out of range. */
export function barrierReader(
  code: Assembler,
  index: Value | undefined,
): (agent: Agent, barriers: BarrierArray) => BarrierElement {
  const slot = index === undefined ? undefined : code.slot(index);
  return (agent, barriers) => {
    const position = slot === undefined ? 0 : numberAt(agent, slot);
    const element = barriers.elements[position];
    if (element !== undefined) return element;
    const { op } = agent.site;
    return agent.machine.findings.stop(
      {
        code: "TW3006",
        message: `${opName(op)} on ${barriers.name}[${position}], an array of ${barriers.elements.length}`,
        location: op.location,
        expected: `an index from 0 to ${barriers.elements.length - 1}`,
        found: `${position} in ${placeText(agent.place())}`,
        notes: [{ message: "the barriers are allocated here", location: barriers.op.location }],
      },
      op,
    );
  };
}

/** The block of a rank in the agent's cluster. */
export function peerBlock(agent: Agent, rank: number): Block {
  return agent.block.cluster.blocks[rank] ?? refuseRank(agent, rank);
}

/** The same barriers in another block. */
export function peerBarriers(agent: Agent, barriers: BarrierArray, rank: number): BarrierArray {
  const value = peerBlock(agent, rank).allocation(barriers.site);
  if (!(value instanceof BarrierArray)) throw new Error("the peer has no such barriers");
  return value;
}

/** One arrival, with what it hands on; or one of the parts that an arrival is made of. */
export function arriveOn(
  barriers: BarrierArray,
  element: BarrierElement,
  knowledge: Knowledge,
  origin: Origin,
  parts = 1,
): void {
  const completion = element.state.arrivePart(knowledge, origin, parts);
  if (completion === undefined) return;
  const { machine } = barriers.block;
  if (machine.checks)
    for (const overrun of completion.overruns)
      reportOverrun(machine.findings, barriers, element, overrun);
  element.waiters.wake();
}

function barrierArrive(op: Op<"barrier_arrive">, code: Assembler): void {
  const { barrier, index, peer } = op.operands;
  const slot = code.slot(barrier);
  const find = barrierReader(code, index);
  const rank = peer === undefined ? undefined : code.slot(peer);
  code.emit(op, (agent) => {
    const own = barrierAt(agent, slot);
    const barriers = rank === undefined ? own : peerBarriers(agent, own, numberAt(agent, rank));
    const element = find(agent, barriers);
    if (barriers.block !== agent.block)
      agent.machine.checker?.remoteArrival(agent, barriers, element.index);
    arriveOn(barriers, element, agent.publish(), agent.origin());
    return "switch";
  });
}

/** What a wait is for: a phase of a barrier, and what has come of it. */
function barrierText(
  agent: Agent,
  barriers: BarrierArray,
  element: BarrierElement,
  parity: number | undefined,
): string {
  const { phase, arrived, needed } = element.state;
  const wanted = nextPhase(agent, element);
  const what = parity === undefined ? `phase ${wanted}` : `a phase of parity ${parity & 1}`;
  const running = parity === undefined && wanted === phase ? "" : `phase ${phase} runs, `;
  return `${what} of ${barriers.nameOf(element)} (${running}${arrived.length} of ${needed} arrivals so far); ${arrivalsText(arrived)}`;
}

function barrierWait(op: Op<"barrier_wait">, code: Assembler): void {
  const { barrier, index, parity } = op.operands;
  const slot = code.slot(barrier);
  const find = barrierReader(code, index);
  const paritySlot = parity === undefined ? undefined : code.slot(parity);
  code.emit(op, (agent) => {
    const barriers = barrierAt(agent, slot);
    const element = find(agent, barriers);
    const wanted = paritySlot === undefined ? undefined : numberAt(agent, paritySlot);
    if (wanted === undefined && agent.unevenWaits.has(element)) stopAtUneven(agent, barriers, op);
    const phase = passedPhase(agent, element, wanted);
    if (phase === undefined)
      return agent.wait(
        element.waiters,
        () => passedPhase(agent, element, wanted) !== undefined,
        () => barrierText(agent, barriers, element, wanted),
      );
    agent.phases.set(element, phase + 1);
    passBarrier(agent, barriers, element, phase);
    return "switch";
  });
}

function barrierTest(op: Op<"barrier_test">, code: Assembler): void {
  const { barrier, index, parity } = op.operands;
  const slot = code.slot(barrier);
  const find = barrierReader(code, index);
  const paritySlot = code.slot(parity);
  const target = code.result(op);
  code.emit(op, (agent) => {
    const barriers = barrierAt(agent, slot);
    const element = find(agent, barriers);
    const phase = element.state.passingPhase(numberAt(agent, paritySlot));
    if (phase !== undefined) passBarrier(agent, barriers, element, phase);
    agent.slots[target] = phase === undefined ? 0 : 1;
    agent.polls(element);
    return "looked";
  });
}

function linearIndex(op: Op<"linear_index">, code: Assembler): void {
  const slots = code.slotsOf(op.operands.indices);
  const { extents, strides } = op.attributes;
  const target = code.result(op);
  code.emit(op, (agent) => {
    let sum = 0;
    for (let axis = 0; axis < slots.length; axis++) {
      const index = numberAt(agent, slots[axis] ?? 0);
      const extent = extents[axis] ?? 0;
      if (index < 0 || index >= extent) stopOutside(agent, op, index, extent);
      sum += index * (strides[axis] ?? 0);
    }
    agent.slots[target] = sum;
    return "proceed";
  });
}

function stopOutside(agent: Agent, op: Op<"linear_index">, index: number, extent: number): never {
  return agent.machine.findings.stop(
    {
      code: "TW3006",
      message: `an array of barriers has ${extent} along an axis, and is asked for ${index}`,
      location: op.location,
      expected: `an index from 0 to ${extent - 1}`,
      found: `${index} in ${placeText(agent.place())}`,
    },
    op,
  );
}

function stopAtUneven(agent: Agent, barriers: BarrierArray, op: Op<"barrier_wait">): never {
  return agent.machine.findings.stop(
    {
      code: "TW3021",
      message: `${opName(op)} on ${barriers.name} after warps have waited for it unequally often`,
      location: op.location,
      expected: "warps of the thread that waited for the same number of phases, or for none",
      found: `different numbers in ${placeText(agent.place())}`,
      notes: [{ message: "the barriers are allocated here", location: barriers.op.location }],
    },
    op,
  );
}

/** The phase with which a wait passes now: the agent's next one, or one of the parity it asks for. */
function passedPhase(
  agent: Agent,
  element: BarrierElement,
  parity: number | undefined,
): number | undefined {
  const { state } = element;
  if (parity !== undefined) return state.passingPhase(parity);
  const phase = nextPhase(agent, element);
  return state.hasCompleted(phase) ? phase : undefined;
}

function nextPhase(agent: Agent, element: BarrierElement): number {
  return agent.phases.get(element) ?? 0;
}

function passBarrier(
  agent: Agent,
  barriers: BarrierArray,
  element: BarrierElement,
  phase: number,
): void {
  const { timeline, machine } = agent;
  if (timeline === undefined) return;
  agent.acquire(element.state.phaseKnowledge(phase));
  const wait = { ...timeline.passWait(), ...agent.origin() };
  const overrun = element.state.recordWait(phase, wait);
  if (overrun !== undefined) reportOverrun(machine.findings, barriers, element, overrun);
}

type CounterOp = Op<"semaphore_signal"> | Op<"semaphore_wait"> | Op<"semaphore_read">;

/** Finds the counter that an op names; stops the run where an index is out of range. */
function semaphoreReader(code: Assembler, op: CounterOp): (agent: Agent) => Semaphore {
  const slot = code.slot(op.operands.semaphore);
  const slots = code.slotsOf(op.operands.indices);
  return (agent) => {
    const array = semaphoreAt(agent, slot);
    const indices = slots.map((index) => numberAt(agent, index));
    const semaphore = array.at(indices);
    if (semaphore !== undefined) return semaphore;
    return agent.machine.findings.stop(
      {
        code: "TW3005",
        message: `${opName(op)} on ${array.name} with an index out of bounds`,
        location: op.location,
        expected: `indices within [${array.shape.join(", ")}]`,
        found: `[${indices.join(", ")}] in ${placeText(agent.place())}`,
        notes: [{ message: "the semaphores are allocated here", location: array.op.location }],
      },
      op,
    );
  };
}

function semaphoreSignal(op: Op<"semaphore_signal">, code: Assembler): void {
  const find = semaphoreReader(code, op);
  const increment = code.slot(op.operands.increment);
  code.emit(op, (agent) => {
    const semaphore = find(agent);
    touchCounter(agent, semaphore, op, "atomic");
    semaphore.state.signal(agent.publish(), numberAt(agent, increment));
    semaphore.waiters.wake();
    return "switch";
  });
}

function semaphoreWait(op: Op<"semaphore_wait">, code: Assembler): void {
  const find = semaphoreReader(code, op);
  const slot = code.slot(op.operands.value);
  const { decrement } = op.attributes;
  code.emit(op, (agent) => {
    const semaphore = find(agent);
    const { state, waiters } = semaphore;
    const value = numberAt(agent, slot);
    if (!state.hasReached(value))
      return agent.wait(
        waiters,
        () => state.hasReached(value),
        () => `${semaphore.name} to reach ${value}: it is at ${state.value}`,
      );
    touchCounter(agent, semaphore, op, decrement ? "atomic" : "observe");
    agent.acquire(state.pass(value, decrement));
    if (decrement) waiters.wake();
    return "switch";
  });
}

function semaphoreRead(op: Op<"semaphore_read">, code: Assembler): void {
  const find = semaphoreReader(code, op);
  const target = code.result(op);
  code.emit(op, (agent) => {
    const semaphore = find(agent);
    const { state } = semaphore;
    touchCounter(agent, semaphore, op, "observe");
    agent.acquire(state.read());
    agent.slots[target] = state.value;
    agent.polls(semaphore);
    return "looked";
  });
}

export const synchronizationRules: Pick<SimulationRules, keyof typeof synchronizationOps> = {
  alloc_barrier(op, code) {
    emitAllocation(code, op);
  },

  linear_index: linearIndex,
  barrier_arrive: barrierArrive,
  barrier_wait: barrierWait,
  barrier_test: barrierTest,

  // Others go on meanwhile; how long it takes is not simulated.
  delay(op, code) {
    code.emit(op, () => "looked");
  },

  block_sync(op, code) {
    emitSync(code, op, ownPoint);
  },

  cluster_arrive(op, code) {
    code.emit(op, (agent) => arriveAt(agent, agent.block.cluster.syncPoint));
  },

  cluster_wait(op, code) {
    code.emit(op, (agent) => waitAt(agent, agent.block.cluster.syncPoint));
  },

  // Registers are not counted here, and kernels run one after the other.
  set_registers: () => undefined,
  grid_dependency: () => undefined,

  alloc_semaphore(op, code) {
    emitAllocation(code, op);
  },

  semaphore_signal: semaphoreSignal,
  semaphore_wait: semaphoreWait,
  semaphore_read: semaphoreRead,
};
