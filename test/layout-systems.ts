/**
 * An oracle for the layout solver: every assignment of a system is tried and judged by what the
 * constraints mean, without any of the solver's own code. And random systems to compare it on, over
 * candidates that are mere letters and functions that permute some of them.
 */
import { unknownLocation } from "../src/support/location.ts";
import type { Random } from "../src/support/random.ts";
import type {
  Candidate,
  Constraint,
  Expression,
  LayoutFunction,
  Origin,
  Variable,
} from "../src/layout/solver/system.ts";
import { System, apply, constant, variableOf } from "../src/layout/solver/system.ts";

export type Assignment = ReadonlyMap<Variable, Candidate>;

export function letter(text: string): Candidate {
  return { text };
}

export function letters(texts: string): Candidate[] {
  return [...texts].map(letter);
}

export function stated(message: string, pinned = false): Origin {
  return { location: unknownLocation, message, pinned };
}

function valueOf(expression: Expression, assignment: Assignment): Candidate | undefined {
  if (expression.kind === "constant") return expression.value;
  if (expression.kind === "variable") return assignment.get(expression);
  const argument = valueOf(expression.argument, assignment);
  return argument === undefined ? undefined : expression.function.apply(argument);
}

/** What a constraint adds, or undefined where it does not hold. */
export function priceOf(constraint: Constraint, assignment: Assignment): number | undefined {
  const values: Candidate[] = [];
  for (const operand of constraint.operands) {
    const value = valueOf(operand, assignment);
    if (value === undefined) return undefined;
    values.push(value);
  }
  if (constraint.kind === "equal") return values[0]?.text === values[1]?.text ? 0 : undefined;
  const answer = constraint.answer(...values);
  if (typeof answer === "number") return answer;
  return answer === true ? 0 : undefined;
}

export function totalPrice(
  constraints: readonly Constraint[],
  assignment: Assignment,
): number | undefined {
  let total = 0;
  for (const constraint of constraints) {
    const price = priceOf(constraint, assignment);
    if (price === undefined) return undefined;
    total += price;
  }
  return total;
}

/** The least cost of all assignments, or undefined where none will do. */
export function leastPrice(constraints: readonly Constraint[]): number | undefined {
  const variables = [
    ...new Set(constraints.flatMap(({ operands }) => operands.map(variableOf))),
  ].filter((variable) => variable !== undefined);
  const assignment = new Map<Variable, Candidate>();
  let least: number | undefined;
  const extend = (place: number): void => {
    const variable = variables[place];
    if (variable === undefined) {
      const total = totalPrice(constraints, assignment);
      if (total !== undefined && (least === undefined || total < least)) least = total;
      return;
    }
    for (const candidate of variable.candidates) {
      assignment.set(variable, candidate);
      extend(place + 1);
    }
  };
  extend(0);
  return least;
}

/** Dropping any one of the constraints makes the rest solvable, and together they are not. */
export function isMinimalConflict(constraints: readonly Constraint[]): boolean {
  if (leastPrice(constraints) !== undefined) return false;
  return constraints.every(
    (dropped) => leastPrice(constraints.filter((each) => each !== dropped)) !== undefined,
  );
}

const alphabet = "ABCDEF";

/** A permutation of the alphabet, undefined on some letters. */
function randomFunction(random: Random, name: string): LayoutFunction {
  const shift = random.below(alphabet.length);
  const flip = random.below(2) === 1 ? -1 : 1;
  const missing = alphabet[random.below(2 * alphabet.length)];
  return {
    name,
    apply: ({ text }) => {
      if (text === missing) return undefined;
      const moved = (flip * alphabet.indexOf(text) + shift + alphabet.length) % alphabet.length;
      return letter(alphabet[moved] ?? "?");
    },
  };
}

