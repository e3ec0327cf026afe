/**
 * Sizes in facts. A dimension is from 0 below 2³¹, which the launch checks; of a block that runs, all axes
 * of the grid have at least one block, and so at least one element to begin with. That a value is below a
 * size is used through the greatest value of the size, or by one of these, for v ≥ 0:
 *
 *   | rule                   | v below         | then                                          |
 *   |------------------------|-----------------|-----------------------------------------------|
 *   | times the divisor      | ceildiv(S, c)   | c · v < S                                     |
 *   | multiple below multiple| S, where m ∣ S  | v ≡ r mod m: v + t ≤ S for r + t ≤ m          |
 *   | sum below the multiple | S, where m ∣ S  | v ≡ r mod m: v + w < S for r + w < m          |
 *   | quotient               | c · S           | v / c < S; for a number c, v / c < ceildiv(S, c) of v < S |
 *   | remainder              | anything        | v mod S < S where S > 0, and at most v        |
 *   | rest                   | S               | S + c − v > c, and S + c − v < S for c < 0    |
 */
import {
  addSizes,
  ceilDivSize,
  divideSizeExactly,
  knownDivisor,
  multiplySizes,
  sameSize,
} from "../size.ts";
import type { Size, SymbolicSize } from "../size.ts";
import { onceForEach } from "../../support/memo.ts";
import { exactly, tightened } from "./fact.ts";
import type { Fact } from "./fact.ts";

const greatestDimension = 2n ** 31n - 1n;

