/** Lanes of a warp as the bits of a mask. */

/** Calls `visit` for each of them, the lowest first. */
export function eachLane(mask: number, visit: (lane: number) => void): void {
  for (let rest = mask; rest !== 0; rest &= rest - 1) visit(31 - Math.clz32(rest & -rest));
}

export function lowestLane(mask: number): number {
  return 31 - Math.clz32(mask & -mask);
}
