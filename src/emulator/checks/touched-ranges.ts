/** The bytes that a warp's lanes touch together, those next to each other joined. */
import { globalBase, rankShift, sharedOffsetMask, windows, wordSize } from "../addresses.ts";
import type { BlockState, WarpState } from "../machine/warp.ts";

const firstGlobal = globalBase;
const firstShared = windows.shared * wordSize;
const endOfShared = firstShared + wordSize;
const shift = rankShift;
const offsetMask = sharedOffsetMask;

/** The block whose shared memory a generic address lies in; undefined for global memory. */
export function blockAt(warp: WarpState, address: number): BlockState | undefined {
  if (address >= firstGlobal) return undefined;
  const rank = (address - firstShared) >>> shift;
  return warp.block.cluster[rank] ?? warp.block;
}

export function offsetAt(address: number, block: BlockState | undefined): number {
  return block === undefined ? address - firstGlobal : (address - firstShared) & offsetMask;
}

/** Visits where lanes of a row access shared and global memory, `offset` bytes into what they access. */
export function eachPlace(
  warp: WarpState,
  slot: number,
  mask: number,
  offset: number,
  visit: (block: BlockState | undefined, at: number, lane: number) => void,
): void {
  for (let rest = mask; rest !== 0; rest &= rest - 1) {
    const lane = 31 - Math.clz32(rest & -rest);
    const address = warp.addresses[32 * slot + lane] as number;
    if (address < firstGlobal && (address < firstShared || address >= endOfShared)) continue;
    const block = blockAt(warp, address);
    visit(block, offsetAt(address, block) + offset, lane);
  }
}

/** Filled anew for every access, so that none of it is allocated. */
export class Runs {
  count = 0;
  readonly blocks: (BlockState | undefined)[] = [];
  readonly offsets = new Float64Array(64);
  readonly lengths = new Float64Array(64);

  /** Takes the addresses of a row; those in private memory are left out. */
  collect(warp: WarpState, slot: number, mask: number, bytes: number): void {
    const { addresses } = warp;
    let last = -1;
    let end = -1;
    let start = -1;
    for (let rest = mask; rest !== 0; rest &= rest - 1) {
      const address = addresses[32 * slot + 31 - Math.clz32(rest & -rest)] as number;
      if (last >= 0 && address === end) {
        end += bytes;
        this.lengths[last] = end - start;
        continue;
      }
      if (last >= 0 && address >= start && address + bytes <= end) continue;
      if (address < firstGlobal && (address < firstShared || address >= endOfShared)) continue;
      const block = blockAt(warp, address);
      last += 1;
      start = address;
      end = address + bytes;
      this.blocks[last] = block;
      this.offsets[last] = offsetAt(address, block);
      this.lengths[last] = bytes;
    }
    this.count = last + 1;
  }

  /** Takes the bytes of the words at the addresses of a row that have bits in `touched`: two runs a lane at most. */
  collectBytes(warp: WarpState, slot: number, mask: number, touched: Int32Array): void {
    this.count = 0;
    eachPlace(warp, slot, mask, 0, (block, at, lane) => {
      let length = 0;
      for (let byte = 0; byte <= 4; byte++) {
        const isTouched = byte < 4 && (((touched[lane] as number) >>> (8 * byte)) & 0xff) !== 0;
        if (isTouched) length += 1;
        else if (length > 0) {
          this.#add(block, at + byte - length, length);
          length = 0;
        }
      }
    });
  }

  #add(block: BlockState | undefined, offset: number, length: number): void {
    this.blocks[this.count] = block;
    this.offsets[this.count] = offset;
    this.lengths[this.count] = length;
    this.count += 1;
  }
}