/** Facts of sizes in a kernel with this grid. */
export class SizeFacts {
  readonly #positive: ReadonlySet<string>;
  /** Of one kernel the same few sizes are asked about again and again. */
  readonly #symbolic = onceForEach((size: SymbolicSize) =>
    tightened({ below: [], size, ...this.#ends(size), ...multipleOf(size) }),
  );

  constructor(grid: readonly { readonly extent: Size }[]) {
    this.#positive = new Set(grid.flatMap(({ extent }) => positiveDimensions(extent)));
  }

  of(size: Size): Fact {
    if (typeof size === "number") return exactly(BigInt(size));
    return this.#symbolic(size);
  }

  #ends(size: SymbolicSize): Pick<Fact, "least" | "greatest"> {
    if (size.kind === "dimension")
      return { least: this.#positive.has(size.name) ? 1n : 0n, greatest: greatestDimension };
    if (size.kind === "ceildiv" || size.kind === "floordiv") {
      const by = BigInt(size.by);
      const add = size.kind === "ceildiv" ? by - 1n : 0n;
      const { least, greatest } = this.#ends(size.of);
      return {
        least: flooredQuotient(least + add, by),
        greatest: flooredQuotient(greatest + add, by),
      };
    }
    if (size.kind === "sum") {
      const constant = BigInt(size.constant);
      return size.terms
        .map((term) => this.#ends(term))
        .reduce(
          (total, term) => ({
            least: total.least + term.least,
            greatest: total.greatest + term.greatest,
          }),
          { least: constant, greatest: constant },
        );
    }
    const coefficient = BigInt(size.coefficient);
    const product = size.factors
      .map((factor) => this.#ends(factor))
      .reduce(
        (total, factor) => {
          // Factors may be below 0 where they are quotients of differences.
          const corners = [total.least, total.greatest].flatMap((end) => [
            end * factor.least,
            end * factor.greatest,
          ]);
          return { least: lowest(corners), greatest: -lowest(corners.map((corner) => -corner)) };
        },
        { least: 1n, greatest: 1n },
      );
    const ends = [product.least * coefficient, product.greatest * coefficient];
    return { least: lowest(ends), greatest: -lowest(ends.map((end) => -end)) };
  }
}

function lowest(numbers: readonly bigint[]): bigint {
  return numbers.reduce((least, each) => (each < least ? each : least));
}

function flooredQuotient(value: bigint, by: bigint): bigint {
  const quotient = value / by;
  return value < 0n && quotient * by !== value ? quotient - 1n : quotient;
}

/** Dimensions that are above 0 where a size is: not those of a sum, whose other terms may make up for them. */
function positiveDimensions(size: Size): readonly string[] {
  if (typeof size === "number" || size.kind === "sum") return [];
  if (size.kind === "dimension") return [size.name];
  if (size.kind === "product") return size.factors.flatMap(positiveDimensions);
  return positiveDimensions(size.of);
}

function multipleOf(size: Size): Pick<Fact, "modulus" | "residue"> {
  const divisor = knownDivisor(size);
  return { modulus: Number.isSafeInteger(divisor) ? BigInt(divisor) : 1n, residue: 0n };
}

/** Whether the size is a multiple of the modulus for every launch. */
function isMultiple(size: Size, modulus: bigint): boolean {
  return modulus !== 0n && multipleOf(size).modulus % modulus === 0n;
}

/** What a value times a size, which is above 0, is below. */
export function productBelow(value: Fact, factor: Size): readonly SymbolicSize[] {
  if (value.least < 0n) return [];
  return symbolic(
    value.below.flatMap((bound) =>
      bound.kind === "ceildiv" && bound.by === factor
        ? [bound.of, multiplySizes(bound, factor)]
        : [multiplySizes(bound, factor)],
    ),
  );
}

/** What the sum of a value and a small one is below. */
export function sumBelow(value: Fact, { least, greatest }: Fact): readonly SymbolicSize[] {
  if (greatest <= 0n) return value.below;
  if (least < 0n || value.residue + greatest >= value.modulus) return [];
  return value.below.filter((bound) => isMultiple(bound, value.modulus));
}

/** The size that a value is, if it is one; numbers are sizes, too. */
export function sizeOf({ size, modulus, residue }: Pick<Fact, "size" | "modulus" | "residue">) {
  if (size !== undefined || modulus !== 0n) return size;
  const number = Number(residue);
  return Number.isSafeInteger(number) ? number : undefined;
}

/** The size that a sum from 0 on is, where a size of the launch is in it; numbers are known without. */
export function sizeOfSum(left: Size | undefined, right: Size | undefined): Size | undefined {
  if (left === undefined || right === undefined) return undefined;
  if (typeof left === "number" && typeof right === "number") return undefined;
  return addSizes(left, right);
}

/** What is left of a size from which a value is taken that lies below one: at least so much, and below which sizes. */
export function leftOver(
  { size }: Fact,
  taken: Fact,
): readonly { readonly least: bigint; readonly below: readonly SymbolicSize[] }[] {
  if (size === undefined || typeof size === "number") return [];
  return taken.below.flatMap((bound) => {
    const over = addSizes(size, multiplySizes(-1, bound));
    if (typeof over !== "number") return [];
    return [{ least: BigInt(over) + 1n, below: BigInt(over) < taken.least ? [bound] : [] }];
  });
}

/** What a value is below after division by a size above 0. */
export function quotientBelow(value: Fact, by: Size): readonly SymbolicSize[] {
  if (value.least < 0n) return [];
  return symbolic(
    value.below.flatMap((bound): readonly Size[] => {
      const exact = divideSizeExactly(bound, by);
      if (exact !== undefined) return [exact];
      return typeof by === "number" && by > 0 ? [ceilDivSize(bound, by)] : [];
    }),
  );
}

/** Whether a size is above 0 because the value, from 0 on, is below a multiple of it. */
export function isPositiveFor(value: Fact, size: Size): boolean {
  return (
    value.least >= 0n && value.below.some((bound) => divideSizeExactly(bound, size) !== undefined)
  );
}

function symbolic(sizes: readonly Size[]): readonly SymbolicSize[] {
  return sizes.filter((size) => typeof size !== "number");
}

/** Whether the value is at most the size. */
export function isAtMost(value: Fact, size: Size, sizes: SizeFacts): boolean {
  if (value.greatest <= sizes.of(size).least) return true;
  return value.below.some((bound) => sameSize(bound, size));
}

/** Whether `count` elements from the value on end at or before `end`. */
export function endsWithin(value: Fact, count: Size, end: Size, sizes: SizeFacts): boolean {
  if (value.greatest <= 0n && sameSize(count, end)) return true;
  if (value.greatest + sizes.of(count).greatest <= sizes.of(end).least) return true;
  if (typeof count !== "number") return false;
  const { modulus, residue } = value;
  if (residue + BigInt(count) > modulus || !isMultiple(end, modulus)) return false;
  return value.below.some((bound) => sameSize(bound, end));
}
