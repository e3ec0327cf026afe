/**
 * What a mask gives over a whole tile of scores, from the ends of its rows and columns: the ops that the mask recorded are computed
 * once more, on the least and greatest value that each may have.
 *
 *   rows 128 … 191, columns 0 … 127       row − column    1 … 191      row − column ≥ 0    1 … 1     every row sees every column
 *   rows 128 … 191, columns 128 … 255     row − column    −127 … 63    row − column ≥ 0    0 … 1     some
 *   rows 128 … 191, columns 256 … 383     row − column    −255 … −65   row − column ≥ 0    0 … 0     none
 *
 * Ends are numbers where a plan counts tiles, and tiles of i64 where a kernel lists them, so that both come to the same. Arithmetic that
 * may leave the format of a value may wrap around, and then anything of the format is possible; so it is for ops without a rule.
 */
import type { ComparePredicate } from "../../formats/arithmetic/functions.ts";
import type { DType } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { rangeOf } from "../../ir/range-analysis/fact.ts";
import type { AnyOp, Op, Value } from "../../ir/node.ts";
import type { OpKind } from "../../ir/ops.ts";
import { isData } from "../../ir/types.ts";
import { full } from "../../lang/index.ts";
import type { Tile } from "../../lang/index.ts";

/** Computes with ends: conditions are 1 and 0. */
export interface Arithmetic<T> {
  readonly of: (value: number) => T;
  readonly add: (left: T, right: T) => T;
  readonly sub: (left: T, right: T) => T;
  readonly mul: (left: T, right: T) => T;
  /** Rounded towards zero. */
  readonly div: (left: T, right: T) => T;
  readonly min: (left: T, right: T) => T;
  readonly max: (left: T, right: T) => T;
  readonly atMost: (left: T, right: T) => T;
  readonly choose: (condition: T, holds: T, fails: T) => T;
}

/** The least and the greatest that a value may be. */
export interface Ends<T> {
  readonly low: T;
  readonly high: T;
}

export const hostNumbers: Arithmetic<number> = {
  of: (value) => value,
  add: (left, right) => left + right,
  sub: (left, right) => left - right,
  mul: (left, right) => left * right,
  div: (left, right) => Math.trunc(left / right),
  min: (left, right) => Math.min(left, right),
  max: (left, right) => Math.max(left, right),
  atMost: (left, right) => (left <= right ? 1 : 0),
  choose: (condition, holds, fails) => (condition === 0 ? fails : holds),
};

/** Ends of `count` tiles of scores at once, in a kernel. */
export function tileNumbers(count: number): Arithmetic<Tile<"i64">> {
  const of = (value: number): Tile<"i64"> => full(dtypes.i64, [count], BigInt(value));
  return {
    of,
    add: (left, right) => left.add(right),
    sub: (left, right) => left.sub(right),
    mul: (left, right) => left.mul(right),
    div: (left, right) => left.div(right),
    min: (left, right) => left.minimum(right),
    max: (left, right) => left.maximum(right),
    atMost: (left, right) => left.le(right).select(of(1), of(0)),
    choose: (condition, holds, fails) => condition.ne(of(0)).select(holds, fails),
  };
}

/** The ops of a mask, and what is known where it is asked. */
interface Asked<T> {
  readonly arithmetic: Arithmetic<T>;
  readonly definitions: ReadonlyMap<Value, AnyOp>;
  /** The ends of a value; undefined of floats, and of wide integers that were computed with. */
  readonly endsOf: (value: Value) => Ends<T> | undefined;
}

/** The ends of a value that ops define, where those of some values are given. */
export function endsWhere<T>(
  arithmetic: Arithmetic<T>,
  definitions: ReadonlyMap<Value, AnyOp>,
  given: ReadonlyMap<Value, Ends<T>>,
): (value: Value) => Ends<T> | undefined {
  const known = new Map<Value, Ends<T> | undefined>(given);
  const endsOf = (value: Value): Ends<T> | undefined => {
    if (known.has(value)) return known.get(value);
    const dtype = isData(value.type) ? value.type.dtype : undefined;
    const op = definitions.get(value);
    // TypeScript cannot see that the rule and the op share their kind.
    const rule = op && (rules[op.kind] as Rule | undefined);
    const found = rule?.(op as never, { arithmetic, definitions, endsOf });
    const ends = dtype && stored(arithmetic, found, dtype);
    known.set(value, ends);
    return ends;
  };
  return endsOf;
}

/** The integers of a format, where their products fit 64 bits. */
function wholeRange<T>({ of }: Arithmetic<T>, dtype: DType): Ends<T> | undefined {
  const range = rangeOf(dtype);
  if (range === undefined || range.greatest >= 2n ** 31n) return undefined;
  return { low: of(Number(range.least)), high: of(Number(range.greatest)) };
}

/** Wide formats in which integers of 32 bits are compared. What is computed in them may wrap around, or leave 64 bits, and has no ends. */
const widened: readonly DType[] = [dtypes.i64, dtypes.u32];

function isWidened({ type }: Value): boolean {
  return isData(type) && widened.includes(type.dtype);
}

