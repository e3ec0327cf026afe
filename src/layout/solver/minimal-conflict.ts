/**
 * Minimal conflicts: constraints that have no solution together, while dropping any one of them leaves
 * the others solvable. From constraints known to conflict, runs of them are dropped as long as the
 * rest still conflicts; what conflicts is then replaced by the smaller set its failure is blamed on.
 *
 *   conflict        1 2 3 4 5 6 7 8     only 3 and 7 matter
 *   without 1 2 3 4 solvable            half was too much: without 1 2
 *   without 1 2     still a conflict    3 4 5 6 7 8, or less
 *   without 3 4     solvable            without 3
 *   without 3       solvable            3 stays
 *   ...
 *
 * Plumbing is dropped first and what the user pinned last, so that where several minimal conflicts
 * exist the one found speaks of what the user wrote.
 */
import type { AttemptOptions } from "./attempt.ts";
import { attempt } from "./attempt.ts";
import { linked, variablesOf } from "./network.ts";
import type { Memory } from "./relation.ts";
import type { SearchLimits } from "./search.ts";
import type { Candidate, Constraint, Expression, Origin, Variable } from "./system.ts";

/** What the others would agree on if it were not for one member of a conflict. */
export interface Witness {
  /** A solution of the other members, for the variables of all. */
  readonly assignment: ReadonlyMap<Variable, Candidate>;
  /** Why a requirement refuses that solution, in its own words. */
  readonly reason: string | undefined;
}

export interface Conflict {
  /** As stated, but what the user pinned last. */
  readonly constraints: readonly Constraint[];
  /** The two origins that say most: pins, else what restricts single variables, else the rest. */
  readonly primary: readonly [Origin, Origin];
  readonly witnesses: ReadonlyMap<Constraint, Witness>;
  /** False where the fuel did not suffice to see whether a member can be dropped. */
  readonly minimal: boolean;
}

export function minimalConflict(
  conflicting: readonly Constraint[],
  memory: Memory,
  limits: SearchLimits,
): Conflict {
  const options: AttemptOptions = { ...limits, goal: "any" };
  const variables = distinctVariables(conflicting);
  const witnesses = new Map<Constraint, Witness>();
  const kept: Constraint[] = [];
  let open = [...conflicting].sort(
    (left, right) => weight(left) - weight(right) || right.index - left.index,
  );
  let minimal = true;
  let run = Math.ceil(open.length / 2);
  while (open.length > 0) {
    run = Math.min(run, open.length);
    const others = [...kept, ...open.slice(run)];
    const trial = attempt(variables, others, memory, options);
    if (trial.status === "conflict") {
      const left = new Set(trial.constraints);
      open = open.slice(run).filter((constraint) => left.has(constraint));
      run *= 2;
    } else if (run > 1) {
      run = Math.ceil(run / 2);
    } else {
      const [needed] = open.splice(0, 1);
      if (needed !== undefined) kept.push(needed);
      if (needed !== undefined && trial.status === "found") {
        const { assignment } = trial;
        witnesses.set(needed, { assignment, reason: refusal(needed, assignment) });
      } else {
        minimal = false;
      }
    }
  }
  const constraints = kept.sort(
    (left, right) => pinning(left) - pinning(right) || left.index - right.index,
  );
  return { constraints, primary: primaryOrigins(constraints), witnesses, minimal };
}

function distinctVariables(constraints: readonly Constraint[]): Variable[] {
  const variables = new Set(constraints.flatMap(variablesOf));
  return [...variables].sort((left, right) => left.index - right.index);
}

function pinning({ origin }: Constraint): number {
  return origin.pinned === true ? 1 : 0;
}

/** How much a constraint tells a reader: equal variables little, one that names a layout much. */
function weight(constraint: Constraint): number {
  if (constraint.origin.pinned === true) return 3;
  if (linked(constraint) !== undefined) return 0;
  return new Set(variablesOf(constraint)).size === 1 ? 2 : 1;
}

function primaryOrigins(constraints: readonly Constraint[]): readonly [Origin, Origin] {
  const ranked = [...constraints].sort(
    (left, right) => weight(right) - weight(left) || left.index - right.index,
  );
  const [first, next] = ranked;
  if (first === undefined) throw new Error("a conflict has at least one constraint");
  if (next === undefined) return [first.origin, declarationOf(first)];
  const elsewhere = ranked.find(
    (each) => weight(each) === weight(next) && !samePlace(each.origin, first.origin),
  );
  const second = elsewhere ?? next;
  return first.index < second.index ? [first.origin, second.origin] : [second.origin, first.origin];
}

function samePlace(left: Origin, right: Origin): boolean {
  const here = left.location.position;
  const there = right.location.position;
  return here?.file === there?.file && here?.line === there?.line;
}

/** A constraint that fails alone is at odds with the candidates of what it reads. */
function declarationOf(constraint: Constraint): Origin {
  const [variable] = variablesOf(constraint);
  if (variable === undefined) return constraint.origin;
  return { location: variable.location, message: variable.label };
}

function refusal(
  constraint: Constraint,
  assignment: ReadonlyMap<Variable, Candidate>,
): string | undefined {
  if (constraint.kind !== "require") return undefined;
  const values: Candidate[] = [];
  for (const operand of constraint.operands) {
    const value = valueOf(operand, assignment);
    if (value === undefined) return undefined;
    values.push(value);
  }
  const answer = constraint.answer(...values);
  return answer === true ? undefined : answer;
}

function valueOf(
  expression: Expression,
  assignment: ReadonlyMap<Variable, Candidate>,
): Candidate | undefined {
  if (expression.kind === "constant") return expression.value;
  if (expression.kind === "variable") return assignment.get(expression);
  const argument = valueOf(expression.argument, assignment);
  return argument === undefined ? undefined : expression.function.apply(argument);
}
