/**
 * Columns of tensor memory: `alloc` waits for as many as it wants and writes the address of the first to shared memory,
 * `dealloc` gives them back, `relinquish_alloc_permit` ends all allocating. For a pair a warp of each block calls them, and
 * both blocks get the same columns.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { recordOrdinary } from "../asynchronous.ts";
import { addressKind } from "../barriers/rules.ts";
import type {
  BlockView,
  Collective,
  CollectiveCall,
  CollectiveInstruction,
  MachineView,
  WarpView,
} from "../collective.ts";
import { reportOnce } from "../reports.ts";
import { orderOf, recordTensor } from "./order.ts";
import { hasTensorMemory, splitAddress, tensorMemoryOf } from "./state.ts";
import type { TensorAllocation, TensorMemory } from "./state.ts";
import { pairOf } from "./pairs.ts";

const smallest = 32;
const largest = 512;
const allLanes = 0xff;

function illegal(
  { instruction, location }: CollectiveInstruction,
  warp: WarpView,
  why: string,
  expected: string,
  other?: CollectiveInstruction,
): TilewrightError {
  return new TilewrightError({
    code: "TW8082",
    message: `${instruction.opcode} of ${warp.title}: ${why}`,
    location,
    expected,
    found: why,
    notes:
      other === undefined
        ? []
        : [{ message: `${other.instruction.opcode} is here`, location: other.location }],
  });
}

function checkSize(instruction: CollectiveInstruction, warp: WarpView, size: number): void {
  const isPower = (size & (size - 1)) === 0;
  if (isPower && size >= smallest && size <= largest) return;
  throw illegal(instruction, warp, `${size} columns`, "a power of two from 32 to 512");
}

/** A block's part of a pair's allocation or deallocation, which waits for the other's. */
interface PairRequest {
  readonly block: BlockView;
  readonly size: number;
  /** Where the columns begin, once both have asked. */
  first: number | undefined;
}

const requests = new WeakMap<BlockView, PairRequest>();

/** Chooses where an allocation begins in all of the blocks; undefined while there is no room. */
function chooseStart(
  machine: MachineView,
  memories: readonly TensorMemory[],
  size: number,
): number | undefined {
  const [first, ...others] = memories.map((memory) => memory.freeStarts(size));
  const common = (first ?? []).filter((start) => others.every((starts) => starts.includes(start)));
  const preferred = common.length > 1 ? common.filter((start) => start !== 0) : common;
  return preferred[machine.random.below(Math.max(1, preferred.length))];
}

/** The first column for this block; undefined while it waits for room, or for the pair's other block. */
function startOf(
  machine: MachineView,
  instruction: CollectiveInstruction,
  warp: WarpView,
  size: number,
  isPair: boolean,
): number | undefined {
  const { block } = warp;
  if (!isPair) return chooseStart(machine, [tensorMemoryOf(block)], size);
  const { peer } = pairOf(machine, instruction, warp);
  const own = requests.get(block) ?? { block, size, first: undefined };
  requests.set(block, own);
  if (own.first === undefined) {
    const theirs = requests.get(peer);
    if (theirs === undefined) return undefined;
    if (theirs.size !== size)
      throw illegal(
        instruction,
        warp,
        `${size} columns`,
        `${theirs.size}, as the pair's other block asks for`,
      );
    const both = [tensorMemoryOf(block), tensorMemoryOf(peer)];
    const first = theirs.first ?? chooseStart(machine, both, size);
    if (first === undefined) return undefined;
    own.first = first;
    theirs.first = first;
    machine.changed();
  }
  requests.delete(block);
  return own.first;
}