/** A number below 1000 that depends on the texts and the salt alone. */
function mixed(salt: number, values: readonly Candidate[]): number {
  let hash = salt | 0;
  for (const { text } of values) {
    hash = Math.imul(hash ^ text.charCodeAt(0), 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  return (hash >>> 0) % 1000;
}

/** Answers of one random system; few of them, so that constraints share their functions. */
class RandomAnswers {
  readonly #random: Random;
  readonly #functions: readonly LayoutFunction[];
  readonly #salts: readonly number[];
  readonly #tightness: number;

  constructor(random: Random, tightness: number) {
    this.#random = random;
    this.#functions = ["f", "g", "h"].map((name) => randomFunction(random, name));
    this.#salts = [random.bits(), random.bits()];
    this.#tightness = tightness;
  }

  /** Mostly a plain variable; sometimes functions of one, or of a constant where those may be. */
  expression(variables: readonly Variable[], constants: boolean): Expression {
    const random = this.#random;
    let expression: Expression = random.pick(variables);
    if (constants && random.below(6) === 0) {
      expression = constant(letter(random.pick([...alphabet])));
    }
    const depth = Math.max(0, random.below(5) - 2);
    for (let level = 0; level < depth; level++) {
      expression = apply(random.pick(this.#functions), expression);
    }
    return expression;
  }

  relayout(): (source: Candidate, target: Candidate) => number | undefined {
    const salt = this.#random.pick(this.#salts);
    return (source, target) => {
      if (source.text === target.text) return 0;
      const price = mixed(salt, [source, target]);
      return price < this.#tightness * 600 ? undefined : price % 20;
    };
  }

  predicate(arity: number): (...values: readonly Candidate[]) => true | string {
    const salt = this.#random.pick(this.#salts) + arity;
    return (...values) =>
      mixed(salt, values) >= this.#tightness * 1000 || `not ${values.map((v) => v.text).join()}`;
  }

  price(): (...values: readonly Candidate[]) => number {
    const salt = this.#random.pick(this.#salts);
    return (...values) => (mixed(salt, values) % 25) - 5;
  }
}

/**
 * Everything: constraints of every kind with functions in them. Prices: few refusals, so that much is
 * left to weigh. Colours: neighbours must differ, which often only the search sees to be impossible.
 */
export const mixtures = ["everything", "prices", "colours"] as const;

export type Mixture = (typeof mixtures)[number];

interface Proportions {
  readonly letters: string;
  readonly least: number;
  readonly tightness: number;
  readonly constraints: number;
  readonly makers: readonly Maker[];
}

/** Two to six variables of two to five candidates. */
export function randomSystem(random: Random, mixture: Mixture): System {
  const system = new System();
  const { letters: choices, least, tightness, constraints, makers } = proportions[mixture](random);
  const answers = new RandomAnswers(random, tightness);
  const variables = Array.from({ length: least + random.below(7 - least) }, (_, index) => {
    const some = shuffled(random, [...choices]).slice(
      0,
      choices === alphabet ? 2 + random.below(4) : 3,
    );
    return system.variable({
      label: `v${index}`,
      location: unknownLocation,
      candidates: some.map(letter),
    });
  });
  for (let index = 0; index < variables.length * constraints; index++) {
    const origin = stated(`constraint ${index}`, random.below(6) === 0);
    random.pick(makers)({ system, variables, answers, random, origin });
  }
  return system;
}

const proportions: { [M in Mixture]: (random: Random) => Proportions } = {
  everything: (random) => ({
    letters: alphabet,
    least: 2,
    tightness: 0.6 * random.uniform(),
    constraints: 0.7 + random.uniform(),
    makers: [
      statesLink,
      statesEquation,
      statesConversion,
      statesConversion,
      statesConversion,
      statesRequirement,
      statesDistinct,
      statesDistinct,
      statesPrice,
    ],
  }),
  prices: (random) => ({
    letters: alphabet,
    least: 3,
    tightness: 0.3 * random.uniform(),
    constraints: 1 + 2 * random.uniform(),
    makers: [statesPrice, statesPrice, statesPlainConversion, statesPlainConversion],
  }),
  colours: (random) => ({
    letters: alphabet.slice(0, 2 + random.below(2)),
    least: 4,
    tightness: 0,
    constraints: 1.5 + random.uniform(),
    makers: [
      statesDifference,
      statesDifference,
      statesDifference,
      statesDifference,
      statesPlainConversion,
    ],
  }),
};

interface Draft {
  readonly system: System;
  readonly variables: readonly Variable[];
  readonly answers: RandomAnswers;
  readonly random: Random;
  readonly origin: Origin;
}

type Maker = (draft: Draft) => void;

function shuffled<T>(random: Random, items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, key: random.bits() }))
    .sort((left, right) => left.key - right.key)
    .map(({ item }) => item);
}

/** Two or three different variables. */
function distinct({
  variables,
  random,
}: Draft): [Variable, Variable] | [Variable, Variable, Variable] {
  const [first, second, third] = shuffled(random, variables);
  if (first === undefined || second === undefined) throw new Error("two variables are needed");
  return third === undefined || random.below(4) > 0 ? [first, second] : [first, second, third];
}

function statesLink({ system, variables, random, origin }: Draft): void {
  system.equal(random.pick(variables), random.pick(variables), origin);
}

function statesEquation({ system, variables, answers, origin }: Draft): void {
  const left = answers.expression(variables, true);
  system.equal(left, answers.expression(variables, true), origin);
}

function statesConversion({ system, variables, answers, origin }: Draft): void {
  const source = answers.expression(variables, false);
  system.relayout(source, answers.expression(variables, true), answers.relayout(), origin);
}

function statesPlainConversion(draft: Draft): void {
  const [source, target] = distinct(draft);
  draft.system.relayout(source, target, draft.answers.relayout(), draft.origin);
}

function statesRequirement({ system, variables, answers, random, origin }: Draft): void {
  const first = answers.expression(variables, false);
  const second = answers.expression(variables, false);
  if (random.below(2) === 0) system.require([first], answers.predicate(1), origin);
  else system.require([first, second], answers.predicate(2), origin);
}

function statesDistinct(draft: Draft): void {
  const operands = distinct(draft);
  draft.system.require(operands, draft.answers.predicate(operands.length), draft.origin);
}

function statesDifference(draft: Draft): void {
  draft.system.require(distinct(draft), someDiffer, draft.origin);
}

function someDiffer(...values: readonly Candidate[]): true | string {
  return new Set(values.map(({ text }) => text)).size > 1 || "all the same";
}

function statesPrice({ system, variables, answers, random, origin }: Draft): void {
  const first = answers.expression(variables, false);
  const second = answers.expression(variables, false);
  if (random.below(2) === 0) system.cost([first], answers.price(), origin);
  else system.cost([first, second], answers.price(), origin);
}
