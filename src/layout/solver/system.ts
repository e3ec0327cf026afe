/**
 * A system of layout constraints: what the rules state and the solver solves. Nothing here knows what
 * an op or a layout is. A candidate is any object whose text says all about it: two candidates are the
 * same exactly when their texts are.
 *
 *   const x = system.variable({ label: "x", location: line3, candidates: [rows, columns, flat] });
 *   const y = system.variable({ label: "y", location: line4, candidates: [flat, rows] });
 *   system.equal(apply(transpose, x), y, { location: line4, message: "y is x transposed" });
 *   system.relayout(x, z, bytesMoved, { location: line5, message: "z reads x" });
 *   system.require([z], isCoalesced, { location: line5, message: "z is stored in 16-byte pieces" });
 *   system.cost([z], registers, { location: line5, message: "registers of z" });
 *
 *   kind      operands  holds when                                       adds
 *   equal     2         both sides are defined and the same candidate    nothing
 *   relayout  2         the cost is defined                              that cost
 *   require   1 to 3    the predicate says true                          nothing
 *   cost      1 to 2    the cost is finite                               that cost
 *
 * An operand is a variable, a constant, or a function applied to an operand; a constraint whose operand
 * is undefined, because a function is not defined there, does not hold. The sum of what is added is
 * least in a solution.
 *
 * Functions, predicates and costs are asked once for each tuple of candidate texts, and remembered by
 * their identity: state the same function object in many constraints rather than a new closure in
 * each. They are asked about any candidates of their operands, also such as other constraints exclude,
 * and so answer for all of them.
 */
import type { Location } from "../../support/location.ts";

export interface Candidate {
  readonly text: string;
}

/** A partial map on candidates, such as the layout of a tile's transpose. */
export interface LayoutFunction<
  From extends Candidate = Candidate,
  To extends Candidate = Candidate,
> {
  readonly name: string;
  apply(candidate: From): To | undefined;
}

export interface Variable<C extends Candidate = Candidate> {
  readonly kind: "variable";
  /** Position among the variables of its system. */
  readonly index: number;
  readonly label: string;
  readonly location: Location;
  /** The most welcome first: between solutions of equal cost earlier candidates win. */
  readonly candidates: readonly C[];
}

export interface Constant<C extends Candidate = Candidate> {
  readonly kind: "constant";
  readonly value: C;
}

export interface Application<C extends Candidate = Candidate> {
  readonly kind: "application";
  readonly function: LayoutFunction<Candidate, C>;
  readonly argument: Expression;
}

export type Expression<C extends Candidate = Candidate> =
  | Variable<C>
  | Constant<C>
  | Application<C>;

/** Who states a constraint and what it says, in words for a report. */
export interface Origin {
  readonly location: Location;
  readonly message: string;
  /** The user asked for it by name, rather than an op needing it. */
  readonly pinned?: boolean;
}

type Answer<Result> = (...values: readonly Candidate[]) => Result;

export type Constraint = {
  /** Position among the constraints of its system. */
  readonly index: number;
  readonly origin: Origin;
  readonly operands: readonly Expression[];
} & (
  | { readonly kind: "equal" }
  | { readonly kind: "relayout"; readonly answer: Answer<number | undefined> }
  | { readonly kind: "require"; readonly answer: Answer<true | string> }
  | { readonly kind: "cost"; readonly answer: Answer<number> }
);

type OneOrTwo = readonly [Expression] | readonly [Expression, Expression];
type OneToThree = OneOrTwo | readonly [Expression, Expression, Expression];
type ValueOf<E> = E extends Expression<infer C> ? C : never;
type ValuesOf<Operands extends readonly Expression[]> = {
  [Position in keyof Operands]: ValueOf<Operands[Position]>;
};

export function constant<C extends Candidate>(value: C): Constant<C> {
  return { kind: "constant", value };
}

export function apply<From extends Candidate, To extends Candidate>(
  layoutFunction: LayoutFunction<From, To>,
  argument: Expression<From>,
): Application<To> {
  return { kind: "application", function: layoutFunction, argument };
}

/** The one variable an expression reads, or undefined where it is made of a constant. */
export function variableOf(expression: Expression): Variable | undefined {
  let inner = expression;
  while (inner.kind === "application") inner = inner.argument;
  return inner.kind === "variable" ? inner : undefined;
}

export class System {
  readonly #variables: Variable[] = [];
  readonly #constraints: Constraint[] = [];

  get variables(): readonly Variable[] {
    return this.#variables;
  }

  get constraints(): readonly Constraint[] {
    return this.#constraints;
  }

  /** Candidates named twice count once. There is at least one, or nothing could be said of a conflict. */
  variable<C extends Candidate>(details: {
    readonly label: string;
    readonly location: Location;
    readonly candidates: readonly C[];
  }): Variable<C> {
    const byText = new Map<string, C>();
    for (const candidate of details.candidates) {
      if (!byText.has(candidate.text)) byText.set(candidate.text, candidate);
    }
    if (byText.size === 0) throw new Error(`variable ${details.label} has no candidates`);
    const variable: Variable<C> = {
      kind: "variable",
      index: this.#variables.length,
      label: details.label,
      location: details.location,
      candidates: [...byText.values()],
    };
    this.#variables.push(variable);
    return variable;
  }

  equal<C extends Candidate>(
    left: Expression<C>,
    right: Expression<C>,
    origin: Origin,
  ): Constraint {
    return this.#add({ kind: "equal", ...this.#stated([left, right], origin) });
  }

  /** The cost is undefined where no conversion is possible, and 0 where none is needed. */
  relayout<Source extends Candidate, Target extends Candidate>(
    source: Expression<Source>,
    target: Expression<Target>,
    cost: (source: Source, target: Target) => number | undefined,
    origin: Origin,
  ): Constraint {
    const answer = cost as Answer<number | undefined>;
    return this.#add({ kind: "relayout", answer, ...this.#stated([source, target], origin) });
  }

  /** The predicate says true, or in words why the candidates will not do. */
  require<const Operands extends OneToThree>(
    operands: Operands,
    predicate: (...values: ValuesOf<Operands>) => true | string,
    origin: Origin,
  ): Constraint {
    const answer = predicate as Answer<true | string>;
    return this.#add({ kind: "require", answer, ...this.#stated(operands, origin) });
  }

  /** A preference: negative costs attract. */
  cost<const Operands extends OneOrTwo>(
    operands: Operands,
    cost: (...values: ValuesOf<Operands>) => number,
    origin: Origin,
  ): Constraint {
    const answer = cost as Answer<number>;
    return this.#add({ kind: "cost", answer, ...this.#stated(operands, origin) });
  }

  #stated(
    operands: readonly Expression[],
    origin: Origin,
  ): Pick<Constraint, "index" | "operands" | "origin"> {
    for (const operand of operands) {
      const variable = variableOf(operand);
      if (variable !== undefined && this.#variables[variable.index] !== variable) {
        throw new Error(`variable ${variable.label} belongs to another system`);
      }
    }
    return { index: this.#constraints.length, operands, origin };
  }

  #add(constraint: Constraint): Constraint {
    this.#constraints.push(constraint);
    return constraint;
  }
}
