/** From an address to the memory it lies in, with what is wrong where there is none. */
import {
  globalBase,
  rankShift,
  sharedOffsetMask,
  spaceOf,
  windows,
  wordSize,
} from "../addresses.ts";
import type { AddressSpace } from "../addresses.ts";
import type { AccessKind } from "../thread-instructions/memory.ts";
import type { Heap, MemoryViews } from "../memory.ts";
import { byteStates } from "../memory.ts";
import type { Naming } from "../naming.ts";
import { dynamicStart } from "./dynamic-stack.ts";
import type { BlockState, Found, WarpState } from "./warp.ts";

export interface Request {
  readonly warp: WarpState;
  readonly lane: number;
  readonly kind: AccessKind;
  readonly address: number;
  readonly bytes: number;
  readonly alignment: number;
}

export interface Located extends Found {
  readonly space: AddressSpace;
  readonly block: BlockState | undefined;
}

/** Why an address leads nowhere. */
export interface Fault {
  readonly code: "TW8010" | "TW8011";
  readonly found: string;
}

export function hex(address: number): string {
  return `0x${address.toString(16)}`;
}

export class AddressMap {
  readonly #memory: Heap;
  readonly #constants: MemoryViews;
  readonly #parameters: MemoryViews;
  readonly #naming: Naming;

  constructor(memory: Heap, constants: MemoryViews, parameters: MemoryViews, naming: Naming) {
    this.#memory = memory;
    this.#naming = naming;
    this.#constants = constants;
    this.#parameters = parameters;
  }

  locate(request: Request): Located | Fault {
    const { kind, address, bytes, alignment } = request;
    const space = kind === "generic" ? spaceOf(address) : kind;
    if (space === undefined) return { code: "TW8010", found: `${hex(address)}, in no window` };
    const windowed = address >= wordSize && space !== "global";
    const offset = windowed ? address - windows[space] * wordSize : address;
    const place = this.#inSpace(space, offset, request);
    if ("code" in place) return place;
    if (place.offset % alignment !== 0)
      return { code: "TW8011", found: `${hex(address)}, for an access of ${bytes} bytes` };
    return place;
  }

  #inSpace(space: AddressSpace, offset: number, request: Request): Located | Fault {
    const { warp, lane, bytes } = request;
    switch (space) {
      case "global":
        return this.#inHeap(offset - globalBase, request);
      case "shared":
        return sharedPlace(warp.block, offset, request, this.#naming);
      case "local": {
        if (offset >= dynamicStart) return dynamicPlace(warp, offset - dynamicStart, request);
        if (offset + bytes > warp.stackBytes || warp.stack.bytes.length === 0)
          return { code: "TW8010", found: `${hex(offset)} of ${warp.stackBytes} local bytes` };
        const at = lane * warp.stackBytes + offset;
        return { views: warp.stack, offset: at, space, block: undefined };
      }
      case "const":
        return inside(this.#constants, offset, request, space);
      case "param":
        return inside(this.#parameters, offset, request, space);
    }
  }

  #inHeap(offset: number, { address, bytes }: Request): Located | Fault {
    const heap = this.#memory.views;
    const fits = offset >= 0 && offset + bytes <= heap.bytes.length;
    const { absent } = byteStates;
    if (fits && heap.states[offset] !== absent && heap.states[offset + bytes - 1] !== absent)
      return { views: heap, offset, space: "global", block: undefined };
    const near = this.#naming.address(address);
    const found = near === undefined ? hex(address) : `${hex(address)}, ${near}`;
    return { code: "TW8010", found };
  }
}

/** Memory that the lane took from its stack. */
function dynamicPlace(
  { dynamic }: WarpState,
  offset: number,
  { lane, bytes }: Request,
): Located | Fault {
  const { views, elementBytes } = dynamic;
  if (offset + bytes > dynamic.top(lane) - dynamicStart || offset + bytes > elementBytes)
    return { code: "TW8010", found: `byte ${offset} behind the end of the thread's stack` };
  return { views, offset: lane * elementBytes + offset, space: "local", block: undefined };
}

function inside(
  views: MemoryViews,
  offset: number,
  { bytes }: Request,
  space: AddressSpace,
): Located | Fault {
  if (offset >= 0 && offset + bytes <= views.bytes.length)
    return { views, offset, space, block: undefined };
  return {
    code: "TW8010",
    found: `byte ${offset} of ${views.bytes.length} bytes of ${space} memory`,
  };
}

/** What is wrong where lanes reach another block's shared memory by an instruction that has only its own block's. */
export function otherBlock(
  { block }: Located,
  { warp, kind, address }: Request,
  opcode: string,
): Fault | undefined {
  const isOwn = block === undefined || block === warp.block;
  if (isOwn || kind !== "shared" || opcode.includes("shared::cluster")) return undefined;
  return {
    code: "TW8010",
    found: `${hex(address)}, of block ${block.rank} of the cluster, which only .shared::cluster reaches`,
  };
}

/** Shared memory of the block of the cluster whose rank the address carries. */
function sharedPlace(
  own: BlockState,
  address: number,
  { bytes }: Request,
  naming: Naming,
): Located | Fault {
  const rank = address >>> rankShift;
  const offset = address & sharedOffsetMask;
  const block = own.cluster[rank];
  if (block === undefined)
    return { code: "TW8010", found: `${hex(address)}: block ${rank} of ${own.cluster.length}` };
  if (block !== own && block.warps.every(({ live }) => live === 0))
    return { code: "TW8010", found: `${hex(address)}: block ${rank} of the cluster has ended` };
  if (offset + bytes > block.shared.bytes.length)
    return {
      code: "TW8010",
      found: `${naming.shared(offset)}, beyond the ${block.shared.bytes.length} bytes of the block's shared memory`,
    };
  return { views: block.shared, offset, space: "shared", block };
}
