/**
 * Constraints as numbers. Candidates become small integers by their texts, and a constraint becomes a
 * relation: a cost for each tuple of integers, Infinity where it does not hold. Constraints that say
 * the same of different variables share one relation, and relations over the same domains share one
 * table, so that ten thousand like edges ask a cost function once for each pair of candidates:
 *
 *   relayout(x, y, bytes)   relayout(y, z, bytes)   with x, y, z in { flat, rows }
 *
 *             flat  rows
 *     flat      0    64        four questions, one table of four entries, two users
 *     rows     64     0
 */
import type { Candidate, Constraint, Expression, LayoutFunction } from "./system.ts";

type AnswerFunction = (...values: readonly Candidate[]) => number | undefined | true | string;

/** An operand is a constant or the value at a place of the relation's scope, after some functions. */
interface Operand {
  /** Position in the scope, or -1 for a constant. */
  readonly position: number;
  readonly constant: number;
  /** Innermost first. */
  readonly functions: readonly FunctionMemory[];
}

/** What a function made of each value; -1 where it is undefined. */
interface FunctionMemory {
  readonly id: number;
  readonly function: LayoutFunction;
  readonly results: Map<number, number>;
}

/** What a cost or predicate answered for each tuple, as a cost. */
interface AnswerMemory {
  readonly id: number;
  readonly answer: AnswerFunction;
  readonly prefixes: Map<number, number>;
  readonly costs: Map<number, number>;
}

export interface Relation {
  readonly id: number;
  readonly arity: number;
  /** The cost of one value for each place of the scope. */
  readonly evaluate: (values: readonly number[]) => number;
}

/** An ordered list of values that many variables may share. */
export interface Domain {
  readonly id: number;
  readonly values: readonly number[];
}

/** Costs of a relation over domains, the last place varying fastest. */
export interface Table {
  readonly data: Float64Array;
  /** Some tuple does not hold. */
  readonly hard: boolean;
}

/** Two numbers below 2^26 as one exact double. */
const packing = 2 ** 26;

function remembered<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

export class Memory {
  readonly #candidates: Candidate[] = [];
  readonly #values = new Map<string, number>();
  readonly #functions = new Map<LayoutFunction, FunctionMemory>();
  readonly #answers = new Map<AnswerFunction, AnswerMemory[]>();
  readonly #relations = new Map<string, Relation>();
  readonly #domains = new Map<string, Domain>();
  readonly #tables = new Map<string, Table>();
  #questions = 0;
  #answerCount = 0;

  /** How often a function, predicate or cost was asked. */
  get questions(): number {
    return this.#questions;
  }

