/**
 * Simulation of tensor memory. Loads and stores are the thread's own. Products read shared memory through the asynchronous proxy; those on one place follow each
 * other in the order in which they were issued, and everybody else must have heard of their end, by way of a commit:
 *
 *   thread      tcgen05_mma ─ tcgen05_mma ─ tcgen05_commit ───────── barrier_wait ─ tmem_load
 *   products      └─ ─ ─ ─ ─ ─ └─ ─ ─ ─ ─ ─ ─ ─ ─ ─ arrives when both are over ┘
 */
import type { DType, Elements } from "../../formats/dtype.ts";
import { multiplyScaled } from "../../formats/arithmetic/scaled-product.ts";
import type { ScaledProduct } from "../../formats/arithmetic/scaled-product.ts";
import { dotElements } from "../../formats/arithmetic/index.ts";
import type { DotShape } from "../../formats/arithmetic/index.ts";
import type { Op } from "../../ir/node.ts";
import type { tensorMemoryOps } from "../../ir/ops/tensor-memory.ts";
import { refOf } from "../../ir/traverse.ts";
import { scaledKindOf } from "../../ir/infer/tensor-memory-scales.ts";
import { narrowName, scaleFormatOf } from "../../targets/scaled-products.ts";
import type { ScaledKind } from "../../targets/scaled-products.ts";
import { completion, Knowledge } from "../../happens-before/knowledge.ts";
import type { Epoch } from "../../happens-before/knowledge.ts";
import type { Agent } from "../agent.ts";
import { fillElements, gather, readView, scatter } from "../memory.ts";
import type { Assembler, SimulationRules } from "../program.ts";
import { barrierAt, elementsAt, scalarAt, viewAt } from "../values.ts";
import { requireUsable } from "../window-checks.ts";
import type { View } from "../view.ts";
import { beginIssue, checkRead } from "./asynchronous.ts";
import type { Issue } from "../asynchronous.ts";
import {
  axesNamed,
  blocksOf,
  checkCopies,
  joinedColumns,
  ranksAlong,
  viewsOf,
} from "./block-pairs.ts";
import { countOf, dtypeOf } from "./elementwise.ts";
import { memberPlacement } from "../tensor-unions.ts";
import { wholeView } from "../view.ts";
import { emitAllocation, emitView, touch, zeroOf } from "./memory.ts";
import { arriveOn, barrierReader, peerBarriers } from "./synchronization.ts";

function load(op: Op<"tmem_load">, code: Assembler): void {
  const [result] = op.results;
  if (result === undefined) throw new Error("tmem_load has no result");
  const source = code.slot(op.operands.ref);
  const target = code.slot(result);
  const dtype = dtypeOf(result);
  const pool = code.pool(dtype, countOf(result));
  const bytes = (countOf(result) * dtype.bits) / 8;
  code.emit(op, (agent) => {
    const view = viewAt(agent, source);
    touch(agent, view, "read", bytes);
    const elements = pool.take();
    gather(view, elements, zeroOf(dtype));
    agent.slots[target] = elements;
    return "looked";
  });
}

function store(op: Op<"tmem_store">, code: Assembler): void {
  const { ref, value } = op.operands;
  const [target, source] = [code.slot(ref), code.slot(value)];
  const bytes = (countOf(value) * dtypeOf(value).bits) / 8;
  code.emit(op, (agent) => {
    const view = viewAt(agent, target);
    touch(agent, view, "write", bytes);
    scatter(view, elementsAt(agent, source));
    return "switch";
  });
}

