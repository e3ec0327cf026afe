import { describe, expect, test } from "vitest";
import {
  isMinimalConflict,
  leastPrice,
  mixtures,
  randomSystem,
  totalPrice,
} from "../../../test/layout-systems.ts";
import type { Mixture } from "../../../test/layout-systems.ts";
import { takesAll } from "../../../test/support/sample.ts";
import { Random } from "../../support/random.ts";
import type { Conflict } from "./minimal-conflict.ts";
import type { Solution } from "./solve.ts";
import { solve } from "./solve.ts";
import type { System } from "./system.ts";

/** What of a solution must not change from one run to the next. */
function outcome(solution: Solution): string {
  if (solution.status === "undecided") return "undecided";
  if (solution.status === "unsatisfiable") {
    return solution.conflict.constraints.map(({ index }) => index).join();
  }
  return [...solution.assignment.values()].map(({ text }) => text).join("");
}

function checkSolution(
  system: System,
  expected: number | undefined,
  solution: Solution,
  about: string,
): void {
  if (expected === undefined) {
    expect(solution.status, about).toBe("unsatisfiable");
    if (solution.status === "unsatisfiable") checkConflict(solution.conflict, about);
    return;
  }
  if (solution.status !== "solved") throw new Error(`${about}: ${solution.status}`);
  expect(solution.cost, about).toBe(expected);
  expect(totalPrice(system.constraints, solution.assignment), about).toBe(expected);
  expect([...solution.assignment.keys()], about).toEqual(system.variables);
  expect(solution.optimal, about).toBe(true);
}

function checkConflict(conflict: Conflict, about: string): void {
  const { constraints, minimal, primary, witnesses } = conflict;
  expect(minimal, about).toBe(true);
  expect(isMinimalConflict(constraints), about).toBe(true);
  for (const constraint of constraints) {
    const rest = constraints.filter((each) => each !== constraint);
    const witness = witnesses.get(constraint)?.assignment ?? new Map();
    expect(totalPrice(rest, witness), about).toBeDefined();
    expect(totalPrice(constraints, witness), about).toBeUndefined();
  }
  const origins = constraints.map(({ origin }) => origin);
  expect(origins, about).toContain(primary[0]);
  if (constraints.length > 1) expect(origins, about).toContain(primary[1]);
  const pins = origins.map(({ pinned }) => (pinned === true ? 1 : 0));
  expect(pins, about).toEqual(pins.toSorted((a, b) => a - b));
}

describe("against every assignment: verdict, least cost and minimal conflicts", () => {
  const systems = takesAll ? 400 : 120;
  const conflicting: { [M in Mixture]: number } = { everything: 0.25, prices: 0, colours: 0.25 };
  test.each(mixtures)(`${systems} systems of %s`, (mixture) => {
    let conflicts = 0;
    for (let seed = 0; seed < systems; seed++) {
      const about = `${mixture}, seed ${seed}`;
      const system = randomSystem(new Random(seed), mixture);
      const solution = solve(system);
      checkSolution(system, leastPrice(system.constraints), solution, about);
      const again = solve(randomSystem(new Random(seed), mixture));
      expect(outcome(again), about).toBe(outcome(solution));
      if (solution.status === "unsatisfiable") conflicts++;
    }
    expect(conflicts).toBeGreaterThanOrEqual(systems * conflicting[mixture]);
    expect(conflicts).toBeLessThan(systems / 2);
  });

  test("the same where tables are too small and candidates are tried one by one", () => {
    let branches = 0;
    const seeds = takesAll ? 200 : 50;
    for (let seed = 5000; seed < 5000 + seeds; seed++) {
      for (const mixture of mixtures) {
        const system = randomSystem(new Random(seed), mixture);
        const expected = leastPrice(system.constraints);
        for (const tableLimit of [0, 1, 4]) {
          const solution = solve(system, { tableLimit });
          branches += solution.statistics.branches;
          checkSolution(
            system,
            expected,
            solution,
            `${mixture}, seed ${seed}, limit ${tableLimit}`,
          );
        }
      }
    }
    expect(branches).toBeGreaterThan(10 * seeds);
  });
});
