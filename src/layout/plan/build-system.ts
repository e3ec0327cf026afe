/** Builds the solver's system from statements and candidates, and remembers which constraint says what. */
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { apply, constant, System } from "../solver/system.ts";
import type { Candidate, Constraint, Expression, Origin, Variable } from "../solver/system.ts";
import type { LayoutContext } from "../rules/context.ts";
import type { Need, RegisterVariable, LayoutVariable, Statement } from "../rules/statements.ts";

export interface StatedSystem {
  readonly system: System;
  readonly solverVariables: readonly Variable[];
  readonly statements: ReadonlyMap<Constraint, Statement>;
}

export interface SystemOptions {
  /** Statements that are left out. */
  readonly without?: ReadonlySet<Statement>;
  /** Draws costs at random, so that the cheapest solution is any of those that are possible. */
  readonly seed?: number | undefined;
}

/** The system of all statements but the ones left out. */
export function buildSystem(
  context: LayoutContext,
  candidates: readonly (readonly Candidate[])[],
  { without = new Set(), seed }: SystemOptions = {},
): StatedSystem {
  const system = new System();
  const solverVariables = context.variables.map(({ label, location, index }) =>
    system.variable({ label, location, candidates: candidates[index] ?? [] }),
  );
  const statements = new Map<Constraint, Statement>();
  const builder = new Builder(context, system, solverVariables, seed);
  for (const statement of context.statements)
    if (!without.has(statement)) statements.set(builder.state(statement), statement);
  return { system, solverVariables, statements };
}

class Builder {
  readonly #context: LayoutContext;
  readonly #system: System;
  readonly #solverVariables: readonly Variable[];
  readonly #seed: number | undefined;

  constructor(
    context: LayoutContext,
    system: System,
    solverVariables: readonly Variable[],
    seed: number | undefined,
  ) {
    this.#seed = seed;
    this.#context = context;
    this.#system = system;
    this.#solverVariables = solverVariables;
  }

  state(statement: Statement): Constraint {
    const { op, message, pinned } = statement.reason;
    const origin: Origin = {
      location: op.location,
      message,
      ...(pinned !== undefined && { pinned }),
    };
    switch (statement.kind) {
      case "convert": {
        const { source, need, weight, value } = statement;
        const cost = this.#context.conversion(value.type, weight);
        const [from, to] = [this.#registers(source), this.#needed(need)];
        return this.#system.relayout(from, to, this.#drawn(cost), origin);
      }
      case "image": {
        const image = apply(statement.function, this.#registers(statement.source));
        return this.#system.equal(image, this.#registers(statement.result), origin);
      }
      case "pin":
        return this.#system.equal(
          this.#solverVariable(statement.variable),
          constant(statement.layout),
          origin,
        );
      case "require":
        return this.#system.require(this.#operands(statement.variables), statement.answer, origin);
      case "cost": {
        const [first, second] = this.#operands(statement.variables);
        const operands = second === undefined ? ([first] as const) : ([first, second] as const);
        return this.#system.cost(operands, this.#drawn(statement.answer), origin);
      }
    }
  }

  /** The costs, or others in their place that depend on the seed and the candidates alone. */
  #drawn<C extends readonly Candidate[], Cost extends number | undefined>(
    cost: (...layouts: C) => Cost,
  ): (...layouts: C) => Cost | number {
    const seed = this.#seed;
    if (seed === undefined) return cost;
    const own = seed + this.#system.constraints.length;
    return (...layouts) => {
      const known = cost(...layouts);
      return known === undefined || known === 0 ? known : drawnCost(own, layouts);
    };
  }

  #solverVariable(variable: LayoutVariable): Variable {
    const solverVariable = this.#solverVariables[variable.index];
    if (solverVariable === undefined) throw new Error(`variable ${variable.index} is unknown`);
    return solverVariable;
  }

  #registers(variable: RegisterVariable): Variable<RegisterLayout> {
    return this.#solverVariable(variable) as Variable<RegisterLayout>;
  }

  #needed(need: Need): Expression<RegisterLayout> {
    if (need.kind === "fixed") return constant(need.layout);
    const solverVariable = this.#registers(need.variable);
    return need.kind === "variable" ? solverVariable : apply(need.function, solverVariable);
  }

  #operands(
    variables: readonly LayoutVariable[],
  ): readonly [Variable] | readonly [Variable, Variable] {
    const [first, second] = variables.map((variable) => this.#solverVariable(variable));
    if (first === undefined) throw new Error("a statement speaks of no variable");
    return second === undefined ? [first] : [first, second];
  }
}

const highestDrawn = 100;

/** A number that looks random and is the same for the same layouts. */
function drawnCost(seed: number, layouts: readonly Candidate[]): number {
  let hash = seed | 0;
  for (const letter of layouts.map(({ text }) => text).join(" to "))
    hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 0x01000193);
  return 1 + (((hash ^ (hash >>> 15)) >>> 0) % highestDrawn);
}
