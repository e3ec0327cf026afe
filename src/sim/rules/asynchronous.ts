/** Simulation of asynchronous copies and products, and of what waits for them and orders them. */
import {
  binaryElements,
  chunkBits,
  chunkOf,
  chunkProblem,
  dotElements,
  sparseDotElements,
} from "../../formats/arithmetic/index.ts";
import type { DotShape } from "../../formats/arithmetic/index.ts";
import { convertElements } from "../../formats/convert.ts";
import { allocateElements, isFloat } from "../../formats/dtype.ts";
import type { DType, Elements } from "../../formats/dtype.ts";
import { writeElement } from "../../formats/values.ts";
import type { Op, Value } from "../../ir/node.ts";
import type { asynchronousOps } from "../../ir/ops/asynchronous.ts";
import { isPromisedInside } from "../../ir/promises.ts";
import { requireWhole } from "../gathered-view.ts";
import { requireUsable } from "../window-checks.ts";
import type { Agent, Outcome } from "../agent.ts";
import type { Issue, Product, Work } from "../asynchronous.ts";
import type { BarrierArray, BarrierElement } from "../barriers.ts";
import { gather, readView, scatter } from "../memory.ts";
import { completion, Knowledge } from "../../happens-before/knowledge.ts";
import type { Epoch } from "../../happens-before/knowledge.ts";
import type { Assembler, SimulationRules } from "../program.ts";
import { barrierAt, inflightAt, elementsAt, scalarAt, toScalar, viewAt } from "../values.ts";
import type { Inflight, ScalarValue } from "../values.ts";
import { product } from "../view.ts";
import type { View } from "../view.ts";
import { axesNamed, leaderOf, pairAxisOf, ranksAlong } from "./block-pairs.ts";
import { peerView, zeroOf } from "./memory.ts";
import { arriveOn, barrierReader, peerBarriers, peerBlock } from "./synchronization.ts";

/** Gives the operation agents of its own; the issuer's later accesses belong to its next step. */
export function beginIssue(agent: Agent, sides: { readonly writes: boolean }): Issue {
  const origin = agent.origin();
  const { timeline, asyncAgents } = agent;
  if (timeline === undefined)
    return { origin, reads: undefined, writes: undefined, knowledge: Knowledge.none };
  const { knowledge } = timeline;
  const reads = asyncAgents.take("read", knowledge.shared);
  const writes = sides.writes ? asyncAgents.take("write", knowledge.shared) : undefined;
  timeline.tick();
  return { origin, reads, writes, knowledge };
}

export function checkRead(agent: Agent, { origin, reads, knowledge }: Issue, view: View): void {
  requirePromised(agent, view);
  requireUsable(agent, view);
  if (reads !== undefined)
    agent.machine.checker?.asynchronous(origin, reads, knowledge, view, "read");
}

/** A copy that is promised to be in bounds has whole windows on both sides. */
function requirePromised(agent: Agent, view: View): void {
  if (isPromisedInside(agent.site.op)) requireWhole(agent, view);
}

export function checkWrite(agent: Agent, issue: Issue, view: View, mode: "write" | "atomic"): void {
  requirePromised(agent, view);
  requireUsable(agent, view);
  const { origin, writes, knowledge } = issue;
  if (writes !== undefined)
    agent.machine.checker?.asynchronous(origin, writes, knowledge, view, mode);
}

function fillValue(dtype: DType, fill: "zero" | "nan"): ScalarValue {
  if (fill === "zero") return zeroOf(dtype);
  const elements = allocateElements(dtype, 1);
  writeElement(dtype, elements, 0, NaN);
  return toScalar(elements);
}

function countCopy(agent: Agent, view: View): void {
  const { statistics } = agent.machine;
  statistics.copies += 1;
  statistics.bytes += (2 * product(view.sizes) * view.dtype.bits) / 8;
}

/** Where a copy into shared memory lands: a window in each receiving block, and the barrier that is told. */
interface Landing {
  /** The rank of the block whose barrier it is. */
  readonly rank: number;
  readonly view: View;
  readonly barriers: BarrierArray;
  readonly element: BarrierElement;
}

