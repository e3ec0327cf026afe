/** Sizes that share a result. */

/** The power of two that a size is rounded up to: 1000 and 1024 share a bucket. */
export function powerOfTwo(size: number): number {
  return size < 1 ? 0 : 2 ** Math.ceil(Math.log2(size));
}
