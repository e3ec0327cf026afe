/**
 * Promises: what `assume` says of integers, as facts, in words, and of a number at hand; and that an access is in bounds.
 *
 *   start.assumeMultipleOf(16)      { multipleOf: 16 }          …, −16, 0, 16, …
 *   assumeBetween(count, 0, 64)     { least: 0, greatest: 64 }
 *   assumeBelow(row, n)             { below: n }
 */
import type { AnyOp } from "./node.ts";
import type { OpAttributes } from "./ops.ts";
import { sizeText } from "./size.ts";
import { between, constantOf, gcd, tightened } from "./range-analysis/fact.ts";
import type { Fact } from "./range-analysis/fact.ts";

export type Promised = OpAttributes<"assume">;

/** What holds of an integer of which this fact holds and the promise too. */
export function assumed(fact: Fact, { multipleOf = 1, least, greatest, below }: Promised): Fact {
  if (constantOf(fact) !== undefined) return fact;
  const low = least === undefined ? fact.least : BigInt(least);
  const high = greatest === undefined ? fact.greatest : BigInt(greatest);
  const bounded = {
    ...fact,
    ...divisible(fact, BigInt(multipleOf)),
    least: low > fact.least ? low : fact.least,
    greatest: high < fact.greatest ? high : fact.greatest,
  };
  if (below === undefined) return tightened(bounded);
  if (typeof below !== "number") return tightened({ ...bounded, below: [...fact.below, below] });
  const end = between(fact.least, BigInt(below) - 1n).greatest;
  return tightened({ ...bounded, greatest: end < bounded.greatest ? end : bounded.greatest });
}

/** Both congruences as one where that is a multiple of both; the stronger elsewhere. */
function divisible(fact: Fact, divisor: bigint): Pick<Fact, "modulus" | "residue"> {
  const { modulus, residue } = fact;
  if (residue === 0n) return { modulus: (modulus / gcd(modulus, divisor)) * divisor, residue };
  return divisor > modulus ? { modulus: divisor, residue: 0n } : { modulus, residue };
}

/** Whether whoever wrote an access promises that all of it lies inside of what its windows were cut from. */
export function isPromisedInside({ attributes }: AnyOp): boolean {
  return "inBounds" in attributes && attributes.inBounds === true;
}

/** How such an access is said to be, in words. */
export const inBoundsText = "in bounds";

/** What is promised, in words. */
export function promiseText({ multipleOf, least, greatest, below }: Promised): string {
  if (multipleOf !== undefined) return `a multiple of ${multipleOf}`;
  if (below !== undefined) return `a number below ${sizeText(below)}`;
  return `a number from ${String(least)} to ${String(greatest)}`;
}

/** Whether the promise holds of a number, where `size` is what it is to be below. */
export function keepsPromise(
  number: number | bigint,
  { multipleOf = 1, least, greatest }: Promised,
  size: number | undefined,
): boolean {
  const value = BigInt(number);
  return (
    value % BigInt(multipleOf) === 0n &&
    (least === undefined || value >= BigInt(least)) &&
    (greatest === undefined || value <= BigInt(greatest)) &&
    (size === undefined || value < BigInt(size))
  );
}
