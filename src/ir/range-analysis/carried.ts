/**
 * Facts of what loops carry, by induction: a guess holds of every step if it holds of the initial value and, supposing
 * that it holds of one step, of what that step hands to the next.
 *
 *   slot = 0; each step: slot + 1 == 4 ? 0 : slot + 1        guess 0 … 3
 *     initially 0 ✓     if slot is 0 … 3, slot + 1 is 1 … 4, and 1 … 3 where it is not 4 ✓
 *
 * Guesses are the initial value, what it and the first step come to, and the numbers below a constant that the loop
 * compares with, which is where counters turn.
 */
import type { AnyOp, Op, Region, Value } from "../node.ts";
import { visitEach } from "../../support/visit-each.ts";
import { walkOps, yieldedValues } from "../traverse.ts";
import { between, constantOf, either, tightened } from "./fact.ts";
import type { Fact } from "./fact.ts";

/** A value that a loop carries: what it begins with, and what each step hands on. */
export interface Carried {
  readonly initial: Value;
  readonly yielded: Value;
  /** Its names within the loop. */
  readonly parameters: readonly Value[];
  readonly body: Region;
}

/** What a loop carries, in the order of its results. */
export function carriedBy(op: Op<"loop"> | Op<"while">): readonly Carried[] {
  const { body } = op.regions;
  const yielded = yieldedValues(body);
  const first = op.kind === "loop" ? 1 : 0;
  const carried: Carried[] = [];
  visitEach(op.operands.initial, (initial, position) => {
    const next = yielded[position];
    const inBody = body.parameters[first + position];
    if (next === undefined || inBody === undefined) return;
    const inCondition = op.kind === "while" ? op.regions.condition.parameters[position] : undefined;
    const parameters = inCondition === undefined ? [inBody] : [inBody, inCondition];
    carried.push({ initial, yielded: next, parameters, body });
  });
  return carried;
}

/** The name within the loop of what it gives as one of its results. */
export function carriedInto(op: Op<"loop"> | Op<"while">, result: Value): Value | undefined {
  const first = op.kind === "loop" ? 1 : 0;
  return op.regions.body.parameters[first + op.results.indexOf(result)];
}

/** Turning points that are tried: more than there are stages in any ring. */
const mostGuesses = 6;
/** A phase is 0 or 1, whatever the loop compares. */
const phase = 2n;

/** A fact that may hold of a carried value, and what a step hands on where it does. */
interface Guess {
  readonly guess: Fact;
  readonly next: Fact;
}

/** Facts that may hold of a carried value, the sharpest first. */
export function* guesses(
  { body }: Carried,
  start: Fact,
  afterOne: (guess: Fact) => Fact,
  definitions: ReadonlyMap<Value, AnyOp>,
): Generator<Guess> {
  const supposed = (guess: Fact): Guess => ({ guess, next: afterOne(guess) });
  const first = supposed(plainly(start));
  yield first;
  const both = plainly(either(start, first.next));
  yield supposed(both);
  for (const turn of turningPoints(body, definitions))
    if (turn > both.greatest) yield supposed(between(both.least, turn - 1n));
}

/** Without what holds of sizes, which a step would have to keep. */
function plainly({ least, greatest, modulus, residue }: Fact): Fact {
  return { least, greatest, modulus, residue, below: [] };
}

/** The constants that the loop compares with, the least first. */
function turningPoints(body: Region, definitions: ReadonlyMap<Value, AnyOp>): readonly bigint[] {
  const points = new Set([phase]);
  walkOps(body, (op) => {
    if (op.kind !== "compare") return;
    for (const operand of [op.operands.left, op.operands.right]) {
      const made = definitions.get(operand);
      if (made?.kind === "constant" && typeof made.attributes.value === "number")
        if (Number.isSafeInteger(made.attributes.value)) points.add(BigInt(made.attributes.value));
    }
  });
  return [...points].sort((left, right) => Number(left - right)).slice(0, mostGuesses);
}

/** Whether every value that the second fact allows is allowed by the first, which says nothing of sizes. */
export function covers(guess: Fact, fact: Fact): boolean {
  if (fact.least < guess.least || fact.greatest > guess.greatest) return false;
  const exact = constantOf(guess);
  if (exact !== undefined) return constantOf(fact) === exact;
  return (
    fact.modulus % guess.modulus === 0n && (fact.residue - guess.residue) % guess.modulus === 0n
  );
}

/**
 * A choice by a comparison with a constant says something of what was compared: where `x == 4` does not hold, x is not
 * 4, and where `x < 4` holds, it is at most 3.
 */
export function refined(
  value: Value,
  fact: Fact,
  condition: AnyOp | undefined,
  holds: boolean,
  constant: (value: Value) => bigint | undefined,
): Fact {
  if (condition?.kind !== "compare" || condition.operands.left !== value) return fact;
  const bound = constant(condition.operands.right);
  if (bound === undefined) return fact;
  const limits = boundsBy[condition.attributes.predicate][holds ? "then" : "otherwise"](
    bound,
    fact,
  );
  const [least, greatest] = limits;
  const narrowed = {
    ...fact,
    least: least > fact.least ? least : fact.least,
    greatest: greatest < fact.greatest ? greatest : fact.greatest,
  };
  // What cannot be is left as it came.
  return narrowed.least > narrowed.greatest ? fact : tightened(narrowed);
}

type Bounds = (bound: bigint, fact: Fact) => readonly [bigint, bigint];
const below: Bounds = (bound, { least }) => [least, bound - 1n];
const upTo: Bounds = (bound, { least }) => [least, bound];
const from: Bounds = (bound, { greatest }) => [bound, greatest];
const above: Bounds = (bound, { greatest }) => [bound + 1n, greatest];
const equal: Bounds = (bound) => [bound, bound];
/** Without an end of the interval, where that is the bound. */
const unequal: Bounds = (bound, { least, greatest }) => [
  least === bound ? least + 1n : least,
  greatest === bound ? greatest - 1n : greatest,
];

const boundsBy: {
  readonly [P in Op<"compare">["attributes"]["predicate"]]: {
    readonly then: Bounds;
    readonly otherwise: Bounds;
  };
} = {
  eq: { then: equal, otherwise: unequal },
  ne: { then: unequal, otherwise: equal },
  lt: { then: below, otherwise: from },
  le: { then: upTo, otherwise: above },
  gt: { then: above, otherwise: upTo },
  ge: { then: from, otherwise: below },
};