function mma(op: Op<"tcgen05_mma">, code: Assembler): void {
  const { sums, a, b, adds } = op.operands;
  const { pair } = op.attributes;
  const [left, right, result] = [refOf(a), refOf(b), refOf(sums)];
  const [m = 0, n = 0] = result.shape.map(Number);
  const [k = 0] = right.shape.map(Number);
  const shape: DotShape = {
    ...{ m, n, k, operand: left.dtype, operandB: right.dtype, accumulator: result.dtype },
    unit: "block",
  };
  const slots = code.slotsOf([sums, a, b]);
  const { aScales, bScales } = op.operands;
  const scaleSlots = code.slotsOf([aScales, bScales].flatMap((each) => each ?? []));
  const adding = adds && code.slot(adds);
  const kind = scaledKindOf(op);
  const scaleRows = new Set(Array.from({ length: n }, (_, column) => scaleRow(shape, column)));
  code.emit(op, (agent) => {
    const blocks = blocksOf(agent, pair);
    const inBlocks = (slot: number): readonly View[] => viewsOf(agent, blocks, viewAt(agent, slot));
    const [into = [], from = [], by = []] = slots.map(inBlocks);
    const scales = scaleSlots.map(inBlocks);
    const begins = adding !== undefined && scalarAt(agent, adding) === 0;
    const issue = beginIssue(agent, { writes: true });
    const form = formOf(into[0] ?? viewAt(agent, slots[0] ?? 0), left.dtype, kind);
    const behindCopies = behind(issue, copies);
    for (const view of [...from, ...by]) checkRead(agent, issue, view);
    for (const view of scales.flat()) checkRead(agent, behindCopies, view);
    for (const view of into) checkSums(agent, behind(issue, form), view, begins);
    const complete = (): void => {
      const rightElements = joinedColumns(by);
      checkCopies(agent.machine, op, scales[1] ?? [], scaleRows);
      for (const [rank, target] of into.entries()) {
        const elements = readView(target, zeroOf(target.dtype));
        if (begins) fillElements(elements, zeroOf(target.dtype));
        const own = from[rank];
        if (own === undefined) throw new Error("each block has rows of its own");
        const leftElements = readView(own, zeroOf(own.dtype));
        const ofBlock = scales.flatMap((views) => views[rank] ?? []);
        if (kind === undefined) dotElements(shape, leftElements, rightElements, elements);
        else multiplyBlocks(kind, shape, leftElements, rightElements, ofBlock, elements);
        scatter(target, elements);
      }
    };
    start(agent, issue, form, complete);
    return "switch";
  });
}

/** The form of copies, which products follow. */
const copies = "copy";

/** Products on one place by one kind of instruction follow each other; others that touch may be over in any order. */
function formOf(
  { offset, sizes }: View,
  { kind, bits, name }: DType,
  scaled: ScaledKind | undefined,
): string {
  const plain = kind === "float" ? `${name === "tf32" ? "tf" : ""}${bits}` : "integers";
  return `${offset} ${sizes.join()} ${scaled?.name ?? plain}`;
}

function behind(issue: Issue, form: string): Issue {
  return { ...issue, knowledge: issue.knowledge.following(form) };
}

/** The same where blocks along k have scales. */
function multiplyBlocks(
  kind: ScaledKind,
  { m, n, k, operand, operandB = operand }: DotShape,
  a: Elements,
  b: Elements,
  views: readonly View[],
  sums: Elements,
): void {
  const [left, right] = views;
  if (left === undefined || right === undefined) throw new Error("both factors have scales");
  const product: ScaledProduct = {
    ...{ m, n, k, depth: kind.depth, block: kind.block },
    formats: [narrowName(operand), narrowName(operandB)],
    ...{ a: codesOf(a), b: codesOf(b) },
    scales: [codesOf(readView(left, 0)), columnScales({ m, n }, right)],
    scaleColumns: [left.sizes[1] ?? 0, right.sizes[1] ?? 0],
    scaleFormat: scaleFormatOf(kind),
  };
  multiplyScaled(product, sums);
}

/** The row of scales in tensor memory that a column of b has: of 64 rows of a pair, either half of the columns begins with its own atom. */
function scaleRow({ m, n }: Pick<DotShape, "m" | "n">, column: number): number {
  return m === 64 && column >= n / 2 ? 128 + column - n / 2 : column;
}

/** The scales of b by its columns. */
function columnScales(shape: Pick<DotShape, "m" | "n">, view: View): Uint8Array {
  const codes = codesOf(readView(view, 0));
  if (shape.m !== 64) return codes;
  const blocks = view.sizes[1] ?? 0;
  return Uint8Array.from({ length: shape.n * blocks }, (_, at) => {
    const column = Math.floor(at / blocks);
    return codes[scaleRow(shape, column) * blocks + (at % blocks)] ?? 0;
  });
}

function codesOf(elements: Elements): Uint8Array {
  if (!(elements instanceof Uint8Array)) throw new Error("narrow floats and scales are codes");
  return elements;
}

/** A copy of scales; it follows no product, since one that runs may still read what was there. */
function copy(op: Op<"tcgen05_copy">, code: Assembler): void {
  const [source = 0, destination = 0] = code.slotsOf([op.operands.source, op.operands.destination]);
  const [rows = 0, columns = 0] = refOf(op.operands.destination).shape.map(Number);
  const isHalved = refOf(op.operands.source).shape[2] === 64;
  code.emit(op, (agent) => {
    const blocks = blocksOf(agent, op.attributes.pair);
    const [from, into] = [source, destination].map((slot) =>
      viewsOf(agent, blocks, viewAt(agent, slot)),
    );
    const issue = beginIssue(agent, { writes: true });
    for (const view of from ?? []) checkRead(agent, issue, view);
    for (const view of into ?? []) checkSums(agent, issue, view, true);
    start(agent, issue, copies, () => {
      for (const [rank, target] of (into ?? []).entries()) {
        const own = from?.[rank];
        if (own !== undefined) copyAtoms(own, target, [rows, columns], isHalved);
      }
    });
    return "switch";
  });
}

