/**
 * From a failed reduction or search back to the constraints that together fail: a conflict, though
 * perhaps not yet a minimal one.
 *
 *   x = y = z    x pinned to A    z pinned to B
 *
 *   the group {x, y, z} is empty      A went because of z = B, B because of x = A
 *   their variables are x and z       joined by the path  x = y, y = z
 *   conflict                          x = A, z = B, x = y, y = z
 *
 * A candidate that a clause removed goes on the account of that clause and of whatever removed, before
 * that, each tuple that would have supported it.
 */
import type { Clause, Network } from "./network.ts";
import { linked, variablesOf } from "./network.ts";
import type { Reduction } from "./arc-consistency.ts";
import type { Constraint, Variable } from "./system.ts";

/** What is known to fail: groups left without a candidate, or clauses that the search found at odds. */
export interface Failure {
  readonly groups: readonly number[];
  readonly clauses: readonly Clause[];
}

export function conflictBehind(reduction: Reduction, failure: Failure): Constraint[] {
  const blame = new Blame(reduction);
  for (const group of failure.groups) blame.addRemovalsOf(group);
  for (const clause of failure.clauses) {
    blame.addClause(clause);
    for (const group of clause.scope) blame.addRemovalsOf(group);
  }
  return blame.finish();
}

class Blame {
  readonly #reduction: Reduction;
  readonly #network: Network;
  readonly #constraints = new Set<Constraint>();
  /** Variables whose own candidates or clauses take part, by group. */
  readonly #touched = new Map<number, Set<Variable>>();
  readonly #visited = new Set<string>();
  readonly #pending: (readonly [number, number])[] = [];

  constructor(reduction: Reduction) {
    this.#reduction = reduction;
    this.#network = reduction.network;
  }

  addRemovalsOf(group: number): void {
    const universe = this.#network.groups[group]?.universe ?? [];
    for (let position = 0; position < universe.length; position++) this.#visit(group, position);
  }

  addClause(clause: Clause): void {
    this.#constraints.add(clause.constraint);
    for (const variable of variablesOf(clause.constraint)) this.#touch(variable);
  }

  finish(): Constraint[] {
    for (let removed = this.#pending.pop(); removed; removed = this.#pending.pop()) {
      const [group, position] = removed;
      const cause = this.#reduction.removal(group, position)?.cause;
      if (cause === undefined) continue;
      if ("label" in cause) {
        this.#touch(cause);
      } else {
        this.addClause(cause);
        this.#visitLostSupports(cause, group, position);
      }
    }
    this.#addPaths();
    return [...this.#constraints].sort((left, right) => left.index - right.index);
  }

  #touch(variable: Variable): void {
    const group = this.#network.groupOf.get(variable) ?? -1;
    const touched = this.#touched.get(group);
    if (touched === undefined) this.#touched.set(group, new Set([variable]));
    else touched.add(variable);
  }

  #visit(group: number, position: number): void {
    const key = `${group},${position}`;
    if (this.#visited.has(key)) return;
    this.#visited.add(key);
    if (this.#reduction.removal(group, position) !== undefined) {
      this.#pending.push([group, position]);
    }
  }

  #visitLostSupports(clause: Clause, group: number, position: number): void {
    const universes = clause.scope.map((each) => this.#network.groups[each]?.universe ?? []);
    const tuple: number[] = [];
    const extend = (place: number): void => {
      if (place === clause.scope.length) {
        const values = tuple.map((each, where) => universes[where]?.[each] ?? -1);
        if (clause.relation.evaluate(values) < Infinity) this.#visitEarliest(clause, tuple);
        return;
      }
      const fixed = clause.scope[place] === group;
      const choices = universes[place]?.length ?? 0;
      for (let choice = fixed ? position : 0; choice < (fixed ? position + 1 : choices); choice++) {
        tuple[place] = choice;
        extend(place + 1);
      }
    };
    extend(0);
  }

  /** One of a tuple's candidates being gone is enough to lose the tuple: the first that went. */
  #visitEarliest(clause: Clause, tuple: readonly number[]): void {
    let earliest: readonly [number, number] | undefined;
    let earliestTime = Infinity;
    tuple.forEach((position, place) => {
      const group = clause.scope[place] ?? -1;
      const time = this.#reduction.removal(group, position)?.time ?? Infinity;
      if (time < earliestTime) {
        earliest = [group, position];
        earliestTime = time;
      }
    });
    if (earliest !== undefined) this.#visit(...earliest);
  }

  /** The equalities that join the variables of each group that take part, along shortest paths. */
  #addPaths(): void {
    const neighbours = new Map<Variable, { other: Variable; link: Constraint }[]>();
    for (const link of this.#network.links) {
      const [left, right] = linked(link) ?? [];
      if (left === undefined || right === undefined) continue;
      for (const [from, other] of [
        [left, right],
        [right, left],
      ] as const) {
        const known = neighbours.get(from);
        if (known === undefined) neighbours.set(from, [{ other, link }]);
        else known.push({ other, link });
      }
    }
    for (const touched of this.#touched.values()) {
      const ordered = [...touched].sort((left, right) => left.index - right.index);
      const [start, ...others] = ordered;
      if (start === undefined || others.length === 0) continue;
      const arrivals = new Map<Variable, { from: Variable; link: Constraint } | undefined>();
      arrivals.set(start, undefined);
      for (const from of arrivals.keys()) {
        for (const { other, link } of neighbours.get(from) ?? []) {
          if (!arrivals.has(other)) arrivals.set(other, { from, link });
        }
      }
      for (const target of others) {
        for (let step = arrivals.get(target); step; step = arrivals.get(step.from)) {
          this.#constraints.add(step.link);
        }
      }
    }
  }
}