function copyIntoShared(op: Op<"copy_async">, code: Assembler, barrier: Value): void {
  const [source, destination] = [code.slot(op.operands.source), code.slot(op.operands.destination)];
  const { fill, multicast, parts, pair = false } = op.attributes;
  const barrierSlot = code.slot(barrier);
  const find = barrierReader(code, op.operands.index);
  const { grid } = code.kernel;
  const axes = axesNamed(grid, multicast);
  // Each block of a pair copies for itself, unless one copies for both.
  const isForBoth = axes.includes(pairAxisOf(grid));
  const arrivalParts = pair ? 2 * (parts ?? 1) : parts;
  const landings = (agent: Agent): readonly Landing[] => {
    const view = viewAt(agent, destination);
    const barriers = barrierAt(agent, barrierSlot);
    return ranksAlong(agent, axes).map((rank) => {
      const told = pair ? leaderOf(rank) : rank;
      const received = rank === agent.block.rank ? view : peerView(view, peerBlock(agent, rank));
      // The own block's barriers are those at hand: what scopes of single warps declare is found by no name.
      const theirs = told === agent.block.rank ? barriers : peerBarriers(agent, barriers, told);
      return { rank: told, view: received, barriers: theirs, element: find(agent, theirs) };
    });
  };
  /** Whether the issuer itself arrives on a barrier, and not only its bytes. */
  const arrives = (rank: number, told: number): boolean => {
    // Where each copies a part, on its own barrier alone.
    if (parts !== undefined) return told === rank;
    return !pair || isForBoth || leaderOf(rank) === rank;
  };
  code.emit(op, (agent) => {
    const from = viewAt(agent, source);
    const into = landings(agent);
    const issue = beginIssue(agent, { writes: true });
    const waits = waitsOf(agent);
    checkRead(agent, issue, from);
    for (const { view, barriers, element } of into) {
      checkWrite(agent, issue, view, "write");
      if (pair) agent.machine.checker?.arrivesLater(agent, issue, barriers, element.index);
    }
    countCopy(agent, from);
    agent.machine.issue({
      issuer: agent,
      origin: issue.origin,
      complete() {
        const read = readView(from, fillValue(from.dtype, fill));
        const [known, bytes] = [completionOf(issue), bytesOf(issue, waits)];
        for (const { rank, view, barriers, element } of into) {
          scatter(view, landed(from.dtype, view.dtype, read));
          const told = arrives(agent.block.rank, rank) ? known : bytes;
          arriveOn(barriers, element, told, issue.origin, arrivalParts);
        }
        return issue.origin;
      },
    });
    return "switch";
  });
}

/** What a copy writes of what it has read. */
function landed(from: DType, to: DType, elements: Elements): Elements {
  if (from === to) return elements;
  const rounded = allocateElements(to, elements.length);
  convertElements(from, to, elements, rounded);
  return rounded;
}

export function completionOf({ reads, writes, knowledge }: Issue): Knowledge {
  if (reads === undefined || writes === undefined) return Knowledge.none;
  return completion(knowledge, [reads, writes]);
}

/** What is known of a copy by whoever sees its bytes land: that it has been made, and after which waits. */
function bytesOf({ reads, writes }: Issue, waits: readonly Epoch[]): Knowledge {
  if (reads === undefined || writes === undefined) return Knowledge.none;
  return completion(Knowledge.none, [reads, writes, ...waits]);
}

/** The last waits that the agent, and the thread whose warp it is, have passed. */
function waitsOf(agent: Agent | undefined): readonly Epoch[] {
  if (agent === undefined) return [];
  return [...waitsOf(agent.parent), ...[agent.timeline?.lastWait].flatMap((each) => each ?? [])];
}

function copyIntoGlobal(op: Op<"copy_async">, code: Assembler): void {
  const [source, destination] = [code.slot(op.operands.source), code.slot(op.operands.destination)];
  const { reduction } = op.attributes;
  code.emit(op, (agent) => {
    const from = viewAt(agent, source);
    const into = viewAt(agent, destination);
    const issue = beginIssue(agent, { writes: true });
    checkRead(agent, issue, from);
    checkWrite(agent, issue, into, reduction === "none" ? "write" : "atomic");
    countCopy(agent, from);
    const work: Work = { ...issue, done: false };
    agent.groups.add(work);
    agent.machine.issue({
      issuer: agent,
      origin: issue.origin,
      complete() {
        const elements = readView(from, zeroOf(from.dtype));
        if (reduction !== "none") combine(reduction, into, elements);
        scatter(into, elements);
        work.done = true;
        agent.ownWork.wake();
        agent.parent?.ownWork.wake();
        return issue.origin;
      },
    });
    return "switch";
  });
}

type Reduction = Exclude<Op<"copy_async">["attributes"]["reduction"], "none">;

