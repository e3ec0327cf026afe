/** Builds the solver's system from statements and candidates, and remembers which constraint says what. */
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { apply, constant, System } from "../solver/system.ts";
import type { Candidate, Constraint, Expression, Origin, Variable } from "../solver/system.ts";
import type { LayoutContext } from "../rules/context.ts";
import type { Need, RegisterSlot, Slot, Statement } from "../rules/statements.ts";

export interface StatedSystem {
  readonly system: System;
  readonly variables: readonly Variable[];
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
  const variables = context.slots.map(({ label, location, index }) =>
    system.variable({ label, location, candidates: candidates[index] ?? [] }),
  );
  const statements = new Map<Constraint, Statement>();
  const builder = new Builder(context, system, variables, seed);
  for (const statement of context.statements)
    if (!without.has(statement)) statements.set(builder.state(statement), statement);
  return { system, variables, statements };
}

class Builder {
  readonly #context: LayoutContext;
  readonly #system: System;
  readonly #variables: readonly Variable[];
  readonly #seed: number | undefined;

  constructor(
    context: LayoutContext,
    system: System,
    variables: readonly Variable[],
    seed: number | undefined,
  ) {
    this.#seed = seed;
    this.#context = context;
    this.#system = system;
    this.#variables = variables;
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
          this.#variable(statement.slot),
          constant(statement.layout),
          origin,
        );
      case "require":
        return this.#system.require(this.#operands(statement.slots), statement.answer, origin);
      case "cost": {
        const [first, second] = this.#operands(statement.slots);
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

  #variable(slot: Slot): Variable {
    const variable = this.#variables[slot.index];
    if (variable === undefined) throw new Error(`slot ${slot.index} is unknown`);
    return variable;
  }

  #registers(slot: RegisterSlot): Variable<RegisterLayout> {
    return this.#variable(slot) as Variable<RegisterLayout>;
  }

  #needed(need: Need): Expression<RegisterLayout> {
    if (need.kind === "fixed") return constant(need.layout);
    const variable = this.#registers(need.slot);
    return need.kind === "slot" ? variable : apply(need.function, variable);
  }

  #operands(slots: readonly Slot[]): readonly [Variable] | readonly [Variable, Variable] {
    const [first, second] = slots.map((slot) => this.#variable(slot));
    if (first === undefined) throw new Error("a statement speaks of no slot");
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
