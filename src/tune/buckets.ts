/** Sizes that share a result. */
import { TilewrightError } from "../support/diagnostics.ts";
import { optionText } from "../support/options.ts";

/** The power of two that a size is rounded up to: 1000 and 1024 share a bucket. */
export function powerOfTwo(size: number): number {
  if (!Number.isSafeInteger(size) || size < 0)
    throw new TilewrightError({
      code: "TW9815",
      message: `${optionText(size)} is no size`,
      expected: "a whole number from 0",
      found: optionText(size),
    });
  return size === 0 ? 0 : 2 ** Math.ceil(Math.log2(size));
}