/** Replaces the elements by their combination with what the view holds. */
function combine(reduction: Reduction, view: View, elements: Elements): void {
  const old = allocateElements(view.dtype, elements.length);
  gather(view, old, zeroOf(view.dtype));
  if (reduction === "inc" || reduction === "dec") return count(reduction, old, elements);
  const given = isFloat(view.dtype) && reduction !== "add" ? elements.slice() : undefined;
  binaryElements(reduction, view.dtype, old, elements, elements);
  if (given !== undefined) takeNumbers(old, given, elements);
}

/** Of a NaN and a number TMA takes the number. */
function takeNumbers(old: Elements, given: Elements, elements: Elements): void {
  for (let index = 0; index < elements.length; index += 1) {
    const [before, other] = [old[index], given[index]];
    if (Number.isNaN(before) && other !== undefined) elements[index] = other;
    if (Number.isNaN(other) && before !== undefined) elements[index] = before;
  }
}

/** Counts up from what is old to the element and starts anew at 0, or down to 0 and starts anew at the element. */
function count(way: "inc" | "dec", old: Elements, elements: Elements): void {
  for (let index = 0; index < elements.length; index += 1) {
    const [from, limit] = [Number(old[index]), Number(elements[index])];
    const up = from >= limit ? 0 : from + 1;
    const down = from === 0 || from > limit ? limit : from - 1;
    elements[index] = way === "inc" ? up : down;
  }
}

function areDone(awaited: readonly Work[]): boolean {
  return awaited.every(({ done }) => done);
}

function waitGroup(op: Op<"wait_group">, code: Assembler): void {
  const { pending, read } = op.attributes;
  code.emit(op, (agent) => waitForCopies(agent, pending, read) ?? "switch");
}

/** Waits for all groups but the newest `pending`: undefined once they are done. A wait that leaves none sees copies that are in no group, too. */
export function waitForCopies(agent: Agent, pending: number, read: boolean): Outcome | undefined {
  const { awaitable } = agent;
  if (pending === 0) for (const groups of awaitable) groups.close();
  const awaited = awaitable.flatMap((groups) => groups.awaited(pending, read));
  if (!areDone(awaited))
    return agent.wait(
      agent.ownWork,
      () => areDone(awaited),
      () => "its own copies into global memory",
    );
  for (const { reads, writes } of awaited) {
    if (reads !== undefined) agent.timeline?.finish(reads);
    if (writes !== undefined && !read) agent.timeline?.finish(writes);
  }
  for (const groups of awaitable) groups.settle(pending, read);
  return undefined;
}

/** Reads an operand of wgmma when it completes: a window then, a tile as it was. */
function operandReader(code: Assembler, value: Value): (agent: Agent) => () => Elements {
  const slot = code.slot(value);
  if (value.type.kind !== "ref")
    return (agent) => {
      const elements = elementsAt(agent, slot);
      return () => elements;
    };
  return (agent) => {
    const view = viewAt(agent, slot);
    return () => readView(view, zeroOf(view.dtype));
  };
}

function dtypeOfOperand({ type }: Value): DType {
  if (type.kind === "barrier" || type.kind === "semaphore") throw new Error("no operand of wgmma");
  return type.dtype;
}

function wgmma(op: Op<"wgmma">, code: Assembler): void {
  const { accumulator, a, b, metadata, adds } = op.operands;
  const { type } = accumulator;
  if (type.kind !== "inflight" || b.type.kind !== "ref") throw new Error("malformed wgmma");
  const [m = 0, n = 0] = type.shape;
  const [k = 0] = b.type.shape.map(Number);
  const shape: DotShape = {
    m,
    n,
    k,
    operand: dtypeOfOperand(a),
    operandB: b.type.dtype,
    accumulator: type.dtype,
  };
  const [slot, target] = [code.slot(accumulator), code.result(op)];
  const [left, right] = [operandReader(code, a), operandReader(code, b)];
  const windows = code.slotsOf([a, b].filter((value) => value.type.kind === "ref"));
  const sparsity = metadata && code.slot(metadata);
  const adding = adds && code.slot(adds);
  code.emit(op, (agent) => {
    const { elements } = inflightAt(agent, slot);
    const begins = adding !== undefined && scalarAt(agent, adding) === 0;
    const issue = beginIssue(agent, { writes: false });
    for (const window of windows) checkRead(agent, issue, viewAt(agent, window));
    const [readLeft, readRight] = [left(agent), right(agent)];
    const words = sparsity === undefined ? undefined : metadataAt(op, shape, agent, sparsity);
    const started: Product = {
      ...issue,
      done: false,
      compute: () => {
        if (begins) elements.fill(zeroOf(type.dtype) as never);
        if (words === undefined) dotElements(shape, readLeft(), readRight(), elements);
        else sparseDotElements(shape, readLeft(), words, readRight(), elements);
      },
    };
    agent.products.push(started);
    agent.machine.issue({
      issuer: agent,
      origin: issue.origin,
      complete() {
        const completed = agent.products.completeOldest();
        agent.ownWork.wake();
        return completed;
      },
    });
    agent.slots[target] = agent.slots[slot];
    return "switch";
  });
}