/**
 * The ends of a value in its format, all of which is possible where it may have wrapped around. Floats, which round, have none, even where they were
 * made of integers with ends.
 */
function stored<T>(
  arithmetic: Arithmetic<T>,
  ends: Ends<T> | undefined,
  dtype: DType,
): Ends<T> | undefined {
  if (dtype === dtypes.i64) return ends;
  const { of } = arithmetic;
  const range =
    dtype === dtypes.u32
      ? ends && { low: of(0), high: of(2 ** 32 - 1) }
      : wholeRange(arithmetic, dtype);
  if (range === undefined || ends === undefined) return range;
  if (dtype === dtypes.bool) return ends;
  const { atMost, choose, min } = arithmetic;
  const fits = min(atMost(range.low, ends.low), atMost(ends.high, range.high));
  return { low: choose(fits, ends.low, range.low), high: choose(fits, ends.high, range.high) };
}

type Rule<K extends OpKind = OpKind> = <T>(op: Op<K>, asked: Asked<T>) => Ends<T> | undefined;

/** The elements of the result are elements of the source. */
function sameElements<T>(
  { operands }: { readonly operands: { readonly source: Value } },
  { endsOf }: Asked<T>,
): Ends<T> | undefined {
  return endsOf(operands.source);
}

/** Rules of ops on integers and conditions; of what the others give nothing is known. */
const rules: { readonly [K in OpKind]?: Rule<K> } = {
  constant: ({ attributes: { value, dtype } }, { arithmetic }) => {
    const isWhole = wholeRange(arithmetic, dtype) !== undefined || widened.includes(dtype);
    if (!isWhole || !Number.isSafeInteger(Number(value))) return undefined;
    const number = arithmetic.of(Number(value));
    return { low: number, high: number };
  },
  unary: ({ operands, attributes: { fn } }, { arithmetic, endsOf }) => {
    const source = isWidened(operands.source) ? undefined : endsOf(operands.source);
    return source && unaryEnds[fn]?.(arithmetic, source, operands.source);
  },
  binary: ({ operands, attributes: { fn } }, asked) => {
    if (isWidened(operands.left)) return undefined;
    const [left, right] = [asked.endsOf(operands.left), asked.endsOf(operands.right)];
    if (left === undefined || right === undefined) return undefined;
    if (isCondition(operands.left)) return logicEnds[fn]?.(asked.arithmetic, left, right);
    const by = constantOf(operands.right, asked.definitions);
    const byConstant = by === undefined ? undefined : constantEnds[fn];
    if (by !== undefined && byConstant !== undefined) return byConstant(asked.arithmetic, left, by);
    return binaryEnds[fn]?.(asked.arithmetic, left, right);
  },
  compare: ({ operands, attributes: { predicate } }, { arithmetic, endsOf }) => {
    const [left, right] = [endsOf(operands.left), endsOf(operands.right)];
    if (left === undefined || right === undefined) return undefined;
    return comparedEnds[predicate](arithmetic, left, right);
  },
  select: ({ operands }, { arithmetic, endsOf }) => {
    const [condition, yes, no] = [operands.condition, operands.ifTrue, operands.ifFalse].map(
      endsOf,
    );
    if (!condition || !yes || !no) return undefined;
    const { choose, min, max } = arithmetic;
    const either = (end: "low" | "high", both: typeof min) =>
      choose(condition.low, yes[end], choose(condition.high, both(yes[end], no[end]), no[end]));
    return { low: either("low", min), high: either("high", max) };
  },
  cast: ({ operands, attributes: { dtype } }, { arithmetic, endsOf }) => {
    const source = endsOf(operands.source);
    if (source === undefined || dtype !== dtypes.bool) return source;
    const zero = arithmetic.of(0);
    return comparedEnds.ne(arithmetic, source, { low: zero, high: zero });
  },
  broadcast: sameElements,
  reshape: sameElements,
  transpose: sameElements,
};

function isCondition(value: Value): boolean {
  return isData(value.type) && value.type.dtype === dtypes.bool;
}

/** The number that a value is everywhere, where that is written down. */
function constantOf(value: Value, definitions: ReadonlyMap<Value, AnyOp>): number | undefined {
  const op = definitions.get(value);
  if (op?.kind === "constant") return Number(op.attributes.value);
  return op?.kind === "broadcast" ? constantOf(op.operands.source, definitions) : undefined;
}

type Compared = <T>(arithmetic: Arithmetic<T>, left: Ends<T>, right: Ends<T>) => Ends<T>;

const atMost: Compared = ({ atMost: isAtMost }, left, right) => ({
  low: isAtMost(left.high, right.low),
  high: isAtMost(left.low, right.high),
});

const not = <T>({ of, sub }: Arithmetic<T>, { low, high }: Ends<T>): Ends<T> => ({
  low: sub(of(1), high),
  high: sub(of(1), low),
});

