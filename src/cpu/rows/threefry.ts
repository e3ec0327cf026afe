/**
 * Threefry-2x32 of 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), four blocks at a time: adds, rotations
 * and exclusive ors, with a word of the key every four rounds.
 */
import { i32, op, splat } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";

const rotations = [
  [13, 15, 26, 6],
  [17, 29, 16, 24],
] as const;
const parity = 0x1bd11bda;

/** Both words of the blocks of four counters. */
export function threefry2x32(
  builder: FunctionBuilder,
  key: readonly [Expression, Expression],
  counter: readonly [Expression, Expression],
): readonly [Expression, Expression] {
  const keep = (value: Expression): Expression => builder.keep(value);
  const add = (left: Expression, right: Expression): Expression =>
    keep(op("i32x4.add", left, right));
  const third = keep(op("v128.xor", op("v128.xor", ...key), splat("i32x4", parity)));
  const words = [...key, third];
  const word = (index: number): Expression => words[index % 3] ?? third;
  let [left, right] = [add(counter[0], word(0)), add(counter[1], word(1))];
  for (let group = 0; group < 5; group++) {
    for (const rotation of rotations[group % 2] ?? []) {
      left = add(left, right);
      const up = op("i32x4.shl", right, i32.of(rotation));
      const rotated = op("v128.or", up, op("i32x4.shr_u", right, i32.of(32 - rotation)));
      right = keep(op("v128.xor", rotated, left));
    }
    left = add(left, word(group + 1));
    right = add(add(right, word(group + 2)), splat("i32x4", group + 1));
  }
  return [left, right];
}