/** The metadata of a sparse product; reports those that mean nothing. */
function metadataAt(op: Op<"wgmma">, { operand, m, k }: DotShape, agent: Agent, slot: number) {
  const words = elementsAt(agent, slot) as Uint16Array;
  if (!agent.machine.checks) return words;
  const chunks = k / chunkOf(operand).length;
  for (let chunk = 0; chunk < m * chunks; chunk += 1) {
    const bits = chunkBits(words, chunk);
    const problem = chunkProblem(operand, bits);
    if (problem === undefined) continue;
    const report = {
      code: "TW3024",
      message: `wgmma has metadata that mean nothing: ${problem}`,
      location: op.location,
      expected: "two indices that differ; of tf32 0b0100 or 0b1110",
      found: `0b${bits.toString(2).padStart(4, "0")} for chunk ${chunk % chunks} of row ${Math.floor(chunk / chunks)}`,
    } as const;
    agent.machine.findings.add(report, op);
    break;
  }
  return words;
}

function wgmmaWait(op: Op<"wgmma_wait">, code: Assembler): void {
  const { pending, gives } = op.attributes;
  const [slot, target] = [code.slot(op.operands.accumulator), code.result(op)];
  code.emit(op, (agent) => {
    const awaited = agent.products.awaited(pending);
    if (!areDone(awaited))
      return agent.wait(
        agent.ownWork,
        () => areDone(awaited),
        () => "its own wgmma",
      );
    for (const { reads } of awaited) if (reads !== undefined) agent.timeline?.finish(reads);
    agent.products.settle(pending);
    const accumulator = inflightAt(agent, slot);
    agent.slots[target] = gives === "tile" ? accumulator.elements : accumulator;
    return "switch";
  });
}

function makeAccumulator(op: Op<"accumulator">, code: Assembler): void {
  const { dtype, shape, anything } = op.attributes;
  const { initial } = op.operands;
  const start = initial === undefined ? undefined : code.slot(initial);
  const target = code.result(op);
  const count = product(shape);
  code.emit(op, (agent) => {
    // Never from the pool: a product still pending may write to them after the tile is dead.
    const elements =
      start === undefined ? allocateElements(dtype, count) : elementsAt(agent, start).slice();
    if (anything === true) spoil(elements);
    const accumulator: Inflight = { elements };
    agent.slots[target] = accumulator;
    return "proceed";
  });
}

/** What nobody should read: it shows in whatever is computed with it. */
function spoil(elements: ReturnType<typeof elementsAt>): void {
  if (elements instanceof Float32Array || elements instanceof Float64Array) elements.fill(NaN);
  else if (elements instanceof Int32Array) elements.fill(0x5a5a5a5a);
}

/** Changes nothing that a program can see. */
function bringNearer(op: Op<"prefetch"> | Op<"prefetch_maps">, code: Assembler): void {
  const slot = code.slot(op.operands.ref);
  code.emit(op, (agent) => {
    requireUsable(agent, viewAt(agent, slot));
    return "proceed";
  });
}

export const asynchronousRules: Pick<
  SimulationRules,
  Exclude<keyof typeof asynchronousOps, "take_block" | "taken_block">
> = {
  copy_async(op, code) {
    const { barrier } = op.operands;
    if (barrier === undefined) copyIntoGlobal(op, code);
    else copyIntoShared(op, code, barrier);
  },

  prefetch: bringNearer,
  prefetch_maps: bringNearer,

  commit_group(op, code) {
    code.emit(op, (agent) => {
      agent.groups.commit();
      return "proceed";
    });
  },

  wait_group: waitGroup,

  proxy_fence(op, code) {
    const { space } = op.attributes;
    code.emit(op, (agent) => {
      agent.timeline?.fence(space);
      return "proceed";
    });
  },

  accumulator: makeAccumulator,
  wgmma,
  wgmma_wait: wgmmaWait,
};
