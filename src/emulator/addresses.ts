/**
 * Where the state spaces lie in the generic address space. The high word of an address tells the space,
 * so that a generic access decides with one comparison:
 *
 *   | high word      | space   | low word                                                   |
 *   |----------------|---------|------------------------------------------------------------|
 *   | 1              | shared  | offset, with the block's rank in its cluster from bit 24   |
 *   |                |         | up: a block's own addresses carry its own rank             |
 *   | 2              | local   | offset in the lane's own stack                             |
 *   | 3              | const   | offset                                                     |
 *   | 4              | param   | offset in the parameters of the entry                      |
 *   | 0x7f00 and up  | global  | the rest: offset in the heap                               |
 *
 * Addresses stay below 2^53 and are exact as numbers. The rank is where an H200 has it: whoever shifts an address of a
 * block other than the first into a narrower field without a mask finds the rank in the fields beside it.
 */

export type AddressSpace = "global" | "shared" | "local" | "const" | "param";

export const wordSize = 2 ** 32;

/** The high words of the windows. */
export const windows: { readonly [S in AddressSpace]: number } = Object.freeze({
  shared: 1,
  local: 2,
  const: 3,
  param: 4,
  global: 0x7f00,
});

export const globalBase = windows.global * wordSize;

/** Bits of a shared address below the rank. */
export const rankShift = 24;
export const sharedOffsetMask = (1 << rankShift) - 1;

/** What a block of a rank adds to offsets in its shared memory. */
export function sharedBase(rank: number): number {
  return rank << rankShift;
}

/** The space that a generic address lies in; undefined where nothing is. */
export function spaceOf(address: number): AddressSpace | undefined {
  const high = Math.floor(address / wordSize);
  if (high >= windows.global) return high < windows.global + 1 ? "global" : undefined;
  if (high === windows.shared) return "shared";
  if (high === windows.local) return "local";
  if (high === windows.const) return "const";
  return high === windows.param ? "param" : undefined;
}
