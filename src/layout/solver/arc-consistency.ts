/**
 * Reduction to a fixed point: a candidate goes when some clause has no tuple left that holds and
 * contains it. What goes remembers the clause that removed it and when, which is what a conflict is
 * explained from.
 *
 *   x in {A, B}   y in {A, B, C}     y = A (pinned)     next(x) = y  with  next: A -> B, B -> A
 *
 *   time  goes    because
 *   1     y = B   y = A
 *   2     y = C   y = A
 *   3     x = A   next(x) = y: it would make y = B, gone at time 1
 *
 * Clauses join in stages, cheap and decisive ones first: those over one group, equalities, predicates
 * and last whatever has a price. So a costly function is asked only about candidates that survive the
 * stages before its own. A clause that always holds takes no part.
 */
import type { Clause, Network } from "./network.ts";
import type { Domain, Memory, Table } from "./relation.ts";
import type { Variable } from "./system.ts";

/** Why and when a candidate went: a clause, or a member of the group that never had it. */
export interface Removal {
  readonly time: number;
  readonly cause: Clause | Variable;
}

interface ActiveClause {
  readonly clause: Clause;
  readonly table: Table;
  readonly strides: readonly number[];
  /** For each place of the scope the positions in the group's universe that the table's rows mean. */
  readonly rows: readonly (readonly number[])[];
}

const lastStage = 3;

function stageOf({ constraint, scope }: Clause): number {
  if (constraint.kind === "relayout" || constraint.kind === "cost") return lastStage;
  if (scope.length <= 1) return 0;
  return constraint.kind === "equal" ? 1 : 2;
}

export class Reduction {
  readonly network: Network;
  readonly #memory: Memory;
  readonly #alive: boolean[][];
  readonly #counts: number[];
  readonly #removals: (Removal | undefined)[][];
  /** Domains of groups as they are now; absent after a removal until asked for. */
  readonly #domains: (Domain | undefined)[] = [];
  readonly #watchers: ActiveClause[][];
  readonly #queue: ActiveClause[] = [];
  readonly #queued = new Set<ActiveClause>();
  #removed = 0;
  #wipedGroup: number | undefined;
  #falseClause: Clause | undefined;

  constructor(network: Network, memory: Memory) {
    this.network = network;
    this.#memory = memory;
    this.#alive = network.groups.map(({ universe }) => universe.map(() => true));
    this.#counts = network.groups.map(({ universe }) => universe.length);
    this.#removals = network.groups.map(() => []);
    this.#watchers = network.groups.map(() => []);
    this.#run();
  }

  /** The group that lost all its candidates. */
  get wipedGroup(): number | undefined {
    return this.#wipedGroup;
  }

  /** A clause that reads no group and does not hold. */
  get falseClause(): Clause | undefined {
    return this.#falseClause;
  }

  get removed(): number {
    return this.#removed;
  }

  removal(group: number, position: number): Removal | undefined {
    return this.#removals[group]?.[position];
  }

  domain(group: number): Domain {
    const known = this.#domains[group];
    if (known !== undefined) return known;
    const alive = this.#alive[group];
    const universe = this.network.groups[group]?.universe ?? [];
    const domain = this.#memory.domain(universe.filter((_, position) => alive?.[position]));
    this.#domains[group] = domain;
    return domain;
  }

  #run(): void {
    this.network.groups.forEach(({ lacking }, group) => {
      lacking.forEach((member, position) => {
        if (member !== undefined) this.#remove(group, position, member);
      });
    });
    for (let stage = 0; stage <= lastStage; stage++) {
      for (const clause of this.network.clauses) {
        if (this.#failed()) return;
        if (stageOf(clause) === stage) this.#activate(clause);
      }
    }
  }

  #failed(): boolean {
    return this.#wipedGroup !== undefined || this.#falseClause !== undefined;
  }

  #activate(clause: Clause): void {
    const domains: Domain[] = [];
    for (const group of clause.scope) domains.push(this.domain(group));
    const table = this.#memory.table(clause.relation, domains);
    if (!table.hard) return;
    if (clause.scope.length === 0) {
      this.#falseClause = clause;
      return;
    }
    const rows: number[][] = [];
    for (const group of clause.scope) rows.push(this.#alivePositions(group));
    const strides: number[] = [];
    for (let place = 0; place < rows.length; place++)
      strides.push(rows.slice(place + 1).reduce((product, later) => product * later.length, 1));
    const active: ActiveClause = { clause, table, strides, rows };
    if (clause.scope.length > 1) {
      for (const group of clause.scope) this.#watchers[group]?.push(active);
    }
    this.#enqueue(active);
    this.#drain();
  }

  #alivePositions(group: number): number[] {
    const positions: number[] = [];
    this.#alive[group]?.forEach((alive, position) => {
      if (alive) positions.push(position);
    });
    return positions;
  }

  #enqueue(active: ActiveClause): void {
    if (this.#queued.has(active)) return;
    this.#queued.add(active);
    this.#queue.push(active);
  }

  #drain(): void {
    for (let head = 0; head < this.#queue.length && !this.#failed(); head++) {
      const active = this.#queue[head] as ActiveClause;
      this.#queued.delete(active);
      for (let place = 0; place < active.rows.length; place++) this.#revise(active, place);
    }
    this.#queue.length = 0;
  }

  /** Removes the candidates at one place of a clause that no tuple supports. */
  #revise(active: ActiveClause, place: number): void {
    const group = active.clause.scope[place] as number;
    const alive = this.#alive[group] as boolean[];
    const rows = active.rows[place] as readonly number[];
    const stride = active.strides[place] as number;
    for (let row = 0; row < rows.length; row++) {
      const position = rows[row] as number;
      if (!alive[position] || this.#supported(active, place, 0, row * stride)) continue;
      this.#remove(group, position, active.clause);
      for (const watcher of this.#watchers[group] ?? []) this.#enqueue(watcher);
    }
  }

  /** Whether rows still alive at the places from `place` on, all but `fixed`, make a tuple that holds. */
  #supported(active: ActiveClause, fixed: number, place: number, offset: number): boolean {
    if (place === active.rows.length) return (active.table.data[offset] as number) < Infinity;
    if (place === fixed) return this.#supported(active, fixed, place + 1, offset);
    const alive = this.#alive[active.clause.scope[place] as number] as boolean[];
    const rows = active.rows[place] as readonly number[];
    const stride = active.strides[place] as number;
    for (let row = 0; row < rows.length; row++) {
      if (!alive[rows[row] as number]) continue;
      if (this.#supported(active, fixed, place + 1, offset + row * stride)) return true;
    }
    return false;
  }

  #remove(group: number, position: number, cause: Clause | Variable): void {
    const alive = this.#alive[group];
    const removals = this.#removals[group];
    if (alive === undefined || removals === undefined) throw new Error(`no group ${group}`);
    alive[position] = false;
    removals[position] = { time: ++this.#removed, cause };
    this.#domains[group] = undefined;
    const left = (this.#counts[group] ?? 0) - 1;
    this.#counts[group] = left;
    if (left === 0) this.#wipedGroup ??= group;
  }
}
