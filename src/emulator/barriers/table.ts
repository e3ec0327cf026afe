/**
 * The mbarriers of each block, by their offset in its shared memory, with what their arrivals have told.
 *
 *   arrive (release)   the arriving warp's knowledge joins what the running phase gathers
 *   phase ends         what it gathered becomes what a wait for it learns
 *   wait (acquire)     the waiting warp learns it
 *
 * Arrivals and waits reach their own block unless they say `.cluster`. Of what a warp of another block knows, only the
 * end of asynchronous operations is told without that: hardware has no cache for them.
 */
import { Knowledge } from "../../happens-before/knowledge.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Issuer } from "../asynchronous.ts";
import type { AddressKind, BlockView, CollectiveInstruction, Place } from "../collective.ts";
import { reportOnce } from "../reports.ts";
import { Mbarrier } from "./mbarrier.ts";
import type { BarrierProblem } from "./mbarrier.ts";

export const barrierBytes = 8;

/** What an arrival tells: to whoever waits, and to waits of the whole cluster besides. */
export interface Told {
  readonly block: Knowledge;
  readonly cluster: Knowledge;
}

export function toldToAll(knowledge: Knowledge): Told {
  return { block: knowledge, cluster: Knowledge.none };
}

export const toldNothing = toldToAll(Knowledge.none);

export class BarrierRecord {
  readonly barrier: Mbarrier;
  #gathering = toldNothing;
  /** Lanes of a warp tell the same, one after the other. */
  #lastTold = toldNothing;
  /** What a wait for the last phase that ended learns. */
  ended = toldNothing;
  /** Phases that had ended when a wait last came through. */
  awaited = 0;
  /** Who changed it last. */
  changedBy: CollectiveInstruction | undefined;
  /** Who has arrived in the running phase. */
  arrivedBy: Issuer[] = [];

  constructor(count: number) {
    this.barrier = new Mbarrier(count);
  }

  /** Changes the barrier, and notes what whoever changes it tells the waiters. */
  change(
    issuer: Issuer,
    told: Told,
    operation: (barrier: Mbarrier) => BarrierProblem | undefined,
  ): BarrierProblem | undefined {
    const { phase: before, pending } = this.barrier;
    if (told !== this.#lastTold)
      this.#gathering = {
        block: this.#gathering.block.join(told.block),
        cluster: this.#gathering.cluster.join(told.cluster),
      };
    this.#lastTold = told;
    const problem = operation(this.barrier);
    this.changedBy = issuer.instruction;
    if (this.barrier.phase === before) {
      if (this.barrier.pending < pending) this.arrivedBy.push(issuer);
    } else {
      this.arrivedBy = [];
      this.ended = this.#gathering;
      this.#gathering = toldNothing;
      this.#lastTold = toldNothing;
    }
    return problem;
  }
}

const tables = new WeakMap<BlockView, Map<number, BarrierRecord>>();

function tableOf(block: BlockView): Map<number, BarrierRecord> {
  let found = tables.get(block);
  if (found === undefined) {
    found = new Map();
    tables.set(block, found);
  }
  return found;
}

function sharedBlock({ block }: Place, { instruction }: Issuer): BlockView {
  if (block !== undefined) return block;
  throw new TilewrightError({
    code: "TW8060",
    message: `${instruction.instruction.opcode} was given an address that is not in shared memory`,
    location: instruction.location,
    expected: "an address in shared memory",
    found: "one in global memory",
  });
}

/** The place of a barrier at an address. */
export function barrierPlace(issuer: Issuer, kind: AddressKind, address: number): Place {
  const { machine, warp, lane, instruction } = issuer;
  const bytes = barrierBytes;
  return machine.resolve({ warp, instruction, lane, kind, address, bytes, alignment: 8 });
}

function writeImage({ views, offset }: Place, { image: { low, high } }: Mbarrier): void {
  views.words[offset >> 2] = low;
  views.words[(offset >> 2) + 1] = high;
  views.states.fill(2, offset, offset + barrierBytes);
}

function hasImage({ views, offset }: Place, { image: { low, high } }: Mbarrier): boolean {
  return views.words[offset >> 2] === low && views.words[(offset >> 2) + 1] === high;
}

export function createBarrier(issuer: Issuer, place: Place, count: number): void {
  const record = new BarrierRecord(count);
  tableOf(sharedBlock(place, issuer)).set(place.offset, record);
  writeImage(place, record.barrier);
}

/** Ends a barrier, which gives its bytes back; gives what it was. */
export function removeBarrier(issuer: Issuer, place: Place): BarrierRecord {
  const record = findBarrier(issuer, place);
  tableOf(sharedBlock(place, issuer)).delete(place.offset);
  return record;
}

/** The barriers that a block has, by where they lie in its shared memory. */
export function barriersOf(block: BlockView): ReadonlyMap<number, BarrierRecord> {
  return tableOf(block);
}

/** Whether a barrier is still the one at a place. */
export function isIntact(record: BarrierRecord, place: Place): boolean {
  const { block, offset } = place;
  const isThere = block !== undefined && tableOf(block).get(offset) === record;
  return isThere && hasImage(place, record.barrier);
}

/** The barrier at a place; throws the finding where there is none. */
export function findBarrier(issuer: Issuer, place: Place): BarrierRecord {
  const block = sharedBlock(place, issuer);
  const record = tableOf(block).get(place.offset);
  if (record !== undefined && hasImage(place, record.barrier)) return record;
  const why =
    record === undefined ? "no mbarrier was initialised there" : "its bytes were overwritten";
  throw new TilewrightError({
    code: "TW8060",
    message: `${issuer.instruction.instruction.opcode} of ${issuer.warp.title}: ${why}`,
    location: issuer.instruction.location,
    expected: "the address of an initialised mbarrier",
    found: placeText(issuer, place),
  });
}

/** A place in shared memory, with the block where it is another one's. */
function placeText({ machine, warp }: Issuer, { block, offset }: Place): string {
  const name = machine.naming.shared(offset);
  return block === undefined || block === warp.block
    ? name
    : `${name}, in the block of rank ${block.rank}`;
}

const problemCodes = {
  arrivals: "TW8061",
  transactions: "TW8062",
  completing: "TW8063",
} as const;

function problemText(problem: BarrierProblem): string {
  if (problem.kind === "transactions")
    return `the mbarrier would have ${problem.transactions} bytes outstanding`;
  return `${problem.arriving} arrive where ${problem.pending} are pending`;
}

/** Changes a barrier, keeps its image, and wakes whoever waits for it. */
export function changeBarrier(
  issuer: Issuer,
  place: Place,
  told: Told,
  operation: (barrier: Mbarrier) => BarrierProblem | undefined,
): void {
  const record = findBarrier(issuer, place);
  const problem = record.change(issuer, told, operation);
  writeImage(place, record.barrier);
  issuer.machine.changed();
  if (problem === undefined) return;
  throw new TilewrightError({
    code: problemCodes[problem.kind],
    message: `${issuer.instruction.instruction.opcode} of ${issuer.warp.title}: ${problemText(problem)}`,
    location: issuer.instruction.location,
    expected: "as many arrivals and bytes as the phase waits for",
    found: placeText(issuer, place),
  });
}

export function reportMissedPhase(issuer: Issuer, place: Place): void {
  const { machine, warp, instruction } = issuer;
  reportOnce(machine, instruction, {
    code: "TW8064",
    message: `${warp.title} waits for a phase that ended, and so did the next one`,
    location: instruction.location,
    expected: "a wait before the phase after it ends",
    found: placeText(issuer, place),
  });
}
