/**
 * Solving a system: the assignment of least cost, or a minimal conflict.
 *
 *   x in {rows, flat}   y in {flat, rows}     relayout(x, y): 8 unless equal     cost(y): flat 3, rows 0
 *
 *   x     y      cost
 *   rows  flat   8 + 3
 *   rows  rows   0 + 0     <- the solution
 *   flat  flat   0 + 3
 *   flat  rows   8 + 0
 *
 *   and with  y pinned to flat,  x required to be rows,  x = y  stated:  a conflict of those three.
 *
 * The same system always gives the same result. Between assignments of equal cost, each variable in
 * the order in which the search decides them takes its earliest candidate.
 */
import type { Statistics } from "./attempt.ts";
import { attempt } from "./attempt.ts";
import type { Conflict } from "./minimal-conflict.ts";
import { minimalConflict } from "./minimal-conflict.ts";
import { Memory } from "./relation.ts";
import type { SearchLimits } from "./search.ts";
import type { Candidate, System, Variable } from "./system.ts";

export type Solution = { readonly statistics: Statistics } & (
  | {
      readonly status: "solved";
      readonly assignment: ReadonlyMap<Variable, Candidate>;
      readonly cost: number;
      /** False where the fuel ran out: the best found, and perhaps not the best there is. */
      readonly optimal: boolean;
    }
  | { readonly status: "unsatisfiable"; readonly conflict: Conflict }
  /** The fuel ran out before a solution, or the lack of one, was found. */
  | { readonly status: "undecided" }
);

/** A table takes at most 512 KiB; the fuel of one entangled part lasts some tenths of a second. */
const defaultLimits: SearchLimits = { tableLimit: 2 ** 16, fuel: 2 ** 26 };

export function solve(system: System, options: Partial<SearchLimits> = {}): Solution {
  const limits = { ...defaultLimits, ...options };
  const memory = new Memory();
  const { variables, constraints } = system;
  const outcome = attempt(variables, constraints, memory, { ...limits, goal: "least cost" });
  const { statistics } = outcome;
  if (outcome.status === "undecided") return { status: "undecided", statistics };
  if (outcome.status === "conflict") {
    const conflict = minimalConflict(outcome.constraints, memory, limits);
    return { status: "unsatisfiable", conflict, statistics };
  }
  const { assignment, cost, optimal } = outcome;
  return { status: "solved", assignment, cost, optimal, statistics };
}

/** A variable's value in a solution, with the type of its candidates. */
export function chosen<C extends Candidate>(
  assignment: ReadonlyMap<Variable, Candidate>,
  variable: Variable<C>,
): C {
  const text = assignment.get(variable)?.text;
  const candidate = variable.candidates.find((each) => each.text === text);
  if (candidate === undefined) throw new Error(`${variable.label} is not in the solution`);
  return candidate;
}
