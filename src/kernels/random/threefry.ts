/**
 * Random bits as JAX's default generator makes them: Threefry-2x32 with 20 rounds over the number of the element, and the
 * two words of the hash combined by xor. Equal keys so give equal bits on every device, in any division into blocks.
 */
import type { Scalar, Tile } from "../../lang/index.ts";

const rotations = [
  [13, 15, 26, 6],
  [17, 29, 16, 24],
] as const;

/** The words of a key. */
export interface Key {
  readonly high: Scalar<"u32">;
  readonly low: Scalar<"u32">;
}

/** 32 random bits for each number. */
export function randomBits({ high, low }: Key, number: Tile<"u32">): Tile<"u32"> {
  const keys = [high, low, high.xor(low).xor(0x1bd11bda)] as const;
  let first = number.mul(0).add(keys[0]);
  let second = number.add(keys[1]);
  for (let group = 1; group <= 5; group += 1) {
    for (const distance of rotations[(group + 1) % 2] ?? rotations[0]) {
      first = first.add(second);
      second = second
        .shl(distance)
        .or(second.shr(32 - distance))
        .xor(first);
    }
    first = first.add(keys[group % 3] ?? keys[0]);
    second = second.add(keys[(group + 1) % 3] ?? keys[0]).add(group);
  }
  return first.xor(second);
}
