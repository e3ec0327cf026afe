/**
 * The least cost over what the reduction left. Networks of small tree width, as programs have, are
 * eliminated group by group and need no search. Where the tables would grow too large, the group with
 * the most neighbours is given each of its candidates in turn, and the rest, now less entangled, is
 * eliminated again:
 *
 *   hub = A     bound 7     rest costs 9     best 9
 *   hub = C     bound 8     rest costs 8     best 8
 *   hub = B     bound 8     cannot beat 8: not tried
 *
 * The bound adds the least entry of every factor, the candidates are tried from the lowest bound up,
 * the earlier first. Each entangled part has its own fuel, counted in entries of tables read. When
 * that is spent, the best found so far stands; if nothing was found, as much again may be spent on
 * finding anything at all.
 */
import type { Clause } from "./network.ts";
import type { Elimination, Meter, Problem } from "./variable-elimination.ts";
import { eliminate } from "./variable-elimination.ts";
import type { Factor } from "./factors.ts";
import { fixed, hardClauses, leastEntry } from "./factors.ts";

export interface SearchLimits {
  /** The most entries of a table that elimination may make. */
  readonly tableLimit: number;
  /** Entries that may be read for each part that elimination alone does not solve. */
  readonly fuel: number;
}

export interface SearchResult {
  /** The candidate of each group, or undefined where none was found. */
  readonly choice: readonly number[] | undefined;
  /** The fuel sufficed: the choice is the best, or there is none. */
  readonly complete: boolean;
  /** When there is no solution: clauses that have none together. */
  readonly culprits: readonly Clause[];
  readonly largestTable: number;
  readonly branches: number;
}

interface Outcome {
  /** Infinity where nothing below the ceiling was found. */
  readonly cost: number;
  readonly complete: boolean;
  readonly culprits: readonly Factor[];
  choose(choice: number[]): void;
}

interface Branch {
  readonly candidate: number;
  readonly factors: readonly Factor[];
  readonly bound: number;
}

export function search(
  problem: Problem,
  sizes: readonly number[],
  limits: SearchLimits,
): SearchResult {
  const searcher = new Searcher(sizes, limits);
  const outcome = searcher.solve(problem);
  const choice = sizes.map(() => 0);
  if (outcome.cost < Infinity) outcome.choose(choice);
  return {
    choice: outcome.cost < Infinity ? choice : undefined,
    complete: outcome.complete,
    culprits: outcome.cost < Infinity ? [] : hardClauses(outcome.culprits),
    largestTable: searcher.meter.largestTable,
    branches: searcher.branches,
  };
}

function lowerBound(factors: readonly Factor[]): number {
  return factors.reduce((sum, { data }) => sum + leastEntry(data), 0);
}

function impossible(culprits: readonly Factor[], complete: boolean): Outcome {
  return { cost: Infinity, complete, culprits, choose: () => undefined };
}

class Searcher {
  readonly meter: Meter = { work: 0, largestTable: 0 };
  branches = 0;
  readonly #sizes: readonly number[];
  readonly #limits: SearchLimits;
  /** The work at which the fuel of the part under way is spent. */
  #spentAt = 0;

  constructor(sizes: readonly number[], limits: SearchLimits) {
    this.#sizes = sizes;
    this.#limits = limits;
  }

  solve(problem: Problem): Outcome {
    return this.#solveParts(this.#eliminate(problem), Infinity, true);
  }

  #eliminate(problem: Problem): Elimination {
    return eliminate(problem, this.#sizes, this.#limits.tableLimit, this.meter);
  }

  /** What elimination left, part by part; only a cost below the ceiling is of use. */
  #solveParts(elimination: Elimination, ceiling: number, refuel: boolean): Outcome {
    if (elimination.impossible !== undefined) return impossible([elimination.impossible], true);
    const bounds = elimination.rest.map(({ factors }) => lowerBound(factors));
    let cost = elimination.cost + bounds.reduce((sum, bound) => sum + bound, 0);
    let complete = true;
    const outcomes: Outcome[] = [];
    for (const [place, part] of elimination.rest.entries()) {
      cost -= bounds[place] ?? 0;
      if (refuel) this.#spentAt = this.meter.work + this.#limits.fuel;
      const outcome = this.#branch(part, ceiling - cost);
      if (outcome.cost === Infinity) return outcome;
      cost += outcome.cost;
      complete &&= outcome.complete;
      outcomes.push(outcome);
    }
    const choose = (choice: number[]): void => {
      for (const outcome of outcomes) outcome.choose(choice);
      elimination.choose(choice);
    };
    return { cost: cost < ceiling ? cost : Infinity, complete, culprits: [], choose };
  }

  #branch(part: Problem, ceiling: number): Outcome {
    const group = mostEntangled(part);
    const rest = part.groups.filter((other) => other !== group);
    let best: Outcome | undefined;
    let bestCandidate = 0;
    let lowest = ceiling;
    let complete = true;
    for (const [rank, { candidate, factors, bound }] of this.#branches(part, group).entries()) {
      if (bound >= lowest) break;
      if (this.#exhausted(lowest < Infinity, rank)) {
        complete = false;
        break;
      }
      this.branches++;
      const elimination = this.#eliminate({ groups: rest, factors });
      const outcome = this.#solveParts(elimination, lowest, false);
      complete &&= outcome.complete;
      if (outcome.cost >= lowest) continue;
      best = outcome;
      bestCandidate = candidate;
      lowest = outcome.cost;
    }
    if (best === undefined) return impossible(part.factors, complete);
    const chosen = best;
    const choose = (choice: number[]): void => {
      choice[group] = bestCandidate;
      chosen.choose(choice);
    };
    return { cost: lowest, complete, culprits: [], choose };
  }

  /**
   * With a solution in hand the fuel is the limit, without one it is twice that, and going straight
   * down along first candidates is always allowed.
   */
  #exhausted(found: boolean, rank: number): boolean {
    if (!found && rank === 0) return false;
    return this.meter.work >= this.#spentAt + (found ? 0 : this.#limits.fuel);
  }

  #branches(part: Problem, group: number): Branch[] {
    const branches: Branch[] = [];
    for (let candidate = 0; candidate < (this.#sizes[group] ?? 0); candidate++) {
      const factors = part.factors.map((factor) => {
        if (!factor.scope.includes(group)) return factor;
        const slice = fixed(factor, group, candidate, this.#sizes);
        this.meter.work += slice.data.length;
        return slice;
      });
      branches.push({ candidate, factors, bound: lowerBound(factors) });
    }
    return branches.sort(
      (left, right) => left.bound - right.bound || left.candidate - right.candidate,
    );
  }
}

/** The group with the most neighbours, of those the first. */
function mostEntangled(part: Problem): number {
  const neighbours = new Map(part.groups.map((group) => [group, new Set<number>()]));
  for (const { scope } of part.factors) {
    for (const group of scope) for (const other of scope) neighbours.get(group)?.add(other);
  }
  let chosen = -1;
  let most = 0;
  for (const [group, { size }] of neighbours) {
    if (size > most || (size === most && group < chosen)) {
      chosen = group;
      most = size;
    }
  }
  return chosen;
}
