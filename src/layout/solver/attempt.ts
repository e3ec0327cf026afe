/**
 * One attempt at a set of constraints: build the network, reduce it, search what is left. The result
 * is an assignment, or constraints among those given that already conflict.
 *
 * An attempt asks either for the least cost or, when a conflict is made smaller, only whether there is
 * any solution; then prices do not matter, and what always holds is left out of the search.
 */
import { conflictBehind } from "./conflict-analysis.ts";
import type { Problem } from "./variable-elimination.ts";
import type { Factor } from "./factors.ts";
import type { Clause, Network } from "./network.ts";
import { buildNetwork } from "./network.ts";
import { Reduction } from "./arc-consistency.ts";
import type { Memory } from "./relation.ts";
import type { SearchLimits } from "./search.ts";
import { search } from "./search.ts";
import type { Candidate, Constraint, Variable } from "./system.ts";

/** What the solver did, for benchmarks and reports. */
export interface Statistics {
  readonly variables: number;
  readonly constraints: number;
  /** Groups of variables that plain equalities make one. */
  readonly groups: number;
  /** Candidates that the reduction removed. */
  readonly removed: number;
  /** Times a function, predicate or cost was asked, over all attempts so far. */
  readonly questions: number;
  readonly largestTable: number;
  /** Candidates tried where elimination alone was not enough. */
  readonly branches: number;
}

export type Attempt = { readonly statistics: Statistics } & (
  | {
      readonly status: "found";
      readonly assignment: ReadonlyMap<Variable, Candidate>;
      readonly cost: number;
      readonly optimal: boolean;
    }
  | { readonly status: "conflict"; readonly constraints: readonly Constraint[] }
  | { readonly status: "undecided" }
);

export interface AttemptOptions extends SearchLimits {
  readonly goal: "least cost" | "any";
}

export function attempt(
  variables: readonly Variable[],
  constraints: readonly Constraint[],
  memory: Memory,
  options: AttemptOptions,
): Attempt {
  const network = buildNetwork(variables, constraints, memory);
  const reduction = new Reduction(network, memory);
  const statistics = (largestTable: number, branches: number): Statistics => ({
    variables: variables.length,
    constraints: constraints.length,
    groups: network.groups.length,
    removed: reduction.removed,
    questions: memory.questions,
    largestTable,
    branches,
  });
  const { wipedGroup, falseClause } = reduction;
  if (wipedGroup !== undefined || falseClause !== undefined) {
    const clauses = falseClause === undefined ? [] : [falseClause];
    const groups = wipedGroup === undefined ? [] : [wipedGroup];
    const conflict = conflictBehind(reduction, { groups, clauses });
    return { status: "conflict", constraints: conflict, statistics: statistics(0, 0) };
  }
  const domains = network.groups.map((_, group) => reduction.domain(group));
  const sizes = domains.map(({ values }) => values.length);
  const problem = buildProblem(network, reduction, memory, options.goal);
  const result = search(problem, sizes, options);
  const counts = statistics(result.largestTable, result.branches);
  if (result.choice !== undefined) {
    const values = result.choice.map((choice, group) => domains[group]?.values[choice] ?? -1);
    const assignment = assign(variables, network, values, memory);
    const cost = totalCost(network, values);
    return { status: "found", assignment, cost, optimal: result.complete, statistics: counts };
  }
  if (!result.complete) return { status: "undecided", statistics: counts };
  const conflict = conflictBehind(reduction, { groups: [], clauses: result.culprits });
  return { status: "conflict", constraints: conflict, statistics: counts };
}

/** The clauses that still have something to say as factors over groups that still have a choice. */
function buildProblem(
  network: Network,
  reduction: Reduction,
  memory: Memory,
  goal: AttemptOptions["goal"],
): Problem {
  const factors: Factor[] = [];
  const groups = new Set<number>();
  for (const clause of network.clauses) {
    const factor = buildFactor(clause, reduction, memory);
    const matters = goal === "any" ? factor.hard : factor.data.some((cost) => cost !== 0);
    if (factor.scope.length === 0 || !matters) continue;
    for (const group of factor.scope) groups.add(group);
    const data = goal === "any" ? factor.data.map(withoutPrice) : factor.data;
    factors.push({ ...factor, data });
  }
  return { groups: [...groups].sort((left, right) => left - right), factors };
}

function withoutPrice(cost: number): number {
  return cost === Infinity ? Infinity : 0;
}

function buildFactor(clause: Clause, reduction: Reduction, memory: Memory): Factor {
  const domains = clause.scope.map((group) => reduction.domain(group));
  const { data, hard } = memory.table(clause.relation, domains);
  const scope = clause.scope.filter((_, place) => (domains[place]?.values.length ?? 0) > 1);
  return { scope, data, hard, origin: clause };
}

/** Each variable's own candidate of the value its group has. */
function assign(
  variables: readonly Variable[],
  network: Network,
  values: readonly number[],
  memory: Memory,
): Map<Variable, Candidate> {
  const assignment = new Map<Variable, Candidate>();
  for (const variable of variables) {
    const value = values[network.groupOf.get(variable) ?? -1] ?? -1;
    const { text } = memory.candidate(value);
    const candidate = variable.candidates.find((each) => each.text === text);
    if (candidate === undefined) throw new Error(`${variable.label} cannot be ${text}`);
    assignment.set(variable, candidate);
  }
  return assignment;
}

/** The sum in the order the constraints were stated, however the search added it up. */
function totalCost(network: Network, values: readonly number[]): number {
  let total = 0;
  for (const { constraint, scope, relation } of network.clauses) {
    const cost = relation.evaluate(scope.map((group) => values[group] ?? -1));
    if (cost === Infinity) throw new Error(`the solution breaks: ${constraint.origin.message}`);
    total += cost;
  }
  return total;
}
