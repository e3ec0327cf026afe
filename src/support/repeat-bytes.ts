/** Repeats a pattern through bytes, whose number is a multiple of its own, by copying what is there already. */
export function repeatBytes(target: Uint8Array, pattern: Uint8Array): void {
  target.set(pattern.subarray(0, target.length));
  for (let filled = pattern.length; filled < target.length; filled *= 2)
    target.copyWithin(filled, 0, Math.min(filled, target.length - filled));
}