  value(candidate: Candidate): number {
    return remembered(this.#values, candidate.text, () => this.#candidates.push(candidate) - 1);
  }

  candidate(value: number): Candidate {
    const candidate = this.#candidates[value];
    if (candidate === undefined) throw new Error(`no candidate has the value ${value}`);
    return candidate;
  }

  domain(values: readonly number[]): Domain {
    return remembered(this.#domains, values.join(), () => ({ id: this.#domains.size, values }));
  }

  /** The relation a constraint states; positions[i] is the place in the scope of operand i's variable. */
  relation(constraint: Constraint, positions: readonly number[], arity: number): Relation {
    const operands: Operand[] = [];
    constraint.operands.forEach((expression, place) =>
      operands.push(this.#operand(expression, positions[place] ?? -1)),
    );
    const answer =
      constraint.kind === "equal"
        ? undefined
        : this.#answerMemory(constraint.answer, operands.length);
    const shapes = operands.map(
      ({ position, constant, functions }) =>
        `${functions.map(({ id }) => id).join(".")}${position < 0 ? `=${constant}` : `@${position}`}`,
    );
    return remembered(this.#relations, `${answer?.id ?? "equal"} ${shapes.join(" ")}`, () => ({
      id: this.#relations.size,
      arity,
      evaluate: (values) => this.#evaluate(operands, answer, values),
    }));
  }

  table(relation: Relation, domains: readonly Domain[]): Table {
    let key = `${relation.id}`;
    for (const domain of domains) key += `,${domain.id}`;
    return remembered(this.#tables, key, () => buildTable(relation, domains));
  }

  #operand(expression: Expression, position: number): Operand {
    const functions: FunctionMemory[] = [];
    let inner = expression;
    while (inner.kind === "application") {
      const layoutFunction = inner.function;
      const make = (): FunctionMemory => ({
        id: this.#functions.size,
        function: layoutFunction,
        results: new Map(),
      });
      functions.push(remembered(this.#functions, layoutFunction, make));
      inner = inner.argument;
    }
    functions.reverse();
    const constant = inner.kind === "constant" ? this.value(inner.value) : -1;
    return { position: inner.kind === "constant" ? -1 : position, constant, functions };
  }

  #answerMemory(answer: AnswerFunction, arity: number): AnswerMemory {
    const byArity = remembered(this.#answers, answer, () => []);
    return (byArity[arity] ??= {
      id: this.#answerCount++,
      answer,
      prefixes: new Map(),
      costs: new Map(),
    });
  }

  #evaluate(
    operands: readonly Operand[],
    answer: AnswerMemory | undefined,
    scope: readonly number[],
  ): number {
    const values: number[] = [];
    for (let place = 0; place < operands.length; place++) {
      const { position, constant, functions } = operands[place] as Operand;
      let value = position < 0 ? constant : (scope[position] as number);
      for (let step = 0; step < functions.length; step++) {
        value = this.#apply(functions[step] as FunctionMemory, value);
        if (value < 0) return Infinity;
      }
      values.push(value);
    }
    if (answer === undefined) return values[0] === values[1] ? 0 : Infinity;
    return this.#ask(answer, values);
  }

  #apply(step: FunctionMemory, value: number): number {
    const known = step.results.get(value);
    if (known !== undefined) return known;
    this.#questions++;
    const result = step.function.apply(this.candidate(value));
    const found = result === undefined ? -1 : this.value(result);
    step.results.set(value, found);
    return found;
  }

  #ask(memory: AnswerMemory, values: readonly number[]): number {
    let key = values[0] as number;
    for (let place = 1; place < values.length; place++) {
      const prefix =
        place === 1 ? key : remembered(memory.prefixes, key, () => memory.prefixes.size);
      key = prefix * packing + (values[place] as number);
    }
    const known = memory.costs.get(key);
    if (known !== undefined) return known;
    this.#questions++;
    const cost = costOf(memory.answer(...values.map((value) => this.candidate(value))));
    memory.costs.set(key, cost);
    return cost;
  }
}

function costOf(answer: number | undefined | true | string): number {
  if (typeof answer !== "number") return answer === true ? 0 : Infinity;
  if (Number.isNaN(answer) || answer === -Infinity) throw new Error(`a cost is ${answer}`);
  return answer;
}

function buildTable(relation: Relation, domains: readonly Domain[]): Table {
  const values: number[] = [];
  const digits: number[] = [];
  let size = 1;
  for (let place = 0; place < domains.length; place++) {
    const { values: choices } = domains[place] as Domain;
    size *= choices.length;
    values.push(choices[0] ?? -1);
    digits.push(0);
  }
  const data = new Float64Array(size);
  let hard = false;
  for (let entry = 0; entry < size; entry++) {
    const cost = relation.evaluate(values);
    data[entry] = cost;
    hard ||= cost === Infinity;
    for (let place = domains.length - 1; place >= 0; place--) {
      const choices = (domains[place] as Domain).values;
      const digit = ((digits[place] as number) + 1) % choices.length;
      digits[place] = digit;
      values[place] = choices[digit] as number;
      if (digit > 0) break;
    }
  }
  return { data, hard };
}