/** Atoms of 128 rows by 4 blocks become rows; in halves, the two of the same blocks lie one behind the other. */
function copyAtoms(
  from: View,
  into: View,
  [rows, blocks]: readonly [rows: number, blocks: number],
  isHalved: boolean,
): void {
  const atoms = readView(from, zeroOf(from.dtype));
  const elements = readView(into, zeroOf(into.dtype));
  for (let row = 0; row < rows; row++)
    for (let block = 0; block < blocks; block++) {
      const [ofRows, ofBlocks] = [row >> 7, block >> 2];
      const atom = isHalved ? 2 * ofBlocks + ofRows : ofRows * (blocks / 4) + ofBlocks;
      const at = atom * 512 + (row & 31) * 16 + ((row >> 5) & 3) * 4 + (block & 3);
      elements[row * blocks + block] = atoms[at] ?? 0;
    }
  scatter(into, elements);
}

/** A product that adds reads what is there, which somebody must have written. */
function checkSums(agent: Agent, issue: Issue, view: View, begins: boolean): void {
  requireUsable(agent, view);
  const { origin, writes, knowledge } = issue;
  if (writes === undefined) return;
  if (!begins) agent.machine.checker?.asynchronous(origin, writes, knowledge, view, "read");
  agent.machine.checker?.asynchronous(origin, writes, knowledge, view, "write");
}

/** Lets tensor cores do it when they have done what the agent started before. */
function start(agent: Agent, issue: Issue, form: string, complete: () => void): void {
  const { timeline, tensor, machine } = agent;
  const known = timeline?.knowledge.generic;
  tensor.settle(({ agent: by, count }) => known?.includes(by, count) === true);
  const epochs = [issue.reads, issue.writes].filter((each): each is Epoch => each !== undefined);
  for (const epoch of epochs) timeline?.issued(form, epoch);
  tensor.push(complete, epochs);
  machine.issue({
    issuer: agent,
    origin: issue.origin,
    complete() {
      tensor.completeOldest();
      return issue.origin;
    },
  });
}

function commit(op: Op<"tcgen05_commit">, code: Assembler): void {
  const slot = code.slot(op.operands.barrier);
  const find = barrierReader(code, op.operands.index);
  const { multicast = [] } = op.attributes;
  const axes = axesNamed(code.kernel.grid, multicast);
  code.emit(op, (agent) => {
    const barriersHere = barrierAt(agent, slot);
    const told = ranksAlong(agent, axes).map((rank) => {
      const isOwn = rank === agent.block.rank;
      const barriers = isOwn ? barriersHere : peerBarriers(agent, barriersHere, rank);
      return { barriers, element: find(agent, barriers) };
    });
    const { timeline, tensor, machine } = agent;
    const issue = beginIssue(agent, { writes: true });
    const { origin, reads, writes, knowledge } = issue;
    for (const { barriers, element } of told)
      machine.checker?.arrivesLater(agent, issue, barriers, element.index);
    const arrived = [reads, writes].flatMap((each) => each ?? []);
    const known =
      timeline === undefined
        ? Knowledge.none
        : completion(knowledge, [...tensor.started, ...arrived]);
    tensor.commit(() => {
      for (const { barriers, element } of told) arriveOn(barriers, element, known, origin);
    }, arrived);
    machine.issue({
      issuer: agent,
      origin,
      complete() {
        tensor.completeOldest();
        return origin;
      },
    });
    return "switch";
  });
}

export const tensorMemoryRules: Pick<SimulationRules, keyof typeof tensorMemoryOps> = {
  alloc_tmem(op, code) {
    emitAllocation(code, op);
  },
  tmem_member(op, code) {
    const { dtype, shape, name } = op.attributes;
    const placement = { ...memberPlacement(op), member: code.newMember(name) };
    emitView(code, op, op.operands.union, ({ memory }) =>
      wholeView(memory, dtype, shape, placement),
    );
  },
  tmem_load: load,
  tmem_store: store,
  tcgen05_mma: mma,
  tcgen05_copy: copy,
  tcgen05_commit: commit,
};