/** Both are one number, and the same; or they have one in common. */
const equal: Compared = ({ atMost: isAtMost, min }, left, right) => ({
  low: min(isAtMost(left.high, right.low), isAtMost(right.high, left.low)),
  high: min(isAtMost(left.low, right.high), isAtMost(right.low, left.high)),
});

const comparedEnds: { readonly [P in ComparePredicate]: Compared } = {
  le: atMost,
  ge: (arithmetic, left, right) => atMost(arithmetic, right, left),
  gt: (arithmetic, left, right) => not(arithmetic, atMost(arithmetic, left, right)),
  lt: (arithmetic, left, right) => not(arithmetic, atMost(arithmetic, right, left)),
  eq: equal,
  ne: (arithmetic, left, right) => not(arithmetic, equal(arithmetic, left, right)),
};

/** Of conditions: `xor` is whether they differ. */
const logicEnds: { readonly [fn: string]: Compared } = {
  and: ({ min }, left, right) => ({
    low: min(left.low, right.low),
    high: min(left.high, right.high),
  }),
  or: ({ max }, left, right) => ({
    low: max(left.low, right.low),
    high: max(left.high, right.high),
  }),
  xor: comparedEnds.ne,
};

const negated = <T>({ of, sub }: Arithmetic<T>, { low, high }: Ends<T>): Ends<T> => ({
  low: sub(of(0), high),
  high: sub(of(0), low),
});

type UnaryEnds = <T>(
  arithmetic: Arithmetic<T>,
  source: Ends<T>,
  value: Value,
) => Ends<T> | undefined;

const unaryEnds: { readonly [fn: string]: UnaryEnds } = {
  neg: negated,
  abs: (arithmetic, source) => {
    const { of, max } = arithmetic;
    const other = negated(arithmetic, source);
    // What lies on both sides of 0 has negative ends, of itself and of its negation.
    return { low: max(of(0), max(source.low, other.low)), high: max(source.high, other.high) };
  },
  not: (arithmetic, source, value) => (isCondition(value) ? not(arithmetic, source) : undefined),
};

const binaryEnds: { readonly [fn: string]: Compared } = {
  add: ({ add }, left, right) => ({
    low: add(left.low, right.low),
    high: add(left.high, right.high),
  }),
  sub: ({ sub }, left, right) => ({
    low: sub(left.low, right.high),
    high: sub(left.high, right.low),
  }),
  mul: ({ mul, min, max }, left, right) => {
    const corners = [
      ...[mul(left.low, right.low), mul(left.low, right.high)],
      ...[mul(left.high, right.low), mul(left.high, right.high)],
    ];
    return { low: corners.reduce(min), high: corners.reduce(max) };
  },
  min: logicEnds["and"] as Compared,
  max: logicEnds["or"] as Compared,
};

type ByConstant = <T>(arithmetic: Arithmetic<T>, left: Ends<T>, by: number) => Ends<T> | undefined;

const quotient: ByConstant = ({ of, div }, { low, high }, by) =>
  by > 0 ? { low: div(low, of(by)), high: div(high, of(by)) } : undefined;

/** Between two multiples of the divisor remainders go up; else they may be all. */
const remainder: ByConstant = (arithmetic, left, by) => {
  if (by <= 0) return undefined;
  const { of, sub, mul, div, min, max, atMost: isAtMost, choose } = arithmetic;
  const [below, above] = [div(left.low, of(by)), div(left.high, of(by))];
  const isOnce = min(isAtMost(of(0), left.low), isAtMost(above, below));
  const taken = mul(below, of(by));
  return {
    low: choose(isOnce, sub(left.low, taken), min(of(0), max(left.low, of(1 - by)))),
    high: choose(isOnce, sub(left.high, taken), max(of(0), min(left.high, of(by - 1)))),
  };
};

/** Shifted bits are quotients of what is not negative. */
const ofNonNegative =
  (rule: ByConstant): ByConstant =>
  (arithmetic, left, by) => {
    const { of, atMost: isAtMost, choose } = arithmetic;
    const found = rule(arithmetic, left, by);
    if (found === undefined) return undefined;
    const isNegative = isAtMost(left.low, of(-1));
    const [least, most] = [of(-(2 ** 31)), of(2 ** 31 - 1)];
    return {
      low: choose(isNegative, least, found.low),
      high: choose(isNegative, most, found.high),
    };
  };

const isShift = (by: number): boolean => by >= 0 && by < 31;

/** What is known of one operand that is a number alone. */
const constantEnds: { readonly [fn: string]: ByConstant } = {
  div: quotient,
  rem: remainder,
  shl: ({ mul, of }, { low, high }, by) =>
    isShift(by) ? { low: mul(low, of(2 ** by)), high: mul(high, of(2 ** by)) } : undefined,
  shr: ofNonNegative((arithmetic, left, by) =>
    isShift(by) ? quotient(arithmetic, left, 2 ** by) : undefined,
  ),
  // The low bits of a number are what a power of two leaves of it.
  and: ofNonNegative((arithmetic, left, by) =>
    by >= 0 && Number.isInteger(Math.log2(by + 1))
      ? remainder(arithmetic, left, by + 1)
      : undefined,
  ),
};