/** `tcgen05.alloc [place], columns` */
export function allocation(instruction: CollectiveInstruction): Collective | undefined {
  const { modifiers, operands } = instruction;
  const [place, size] = operands;
  if (place === undefined || size === undefined) return undefined;
  const isPair = modifiers.includes("cta_group::2");
  const kind = addressKind(modifiers);
  return {
    aligned: true,
    run: ({ machine, warp, mask }) => {
      const lane = 31 - Math.clz32(mask & -mask);
      const wanted = size.word(warp, lane);
      checkSize(instruction, warp, wanted);
      const memory = tensorMemoryOf(warp.block);
      if (memory.relinquished !== undefined)
        throw illegal(
          instruction,
          warp,
          "its block has relinquished the right to allocate",
          "every allocation before tcgen05.relinquish_alloc_permit",
          memory.relinquished,
        );
      if (wanted > memory.lastColumns)
        throw illegal(
          instruction,
          warp,
          `${wanted} columns after an allocation of ${memory.lastColumns}`,
          "allocations that do not grow",
        );
      const first = startOf(machine, instruction, warp, wanted, isPair);
      if (first === undefined) return "retry";
      const made = memory.allocate(first, wanted, instruction);
      const order = orderOf(machine, warp);
      if (order !== undefined) {
        const epoch = order.take("write");
        const range = { block: warp.block, column: first, columns: wanted, groups: allLanes };
        recordTensor({ machine, warp, instruction }, [range], "write", epoch, order.knowledge);
        order.finish(epoch);
      }
      const address = place.address(warp, lane);
      const request = { warp, instruction, lane, kind, address, bytes: 4, alignment: 4 } as const;
      const found = machine.resolve(request);
      recordOrdinary({ machine, warp, lane, instruction }, found, 4, "write");
      found.views.words[found.offset >> 2] = made.first;
      found.views.states.fill(2, found.offset, found.offset + 4);
      machine.changed();
      return "done";
    },
  };
}

/** Blocks that wait in a deallocation for the other of their pair. */
const leaving = new WeakMap<BlockView, TensorAllocation>();

/** `tcgen05.dealloc address, columns` */
export function deallocation(instruction: CollectiveInstruction): Collective | undefined {
  const [address, size] = instruction.operands;
  if (address === undefined || size === undefined) return undefined;
  const isPair = instruction.modifiers.includes("cta_group::2");
  const free = ({ machine, warp, mask }: CollectiveCall): "done" | "retry" => {
    const held = leaving.get(warp.block);
    if (held !== undefined && isPair) return waitForPeer(warp);
    const lane = 31 - Math.clz32(mask & -mask);
    const { lane: row, column } = splitAddress(address.word(warp, lane));
    const wanted = size.word(warp, lane);
    checkSize(instruction, warp, wanted);
    const memory = tensorMemoryOf(warp.block);
    const owner = memory.ownerOf(column);
    if (owner?.first !== column || row !== 0 || owner.columns !== wanted)
      throw illegal(
        instruction,
        warp,
        `${wanted} columns from lane ${row}, column ${column} on`,
        memory.allocations.size === 0
          ? "an address that tcgen05.alloc gave"
          : `an address and size that tcgen05.alloc gave: ${[...memory.allocations].map((each) => `${each.columns} from column ${each.first} on`).join(", ")}`,
      );
    const order = orderOf(machine, warp);
    if (order !== undefined) {
      const epoch = order.take("write");
      const range = { block: warp.block, column, columns: wanted, groups: allLanes };
      recordTensor({ machine, warp, instruction }, [range], "write", epoch, order.knowledge);
      order.finish(epoch);
    }
    memory.free(owner);
    machine.changed();
    // Whether the first of a pair waits for the second is open.
    if (!isPair || machine.random.below(2) === 0) return "done";
    leaving.set(warp.block, owner);
    return waitForPeer(warp);
  };
  return { aligned: true, run: free };
}

/** Goes on once the pair's other block has given back as much, or has ended. */
function waitForPeer({ block }: WarpView): "done" | "retry" {
  const peer = block.cluster[block.rank ^ 1];
  const owner = leaving.get(block);
  const theirs =
    owner === undefined || peer === undefined
      ? undefined
      : tensorMemoryOf(peer).ownerOf(owner.first);
  const isHeld = theirs !== undefined && theirs.columns === owner?.columns;
  if (isHeld && peer !== undefined && !hasEnded(peer)) return "retry";
  leaving.delete(block);
  return "done";
}

function hasEnded({ warps }: BlockView): boolean {
  return warps.every(({ live }) => live === 0);
}

/** `tcgen05.relinquish_alloc_permit` */
export function relinquishment(instruction: CollectiveInstruction): Collective {
  return {
    aligned: true,
    run: ({ warp }) => {
      tensorMemoryOf(warp.block).relinquished = instruction;
      return "done";
    },
  };
}

/** A block ends: what it has allocated must have been given back. */
export function reportUnfreed(machine: MachineView, block: BlockView): void {
  if (!hasTensorMemory(block)) return;
  for (const { first, columns, instruction } of tensorMemoryOf(block).allocations)
    reportOnce(machine, instruction, {
      code: "TW8083",
      message: `${machine.naming.block(block.index)} ends with ${columns} columns of tensor memory allocated`,
      location: instruction.location,
      expected: "tcgen05.dealloc of every allocation before the block ends",
      found: `columns ${first} to ${first + columns - 1} allocated`,
    });
}
