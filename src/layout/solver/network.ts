/**
 * A system as a network: variables that plain equalities make one become a group with one domain, and
 * every other constraint becomes a clause over the groups it reads.
 *
 *   x in {A, B, C}   y in {B, C, D}   z in {A, B}     x = y   transpose(y) = z
 *
 *   group 0 = {x, y}   universe A B C D     A is not y's, D is not x's: both go in the reduction
 *   group 1 = {z}      universe A B
 *   clause  transpose(group 0) = group 1
 *
 * The universe holds the candidates of all members, not only their common ones, so that the reduction
 * can say which member lacks a candidate.
 */
import type { Constraint, Variable } from "./system.ts";
import { variableOf } from "./system.ts";
import type { Memory, Relation } from "./relation.ts";

export interface Group {
  readonly members: readonly Variable[];
  /** Candidates as values, in the order of the first member that has them. */
  readonly universe: readonly number[];
  /** For each of the universe the first member that lacks it; nothing for a group of one. */
  readonly lacking: readonly (Variable | undefined)[];
}

export interface Clause {
  readonly constraint: Constraint;
  /** The groups it reads, each once. */
  readonly scope: readonly number[];
  readonly relation: Relation;
}

export interface Network {
  readonly groups: readonly Group[];
  readonly groupOf: ReadonlyMap<Variable, number>;
  readonly clauses: readonly Clause[];
  /** The plain equalities that made the groups. */
  readonly links: readonly Constraint[];
}

/** Both variables of an equality without functions. */
export function linked(constraint: Constraint): readonly [Variable, Variable] | undefined {
  const [left, right] = constraint.operands;
  if (constraint.kind !== "equal") return undefined;
  return left?.kind === "variable" && right?.kind === "variable" ? [left, right] : undefined;
}

export function variablesOf(constraint: Constraint): readonly Variable[] {
  return constraint.operands.flatMap((operand) => variableOf(operand) ?? []);
}

export function buildNetwork(
  variables: readonly Variable[],
  constraints: readonly Constraint[],
  memory: Memory,
): Network {
  const links = constraints.filter((constraint) => linked(constraint) !== undefined);
  const memberships = partition(variables, links);
  const groupOf = new Map<Variable, number>();
  memberships.forEach((members, group) => {
    for (const member of members) groupOf.set(member, group);
  });
  const clauses = constraints
    .filter((constraint) => linked(constraint) === undefined)
    .map((constraint) => buildClause(constraint, groupOf, memory));
  return {
    groups: memberships.map((members) => buildGroup(members, memory)),
    groupOf,
    clauses,
    links,
  };
}

/** Groups in the order of their first members, members in the order of the variables. */
function partition(variables: readonly Variable[], links: readonly Constraint[]): Variable[][] {
  const parents = new Map<Variable, Variable>();
  const find = (variable: Variable): Variable => {
    let root = variable;
    for (let parent = parents.get(root); parent !== undefined; parent = parents.get(root)) {
      const grandparent = parents.get(parent);
      if (grandparent !== undefined) parents.set(root, grandparent);
      root = parent;
    }
    return root;
  };
  for (const link of links) {
    const [left, right] = (linked(link) ?? []).map(find);
    if (left === undefined || right === undefined || left === right) continue;
    parents.set(left.index < right.index ? right : left, left.index < right.index ? left : right);
  }
  const byRoot = new Map<Variable, Variable[]>();
  for (const variable of variables) {
    const root = find(variable);
    const members = byRoot.get(root);
    if (members === undefined) byRoot.set(root, [variable]);
    else members.push(variable);
  }
  return [...byRoot.values()];
}

function buildGroup(members: readonly Variable[], memory: Memory): Group {
  const valuesOf = new Map(
    members.map((member) => [member, member.candidates.map((each) => memory.value(each))]),
  );
  const [only] = valuesOf.values();
  if (only !== undefined && members.length === 1) {
    return { members, universe: only, lacking: [] };
  }
  const holders = new Map<number, number>();
  for (const values of valuesOf.values()) {
    for (const value of values) holders.set(value, (holders.get(value) ?? 0) + 1);
  }
  const universe = [...holders.keys()];
  const lacking = universe.map((value) =>
    holders.get(value) === members.length
      ? undefined
      : members.find((member) => valuesOf.get(member)?.includes(value) !== true),
  );
  return { members, universe, lacking };
}

function buildClause(
  constraint: Constraint,
  groupOf: ReadonlyMap<Variable, number>,
  memory: Memory,
): Clause {
  const scope: number[] = [];
  const positions = constraint.operands.map((operand) => {
    const variable = variableOf(operand);
    if (variable === undefined) return -1;
    const group = groupOf.get(variable);
    if (group === undefined) throw new Error(`${variable.label} is not in the network`);
    if (!scope.includes(group)) scope.push(group);
    return scope.indexOf(group);
  });
  return { constraint, scope, relation: memory.relation(constraint, positions, scope.length) };
}
