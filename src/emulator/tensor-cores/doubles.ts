/** Products of f64 matrices: fused multiply-adds, k after k. */
import { fusedMultiplyAdd } from "../../formats/arithmetic/fused.ts";
import type { Collective, WarpView } from "../collective.ts";
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
function fuse(a: bigint, b: bigint, c: bigint): bigint {
  for (const operand of [b, c, a]) if (Number.isNaN(toDouble(operand))) return operand | quiet;
  const result = fusedMultiplyAdd(toDouble(a), toDouble(b), toDouble(c));
  return Number.isNaN(result) ? madeNaN : toBits(result);
}

/** f64: a lane holds row g (and g + 8) at k = t + 4i of A, column g at the same k of B. */
export function doubleProduct(
  m: number,
  depth: number,
  [d, a, b, c]: readonly [Registers, Registers, Registers, Registers],
): Collective | undefined {
  const rowGroups = m / 8;
  if (a.length !== (rowGroups * depth) / 4 || b.length !== depth / 4) return undefined;
  return {
    aligned: true,
    run: ({ warp }) => {
      const left = readDoubles(a, warp);
      const right = readDoubles(b, warp);
      const sums = readDoubles(c, warp);
      for (const [index, sum] of sums.entries()) {
        const row = ((index % 32) >> 2) + 8 * (index >> 6);
        const column = 2 * (index & 3) + ((index >> 5) & 1);
        let total = sum;
        for (let k = 0; k < depth; k++) {
          const at = (k >> 2) * 32 * rowGroups + 32 * (row >> 3) + 4 * (row & 7) + (k & 3);
          const from = (k >> 2) * 32 + 4 * column + (k & 3);
          total = fuse(left[at] ?? 0n, right[from] ?? 0n, total);
        }
        sums[index] = total;
      }
      for (const [index, operand] of d.entries())
        for (let lane = 0; lane < 32; lane++)
          operand.setWide(warp, lane, sums[32 * index + lane] ?? 0n);
      return "done";
    },
  };
}

/** All lanes of the first register, then all of the second … */
function readDoubles(operands: Registers, warp: WarpView): BigUint64Array {
  const bits = new BigUint64Array(32 * operands.length);
  for (const [index, operand] of operands.entries())
    for (let lane = 0; lane < 32; lane++) bits[32 * index + lane] = operand.wide(warp, lane);
  return bits;
}
