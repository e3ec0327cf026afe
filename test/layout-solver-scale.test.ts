import { tensor, dim, f32, i32, kernel, targets, zeros } from "tilewright";
import { Functions } from "../src/layout/model/layout-functions.ts";
import { windowsOf } from "../src/layout/model/windows.ts";
import { propagateCandidates } from "../src/layout/plan/propagate-candidates.ts";
import { selectInstructions } from "../src/layout/plan/select.ts";
import { buildSystem } from "../src/layout/plan/build-system.ts";
import { stateKernel } from "../src/layout/rules/index.ts";
import { simplify } from "../src/lower/simplify.ts";
import { describe, expect, test } from "vitest";
import { letter, stated } from "./layout-systems.ts";
import { unknownLocation } from "../src/support/location.ts";
import { Random } from "../src/support/random.ts";
import { solve } from "../src/layout/solver/solve.ts";
import type { Candidate, Variable } from "../src/layout/solver/system.ts";
import { System, apply, constant } from "../src/layout/solver/system.ts";
import { expectGrowth, expectWithin } from "./support/processor-time.ts";

const size = 12;
const candidates = Array.from({ length: size }, (_, index) => letter(`layout ${index}`));

function numberOf({ text }: Candidate): number {
  return Number(text.slice("layout ".length));
}

function conversion(source: Candidate, target: Candidate): number {
  return Math.abs(numberOf(source) - numberOf(target)) * 3;
}

function declare(system: System, count: number): Variable[] {
  return Array.from({ length: count }, (_, index) =>
    system.variable({ label: `v${index}`, location: unknownLocation, candidates }),
  );
}

function at(variables: readonly Variable[], index: number): Variable {
  const variable = variables[index];
  if (variable === undefined) throw new Error(`no variable ${index}`);
  return variable;
}

/**
 * Diamonds in a row, with half as many pairwise constraints again as variables:
 *
 *     1   4   7
 *    / \ / \ / \
 *   0   3   6   9 ...
 *    \ / \ / \ /
 *     2   5   8
 */
function diamonds(count: number, seed: number): System {
  const system = new System();
  const random = new Random(seed);
  const variables = declare(system, count);
  const wishes = Array.from(
    { length: 7 },
    (_, salt) => (value: Candidate) => (numberOf(value) * (salt + 2)) % 13,
  );
  for (let start = 0; start + 3 < count; start += 3) {
    for (const [from, to] of [
      [0, 1],
      [0, 2],
      [1, 3],
      [2, 3],
      [1, 2],
    ] as const) {
      const source = at(variables, start + from);
      system.relayout(source, at(variables, start + to), conversion, stated("edge"));
    }
  }
  for (const variable of variables) {
    if (random.below(3) === 0) system.cost([variable], random.pick(wishes), stated("wish"));
  }
  return system;
}

/** Every variable tied to every other, each pair with prices of its own. */
function clique(count: number, seed: number): System {
  const system = new System();
  addClique(system, count, seed);
  return system;
}

function addClique(system: System, count: number, seed: number): void {
  const random = new Random(seed);
  const variables = declare(system, count);
  for (const [index, variable] of variables.entries()) {
    for (const other of variables.slice(index + 1)) {
      const salt = random.below(97);
      const price = (left: Candidate, right: Candidate): number =>
        (numberOf(left) * 31 + numberOf(right) * 17 + salt * 7) % 23;
      system.relayout(variable, other, price, stated("edge"));
    }
  }
}

/** As many variables that must all differ, and one candidate too few. */
function pigeons(count: number): System {
  const system = new System();
  const differ = (left: Candidate, right: Candidate) => left.text !== right.text || "same";
  const variables = Array.from({ length: count }, (_, index) =>
    system.variable({
      label: `pigeon ${index}`,
      location: unknownLocation,
      candidates: candidates.slice(0, count - 1),
    }),
  );
  for (const [index, variable] of variables.entries()) {
    for (const other of variables.slice(index + 1)) {
      system.require([variable, other], differ, stated("differ"));
    }
  }
  return system;
}

