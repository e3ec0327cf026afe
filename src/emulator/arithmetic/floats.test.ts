/** Results at the edge of the normal numbers, by the sums of powers of two that they are. */
import { expect, test } from "vitest";
import { flushHalfResult, roundAndFlush } from "./floats.ts";

test.each([1, -1])(
  "what rounds to a normal number as if exponents had no end is not flushed, sign %i",
  (sign) => {
    // Half a place of 24 bits below the smallest normal number is a tie, which goes up; a whole place is a number of its own.
    expect(roundAndFlush(sign * (2 ** -126 - 2 ** -151))).toBe(sign * 2 ** -126);
    expect(roundAndFlush(sign * (2 ** -126 - 2 ** -150))).toBe(sign * 0);
    expect(roundAndFlush(sign * (2 ** -126 - 2 ** -151 - 2 ** -178))).toBe(sign * 0);
    expect(roundAndFlush(sign * 2 ** -126)).toBe(sign * 2 ** -126);
    expect(flushHalfResult(sign * (2 ** -14 - 2 ** -26))).not.toBe(sign * 0);
    expect(flushHalfResult(sign * (2 ** -14 - 2 ** -25))).toBe(sign * 0);
  },
);
