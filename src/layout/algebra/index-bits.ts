/**
 * The bits that own coordinates in a register layout. A program thread has 4 warps of 32 lanes, or as many as its kernel
 * says, 32 at most; the number of a lane in it, 32 · warp + lane, is its *thread index*, whose bits are L0 to L4 and
 * W0, W1 and so on to W4. The registers of a lane are numbered from 0; their bits are R0, R1 and so on.
 *
 * | bit | number | thread bit |
 * |-----|--------|------------|
 * | R0  | 0      |            |
 * | R5  | 5      |            |
 * | L0  | -1     | 0          |
 * | L4  | -5     | 4          |
 * | W0  | -6     | 5          |
 * | W1  | -7     | 6          |
 * | W4  | -10    | 9          |
 */

export type Bit = number;

export const laneBits = 5;
/** Warp bits of the largest program thread; a smaller one has only the first of them. */
export const warpBits = 5;
export const threadBits = laneBits + warpBits;
export const lanesPerWarp = 1 << laneBits;

export function registerBit(index: number): Bit {
  return index;
}

export function laneBit(index: number): Bit {
  return -1 - index;
}

export function warpBit(index: number): Bit {
  return -1 - laneBits - index;
}

/** The bit of the thread index that a lane or warp bit is, or the bit that a thread bit is. */
export function threadBit(bit: Bit): number {
  return -1 - bit;
}

export function isRegister(bit: Bit): boolean {
  return bit >= 0;
}

export function bitText(bit: Bit): string {
  if (isRegister(bit)) return `R${bit}`;
  const index = threadBit(bit);
  return index < laneBits ? `L${index}` : `W${index - laneBits}`;
}

/** The bits `make(from)` to `make(from + count - 1)`. */
export function bitRun(make: (index: number) => Bit, from: number, count: number): readonly Bit[] {
  const bits: Bit[] = [];
  for (let index = 0; index < count; index += 1) bits.push(make(from + index));
  return bits;
}

/** The bits that tell so many warps apart. */
export function warpRun(warps: number): readonly Bit[] {
  return bitRun(warpBit, 0, Math.log2(warps));
}

/** Every bit of the thread index, in a program thread of so many warps. */
export function laneMask(warps: number): number {
  return warps * lanesPerWarp - 1;
}

/** The exponent of a power of two; undefined for anything else. */
export function exponentOf(value: number): number | undefined {
  const exponent = Math.log2(value);
  return value >= 1 && Number.isInteger(exponent) ? exponent : undefined;
}

export function product(values: readonly number[]): number {
  return values.reduce((total, value) => total * value, 1);
}