describe("large systems", () => {
  test("10,000 variables in a row of diamonds take less than 3 s, and 5,000 about four times as long as 1,250", () => {
    const small = diamonds(1250, 1);
    const large = diamonds(5000, 1);
    let solution = solve(small);
    expectGrowth(
      10,
      () => solve(small),
      () => solve(large),
    );
    const largest = diamonds(10_000, 1);
    expectWithin(3000, () => (solution = solve(largest)));
    expect(solution).toMatchObject({ status: "solved", optimal: true });
    expect(solution.statistics.questions).toBeLessThanOrEqual(size * size + 7 * size);
    expect(solution.statistics.largestTable).toBe(size * size);
  });

  test("a variable that 5,000 others read is no obstacle", () => {
    const system = new System();
    const [hub, ...readers] = declare(system, 5001);
    if (hub === undefined) throw new Error("no hub");
    readers.forEach((reader, index) => {
      system.relayout(hub, reader, conversion, stated("reads the hub"));
      if (index > 0) system.relayout(at(readers, index - 1), reader, conversion, stated("next"));
    });
    system.equal(at(readers, 777), constant(letter("layout 5")), stated("pin", true));
    const solution = solve(system);
    expect(solution).toMatchObject({ status: "solved", cost: 0, optimal: true });
  });

  test("a value runs through 3,000 functions, and two at odds are found", () => {
    const system = new System();
    const next = {
      name: "next",
      apply: (value: Candidate) => letter(`layout ${(numberOf(value) + 1) % size}`),
    };
    const variables = declare(system, 3000);
    variables.slice(1).forEach((variable, index) => {
      system.equal(apply(next, at(variables, index)), variable, stated(`step ${index}`));
    });
    system.equal(at(variables, 0), constant(letter("layout 3")), stated("start", true));
    const solution = solve(system);
    if (solution.status !== "solved") throw new Error(solution.status);
    expect(solution.assignment.get(at(variables, 2999))?.text).toBe(`layout ${(3 + 2999) % size}`);
    system.equal(at(variables, 40), constant(letter("layout 0")), stated("end", true));
    const failed = solve(system);
    if (failed.status !== "unsatisfiable") throw new Error(failed.status);
    expect(failed.conflict.constraints).toHaveLength(42);
    expect(failed.conflict.primary.map(({ message }) => message)).toEqual(["start", "end"]);
  });

  test("two pins 400 equalities apart in a group of 10,000", () => {
    const system = new System();
    const variables = declare(system, 10_000);
    variables.slice(1).forEach((variable, index) => {
      system.equal(at(variables, index), variable, stated(`link ${index}`));
    });
    for (const [index, value] of [
      [5000, 1],
      [5400, 2],
    ] as const) {
      const pin = constant(letter(`layout ${value}`));
      system.equal(at(variables, index), pin, stated(`pin ${value}`, true));
    }
    const solution = solve(system);
    if (solution.status !== "unsatisfiable") throw new Error(solution.status);
    expect(solution.conflict.constraints).toHaveLength(402);
    expect(solution.conflict.primary.map(({ message }) => message)).toEqual(["pin 1", "pin 2"]);
  });
});

describe("fuel", () => {
  test("enough of it: the best; little: some solution, said not to be proved the best", () => {
    const system = clique(6, 4);
    const limits = { tableLimit: size };
    const best = solve(system, limits);
    const hasty = solve(system, { ...limits, fuel: 1 });
    const eliminated = solve(system, { tableLimit: 2 ** 18 });
    if (best.status !== "solved" || hasty.status !== "solved") throw new Error("not solved");
    expect(best.optimal).toBe(true);
    expect(eliminated).toMatchObject({ status: "solved", cost: best.cost, optimal: true });
    expect(eliminated.statistics.branches).toBe(0);
    expect(hasty.optimal).toBe(false);
    expect(hasty.cost).toBeGreaterThanOrEqual(best.cost);
    expect(hasty.statistics.branches).toBeLessThan(best.statistics.branches);
    expect(solve(system, { ...limits, fuel: 1 })).toEqual(hasty);
  });

  test("more of it never gives a worse solution", () => {
    const system = clique(7, 8);
    let last = Infinity;
    for (const fuel of [1, 2 ** 12, 2 ** 16, 2 ** 18]) {
      const solution = solve(system, { tableLimit: size, fuel });
      if (solution.status !== "solved") throw new Error(solution.status);
      expect(solution.cost).toBeLessThanOrEqual(last);
      last = solution.cost;
    }
  });

  test("too little to find a solution or to rule one out is neither", () => {
    const system = pigeons(6);
    expect(solve(system, { tableLimit: 5, fuel: 1 }).status).toBe("undecided");
    const solution = solve(system, { tableLimit: 5 });
    if (solution.status !== "unsatisfiable") throw new Error(solution.status);
    expect(solution.conflict.constraints).toHaveLength(15);
    expect(solution.conflict.minimal).toBe(true);
  });

  test("each part that shares no constraint with another has its own", () => {
    const system = clique(6, 4);
    const alone = solve(system, { tableLimit: size });
    addClique(system, 6, 4);
    const together = solve(system, { tableLimit: size });
    if (alone.status !== "solved" || together.status !== "solved") throw new Error("not solved");
    expect(together.cost).toBe(2 * alone.cost);
    expect(together.statistics.branches).toBe(2 * alone.statistics.branches);
  });
});

test("nine masked gathers, whose indices and masks lie as their tiles do, are placed at the least cost", () => {
  const [h, w] = [dim("h"), dim("w")];
  const gathers = kernel(
    {
      name: "gathers",
      inputs: {
        ...{ x: tensor(f32, [h, w, 64]), weights: tensor(f32, [9, 64]) },
        ...{ rows: tensor(i32, [32]), columns: tensor(i32, [32]) },
      },
      outputs: { out: tensor(f32, [32, 64]) },
    },
    ({ x, weights, rows, columns, out }) => {
      const [row, column] = [rows.load(), columns.load()];
      let sum = zeros(f32, [32, 64]);
      for (let place = 0; place < 9; place += 1) {
        const y = row.add(Math.floor(place / 3) - 1);
        const z = column.add((place % 3) - 1);
        const inside = y.ge(0).and(y.lt(h)).and(z.ge(0)).and(z.lt(w));
        const picked = x.at(y, z).load({ where: inside.reshape([32, 1]) });
        sum = sum.add(picked.mul(weights.at(place).load().reshape([1, 64])));
      }
      out.store(sum);
    },
  );
  const traced = simplify(gathers.kernel);
  const target = targets.sm_90a;
  const windows = windowsOf(traced);
  const selected = selectInstructions(traced, { windows, target, refused: new Map() });
  const functions = new Functions();
  const context = stateKernel({ kernel: selected.kernel, target, windows, functions });
  const { system } = buildSystem(context, propagateCandidates(context), {});
  expect(solve(system)).toMatchObject({ status: "solved", optimal: true });
});
