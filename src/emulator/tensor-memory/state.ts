/**
 * The tensor memory of a block: 128 lanes of 512 columns, 32 bits each, of which its program allocates columns. A
 * block is alone on its processor here; where an allocation begins is up to the seed, and never column 0 where another
 * place is free, since other blocks may have come first:
 *
 *   columns    0 ─ 127    128 ─ 255    256 ─ 511
 *              free       allocated    free
 *   lane 0     —          ∙ ∙ ∙        —           ∙ holds nothing defined before something is written
 *
 * Cells know which halves of them have been written: a product in f16 leaves the upper ones undefined.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { ShadowMemory } from "../../happens-before/shadow.ts";
import type { TrackedAccess } from "../../happens-before/shadow.ts";
import type { BlockView, CollectiveInstruction, MachineView } from "../collective.ts";

export const lanes = 128;
export const columns = 512;
/** Lanes that the race checks tell apart. */
export const laneGroup = 16;

/** States of a cell: a bit for each half that something defined was written to. */
export const halves = Object.freeze({ none: 0, low: 1, both: 3 });

/** What lies in cells that nothing was written to: a NaN in every format that has one. */
const garbage = 0xffffffff;

/** An access as reports name it. */
export interface TensorAccess extends TrackedAccess {
  readonly instruction: CollectiveInstruction;
  readonly warp: number;
  readonly block: number;
}

export interface TensorAllocation {
  readonly first: number;
  readonly columns: number;
  readonly instruction: CollectiveInstruction;
  readonly shadow: ShadowMemory<TensorAccess>;
}

export class TensorMemory {
  /** Lane by lane. */
  readonly words = new Uint32Array(lanes * columns).fill(garbage);
  readonly states = new Uint8Array(lanes * columns);
  readonly #owners: (TensorAllocation | undefined)[] = Array.from({ length: columns });
  readonly allocations = new Set<TensorAllocation>();
  /** Columns of the last allocation, which the next one must not exceed. */
  lastColumns = columns;
  /** Where the block gave up the right to allocate. */
  relinquished: CollectiveInstruction | undefined;
  /** Contents of the collector buffers, as a text that tells matrices apart. */
  readonly collectors = new Map<string, string>();

  ownerOf(column: number): TensorAllocation | undefined {
    return this.#owners[column];
  }

  /** First columns that an allocation may begin at. */
  freeStarts(size: number): readonly number[] {
    const starts: number[] = [];
    for (let start = 0; start < columns; start += size) {
      let free = true;
      for (let column = start; column < start + size; column++)
        if (this.#owners[column] !== undefined) free = false;
      if (free) starts.push(start);
    }
    return starts;
  }

  allocate(first: number, size: number, instruction: CollectiveInstruction): TensorAllocation {
    const granules = (lanes / laneGroup) * size;
    const shadow = new ShadowMemory<TensorAccess>({ granules, space: "smem", initialised: true });
    const allocation = { first, columns: size, instruction, shadow };
    this.allocations.add(allocation);
    this.lastColumns = size;
    this.#setOwner(allocation, allocation);
    for (let lane = 0; lane < lanes; lane++) {
      const from = lane * columns + first;
      this.words.fill(garbage, from, from + size);
      this.states.fill(halves.none, from, from + size);
    }
    return allocation;
  }

  free(allocation: TensorAllocation): void {
    this.allocations.delete(allocation);
    this.#setOwner(allocation, undefined);
  }

  #setOwner({ first, columns: size }: TensorAllocation, owner: TensorAllocation | undefined): void {
    for (let column = first; column < first + size; column++) this.#owners[column] = owner;
  }
}

const memories = new WeakMap<BlockView, TensorMemory>();

export function tensorMemoryOf(block: BlockView): TensorMemory {
  const known = memories.get(block);
  if (known !== undefined) return known;
  const made = new TensorMemory();
  memories.set(block, made);
  return made;
}

/** Whether a block has used tensor memory at all. */
export function hasTensorMemory(block: BlockView): boolean {
  return memories.has(block);
}

/** A part of the tensor memory of a block: columns of some lanes. */
export interface TensorRange {
  readonly block: BlockView;
  readonly column: number;
  readonly columns: number;
  /** A bit for each group of 16 lanes. */
  readonly groups: number;
}

/** Both lanes and columns of an address. */
export function splitAddress(address: number): { readonly lane: number; readonly column: number } {
  return { lane: address >>> 16, column: address & 0xffff };
}

export function addressText(lane: number, column: number): string {
  return `lane ${lane}, column ${column}`;
}

/** The allocation that a range lies in; throws the finding where there is none. */
export function allocationOf(
  machine: MachineView,
  instruction: CollectiveInstruction,
  title: string,
  range: TensorRange,
): TensorAllocation {
  const memory = tensorMemoryOf(range.block);
  const owner = memory.ownerOf(range.column);
  const end = range.column + range.columns;
  if (owner !== undefined && end <= owner.first + owner.columns) return owner;
  const beyond =
    owner === undefined ? range.column : Math.max(range.column, owner.first + owner.columns);
  const next = beyond < columns ? memory.ownerOf(beyond) : undefined;
  const held =
    next === undefined
      ? beyond < columns
        ? `column ${beyond}, which is not allocated`
        : `column ${beyond} of ${columns}`
      : `column ${beyond}, of another allocation`;
  const all = [...memory.allocations].map(
    ({ first, columns: size }) => `${first} to ${first + size - 1}`,
  );
  throw new TilewrightError({
    code: "TW8081",
    message: `${instruction.instruction.opcode} of ${title} reaches outside of what is allocated`,
    location: instruction.location,
    expected:
      all.length === 0
        ? "columns that tcgen05.alloc gave"
        : `columns ${all.join(", ")} of ${machine.naming.block(range.block.index)}`,
    found: `${held}, by columns ${range.column} to ${end - 1}`,
    notes: [...memory.allocations].map(({ instruction: { instruction: by, location } }) => ({
      message: `${by.opcode} is here`,
      location,
    })),
  });
}
