/**
 * Sums over the bits of the thread index: addresses and coordinates of a lane are of this kind, each bit
 * that is set contributing its part. Bits whose parts lie equally far away are moved together:
 *
 *   parts of bits 0 to 6: 4, 8, 16, 1024, 2048, 0, 0
 *
 *   (index & 7) << 2  +  (index & 24) << 7          two terms, whatever the number of bits
 */
import type { Code } from "../../function-builder.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";

export type Combine = "xor" | "add";

/** b32: the parts of the set bits of `index` together; undefined where that is always zero. */
export function combineParts(
  code: Code,
  index: Register,
  parts: readonly number[],
  combine: Combine = "add",
): Register | undefined {
  let sum: Register | undefined;
  for (const [distance, mask] of masksByDistance(parts)) {
    const term = movedBits(code, index, mask, distance);
    sum = sum === undefined ? term : code.make("b32", opcodes[combine], sum, term);
  }
  return sum;
}

const opcodes: { readonly [C in Combine]: string } = { xor: "xor.b32", add: "add.u32" };

/** The bits of the index that are moved by each distance, upwards where it is positive. */
function masksByDistance(parts: readonly number[]): ReadonlyMap<number, number> {
  const masks = new Map<number, number>();
  parts.forEach((part, bit) => {
    for (let rest = part; rest > 0; rest &= rest - 1) {
      const distance = 31 - Math.clz32(rest & -rest) - bit;
      masks.set(distance, (masks.get(distance) ?? 0) | (1 << bit));
    }
  });
  return masks;
}

function movedBits(code: Code, index: Register, mask: number, distance: number): Register {
  const masked = code.make("b32", "and.b32", index, integer(mask));
  if (distance === 0) return masked;
  return distance > 0
    ? code.make("b32", "shl.b32", masked, integer(distance))
    : code.make("b32", "shr.u32", masked, integer(-distance));
}
