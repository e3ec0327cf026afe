/**
 * Random indices, each said twice: as calls of the language, which are traced, and as the number that they give in a block, a round and a launch,
 * in i32 that wraps.
 */
import { constant, i16, i32, i64, u32 } from "../../../src/index.ts";
import type { Scalar } from "../../../src/index.ts";
import type { Random } from "../../../src/support/random.ts";

export type Whole = Scalar<"i32">;

/** Where an index is computed, of the kernel and of a run of it. */
export interface Place<T> {
  readonly block: T;
  readonly round: T;
  /** A number that the launch gives, and one that is read from memory. */
  readonly given: T;
  readonly read: T;
}

export interface Expression {
  readonly trace: (place: Place<Whole>) => Whole;
  readonly value: (place: Place<number>) => number;
}

type Combining = readonly [
  trace: (left: Whole, right: Whole) => Whole,
  value: (left: number, right: number) => number,
];

const combinings: readonly Combining[] = [
  [(a, b) => a.add(b), (a, b) => (a + b) | 0],
  [(a, b) => a.add(b), (a, b) => (a + b) | 0],
  [(a, b) => a.sub(b), (a, b) => (a - b) | 0],
  [(a, b) => a.mul(b), (a, b) => Math.imul(a, b)],
  [(a, b) => a.minimum(b), (a, b) => Math.min(a, b)],
  [(a, b) => a.maximum(b), (a, b) => Math.max(a, b)],
  [(a, b) => a.and(b), (a, b) => a & b],
  [(a, b) => a.xor(b), (a, b) => a ^ b],
  [(a, b) => a.lt(b).select(a, b.sub(1)), (a, b) => (a < b ? a : (b - 1) | 0)],
];

type Changing = readonly [trace: (value: Whole) => Whole, value: (value: number) => number];

function changings(random: Random): readonly Changing[] {
  const by = 1 + random.below(5);
  return [
    [(a) => a.mul(by), (a) => Math.imul(a, by)],
    [(a) => a.add(by), (a) => (a + by) | 0],
    [(a) => a.sub(by), (a) => (a - by) | 0],
    [(a) => a.shr(1), (a) => a >> 1],
    [(a) => a.shl(by), (a) => a << by],
    // Rounds towards zero, as quotients of integers do.
    [(a) => a.div(by), (a) => Math.trunc(a / by) | 0],
    [(a) => a.rem(by + 1), (a) => (a % (by + 1)) | 0],
    [(a) => a.neg(), (a) => -a | 0],
    [(a) => a.cast(i16).cast(i32), (a) => (a << 16) >> 16],
    [(a) => a.cast(u32).cast(i32), (a) => a],
    [(a) => a.cast(i64).mul(3n).cast(i32), (a) => Math.imul(a, 3)],
  ];
}

/** An index that depends on what the launch gives or on what memory holds. */
export function drawExpression(random: Random, depth: number): Expression {
  const from: Expression =
    random.below(2) === 0
      ? { trace: ({ given }) => given, value: ({ given }) => given }
      : { trace: ({ read }) => read, value: ({ read }) => read };
  return grown(random, depth, from);
}

function grown(random: Random, depth: number, inner: Expression): Expression {
  if (depth === 0) return inner;
  if (random.below(2) === 0) {
    const [trace, value] = random.pick(changings(random));
    return grown(random, depth - 1, {
      trace: (place) => trace(inner.trace(place)),
      value: (place) => value(inner.value(place)),
    });
  }
  const number = random.below(7);
  const others: readonly Expression[] = [
    { trace: ({ block }) => block, value: ({ block }) => block },
    { trace: ({ round }) => round, value: ({ round }) => round },
    { trace: ({ round }) => round, value: ({ round }) => round },
    { trace: () => constant(i32, number), value: () => number },
  ];
  const other = random.pick(others);
  const [trace, value] = random.pick(combinings);
  return grown(random, depth - 1, {
    trace: (place) => trace(inner.trace(place), other.trace(place)),
    value: (place) => value(inner.value(place), other.value(place)),
  });
}
