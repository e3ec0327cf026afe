/** Products of f64 matrices: fused multiply-adds, k after k, each rounded as the instruction says. */
import { fusedMultiplyAdd } from "../../formats/arithmetic/fused.ts";
import { fuseRounded, precisions } from "../../formats/arithmetic/exact.ts";
import type { Rounding } from "../../formats/arithmetic/exact.ts";
import type { Collective, WarpView } from "../collective.ts";
import type { ProductShape } from "./forms.ts";
import type { Registers } from "./operands.ts";

const doubles = new Float64Array(1);
const doubleBits = new BigUint64Array(doubles.buffer);

function toDouble(bits: bigint): number {
  doubleBits[0] = bits;
  return doubles[0] as number;
}

function toBits(value: number): bigint {
  doubles[0] = value;
  return doubleBits[0] as bigint;
}

const quiet = 0x8_0000_0000_0000n;
/** The NaN that an operation on f64 numbers makes. */
const madeNaN = 0xfff8_0000_0000_0000n;

/** a·b + c; of NaN operands that of B comes through before that of C and that of A. */
function fuse(a: bigint, b: bigint, c: bigint, rounding: Rounding): bigint {
  for (const operand of [b, c, a]) if (Number.isNaN(toDouble(operand))) return operand | quiet;
  const [left, right, sum] = [toDouble(a), toDouble(b), toDouble(c)];
  const result =
    rounding === "rn"
      ? fusedMultiplyAdd(left, right, sum)
      : fuseRounded(left, right, sum, precisions.f64, rounding);
  return Number.isNaN(result) ? madeNaN : toBits(result);
}

const roundings = ["rn", "rz", "rm", "rp"] as const;

export function roundingOf(modifiers: readonly string[]): Rounding {
  return roundings.find((rounding) => modifiers.includes(rounding)) ?? "rn";
}

/** c += a·b. A has rows of k, B has columns of k, C has rows; all of them bits. */
export function multiplyDoubles(
  { m, n, k: depth }: ProductShape,
  rounding: Rounding,
  a: BigUint64Array,
  b: BigUint64Array,
  c: BigUint64Array,
): void {
  for (let row = 0; row < m; row++)
    for (let column = 0; column < n; column++) {
      let sum = c[row * n + column] as bigint;
      for (let k = 0; k < depth; k++)
        sum = fuse(a[row * depth + k] as bigint, b[column * depth + k] as bigint, sum, rounding);
      c[row * n + column] = sum;
    }
}

const depths: ReadonlyMap<number, readonly number[]> = new Map([
  [8, [4]],
  [16, [4, 8, 16]],
]);

/**
 * `mma` on f64: a lane holds row g (and g + 8) at k = t + 4i of A, column g at the same k of B, and columns
 * 2t and 2t + 1 of those rows of C.
 */
export function doubleProduct(
  shape: ProductShape,
  modifiers: readonly string[],
  [d, a, b, c]: readonly [Registers, Registers, Registers, Registers],
): Collective | undefined {
  const { m, n, k } = shape;
  const groups = m / 8;
  if (n !== 8 || depths.get(m)?.includes(k) !== true) return undefined;
  if (a.length !== (groups * k) / 4 || b.length !== k / 4) return undefined;
  const rounding = roundingOf(modifiers);
  const alongK = (row: number, rowGroups: number, at: number): number =>
    32 * (rowGroups * (at >> 2) + (row >> 3)) + 4 * (row & 7) + (at & 3);
  const inSums = (row: number, column: number): number =>
    32 * (2 * (row >> 3) + (column & 1)) + 4 * (row & 7) + (column >> 1);
  return {
    aligned: true,
    run: ({ warp }) => {
      const left = arranged(readDoubles(a, warp), m, k, (row, at) => alongK(row, groups, at));
      const right = arranged(readDoubles(b, warp), n, k, (column, at) => alongK(column, 1, at));
      const sums = arranged(readDoubles(c, warp), m, n, inSums);
      multiplyDoubles(shape, rounding, left, right, sums);
      for (let row = 0; row < m; row++)
        for (let column = 0; column < n; column++) {
          const at = inSums(row, column);
          d[at >> 5]?.setWide(warp, at & 31, sums[row * n + column] as bigint);
        }
      return "done";
    },
  };
}

/** Elements in rows, each from where the registers have it. */
function arranged(
  held: BigUint64Array,
  rows: number,
  columns: number,
  place: (row: number, column: number) => number,
): BigUint64Array {
  const elements = new BigUint64Array(rows * columns);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      elements[row * columns + column] = held[place(row, column)] as bigint;
  return elements;
}

/** All lanes of the first register, then all of the second … */
function readDoubles(operands: Registers, warp: WarpView): BigUint64Array {
  const bits = new BigUint64Array(32 * operands.length);
  for (const [index, operand] of operands.entries())
    for (let lane = 0; lane < 32; lane++) bits[32 * index + lane] = operand.wide(warp, lane);
  return bits;
}
