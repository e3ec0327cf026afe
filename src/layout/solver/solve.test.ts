import { describe, expect, test } from "vitest";
import { letter, letters, stated } from "../../../test/layout-systems.ts";
import { locationAt, unknownLocation } from "../../support/location.ts";
import type { Solution } from "./solve.ts";
import { chosen, solve } from "./solve.ts";
import type { Candidate, LayoutFunction, Variable } from "./system.ts";
import { System, apply, constant } from "./system.ts";

function declare(system: System, label: string, texts: string): Variable {
  return system.variable({ label, location: unknownLocation, candidates: letters(texts) });
}

/** The candidates of a solution as one word, in the order of the variables. */
function word(system: System, solution: Solution): string {
  if (solution.status !== "solved") return solution.status;
  return system.variables.map((variable) => chosen(solution.assignment, variable).text).join("");
}

function unequal(price: number): (source: Candidate, target: Candidate) => number {
  return (source, target) => (source.text === target.text ? 0 : price);
}

function mapping(name: string, pairs: Readonly<Record<string, string>>): LayoutFunction {
  return {
    name,
    apply: ({ text }) => {
      const result = pairs[text];
      return result === undefined ? undefined : letter(result);
    },
  };
}

describe("solutions", () => {
  test("nothing stated: everybody takes the first candidate", () => {
    const system = new System();
    declare(system, "x", "BA");
    declare(system, "y", "CAB");
    const solution = solve(system);
    expect(word(system, solution)).toBe("BC");
    expect(solution).toMatchObject({ status: "solved", cost: 0, optimal: true });
  });

  test("an empty system is solved", () => {
    expect(solve(new System())).toMatchObject({ status: "solved", cost: 0 });
  });

  test("equal costs: the earlier candidate", () => {
    const system = new System();
    const x = declare(system, "x", "CBA");
    const y = declare(system, "y", "CBA");
    system.cost([x], ({ text }) => (text === "C" ? 1 : 0), stated("x"));
    system.relayout(x, y, unequal(3), stated("y reads x"));
    expect(word(system, solve(system))).toBe("BB");
  });

  test("a cost below 0 attracts, though nothing costs anything", () => {
    const system = new System();
    const x = declare(system, "x", "AB");
    system.cost([x], ({ text }) => (text === "B" ? -1 : 0), stated("x likes B"));
    const solution = solve(system);
    expect(word(system, solution)).toBe("B");
    expect(solution).toMatchObject({ status: "solved", cost: -1 });
  });

  test("a conversion is paid for when that is cheaper than agreeing", () => {
    const solveWith = (price: number): string => {
      const system = new System();
      const x = declare(system, "x", "AB");
      const y = declare(system, "y", "AB");
      system.relayout(x, y, unequal(price), stated("y reads x"));
      system.cost([x], ({ text }) => (text === "A" ? 0 : 10), stated("x likes A"));
      system.cost([y], ({ text }) => (text === "B" ? 0 : 10), stated("y likes B"));
      return word(system, solve(system));
    };
    expect(solveWith(9)).toBe("AB");
    expect(solveWith(11)).toBe("AA");
  });

  test("values flow through functions both ways", () => {
    const system = new System();
    const x = declare(system, "x", "ABC");
    const y = declare(system, "y", "ABC");
    const z = declare(system, "z", "ABC");
    const next = mapping("next", { A: "B", B: "C" });
    system.equal(apply(next, x), y, stated("y is next(x)"));
    system.equal(apply(next, y), z, stated("z is next(y)"));
    const solution = solve(system);
    expect(word(system, solution)).toBe("ABC");
    expect(solution.statistics).toMatchObject({ removed: 6, branches: 0, largestTable: 0 });
  });

  test("one variable on both sides of a function", () => {
    const system = new System();
    const x = declare(system, "x", "ABC");
    system.equal(apply(mapping("f", { A: "B", B: "B" }), x), x, stated("fixed point"));
    expect(word(system, solve(system))).toBe("B");
  });

  test("the assignment holds the variable's own candidate objects", () => {
    const system = new System();
    const own = { text: "A", mine: true };
    const x = system.variable({ label: "x", location: unknownLocation, candidates: [own] });
    const y = declare(system, "y", "BA");
    system.equal(x, y, stated("x = y"));
    const solution = solve(system);
    if (solution.status !== "solved") throw new Error(solution.status);
    expect(chosen(solution.assignment, x)).toBe(own);
    expect(chosen(solution.assignment, y)).toBe(y.candidates[1]);
  });

  test("predicates and costs see their operands with the types of their candidates", () => {
    const system = new System();
    const wide = { text: "wide", registers: 8 };
    const narrow = { text: "narrow", registers: 2 };
    const registers = system.variable({
      label: "registers",
      location: unknownLocation,
      candidates: [wide, narrow],
    });
    const shared = system.variable({
      label: "shared",
      location: unknownLocation,
      candidates: [{ text: "swizzled", swizzle: 128 }],
    });
    const bytes: LayoutFunction<typeof wide, { text: string; bytes: number }> = {
      name: "bytes",
      apply: (layout) => ({ text: `${layout.registers * 4}`, bytes: layout.registers * 4 }),
    };
    system.require(
      [apply(bytes, registers), shared],
      (left, right) => left.bytes * 16 <= right.swizzle || "too wide",
      stated("fits"),
    );
    const solution = solve(system);
    if (solution.status !== "solved") throw new Error(solution.status);
    expect(chosen(solution.assignment, registers).registers).toBe(2);
  });

  test("a function of the user is asked once for each pair of texts", () => {
    const system = new System();
    const asked: string[] = [];
    const price = (source: Candidate, target: Candidate): number => {
      asked.push(source.text + target.text);
      return source.text === target.text ? 0 : 1;
    };
    const chain = Array.from({ length: 50 }, (_, index) => declare(system, `v${index}`, "ABC"));
    chain.slice(1).forEach((variable, index) => {
      system.relayout(chain[index] ?? variable, variable, price, stated("chain"));
    });
    expect(word(system, solve(system))).toBe("A".repeat(50));
    expect(asked).toHaveLength(9);
    expect(new Set(asked).size).toBe(9);
  });

  test("a price is asked only about what cheaper constraints leave", () => {
    const system = new System();
    const x = declare(system, "x", "ABCD");
    const y = declare(system, "y", "ABCD");
    const asked: string[] = [];
    system.relayout(
      x,
      y,
      (source, target) => {
        asked.push(source.text + target.text);
        return 1;
      },
      stated("y reads x"),
    );
    system.equal(x, constant(letter("C")), stated("pin", true));
    system.require([y], ({ text }) => text !== "A" || "not A", stated("y is not A"));
    solve(system);
    expect(asked).toEqual(["CB", "CC", "CD"]);
  });
});

describe("mistakes in stating a system", () => {
  test("no candidates", () => {
    expect(() => declare(new System(), "x", "")).toThrow("variable x has no candidates");
  });

  test("a variable of another system", () => {
    const other = declare(new System(), "x", "A");
    const system = new System();
    expect(() => system.equal(other, constant(letter("A")), stated("pin"))).toThrow(
      "variable x belongs to another system",
    );
  });

  test.each([Number.NaN, -Infinity])("a cost of %d", (cost) => {
    const system = new System();
    const x = declare(system, "x", "A");
    system.cost([x], () => cost, stated("cost"));
    expect(() => solve(system)).toThrow(`a cost is ${cost}`);
  });

  test("candidates named twice count once", () => {
    expect(declare(new System(), "x", "ABA").candidates.map(({ text }) => text)).toEqual([
      "A",
      "B",
    ]);
  });
});

describe("conflicts", () => {
  const line = (number: number) => locationAt("kernel.ts", number, 1);

  test("two pins at the ends of a chain: both ends and the path, and nothing beside it", () => {
    const system = new System();
    const chain = Array.from({ length: 6 }, (_, index) => declare(system, `v${index}`, "ABC"));
    const side = declare(system, "side", "ABC");
    chain.slice(1).forEach((variable, index) => {
      system.equal(chain[index] ?? variable, variable, stated(`link ${index}`));
    });
    const [start, , middle, , end] = chain;
    if (!start || !middle || !end) throw new Error("the chain is too short");
    system.equal(side, start, stated("beside"));
    const pin = { location: line(3), message: "pinned to A", pinned: true };
    const other = { location: line(9), message: "pinned to B", pinned: true };
    system.equal(end, constant(letter("B")), other);
    system.equal(middle, constant(letter("A")), pin);
    const solution = solve(system);
    if (solution.status !== "unsatisfiable") throw new Error(solution.status);
    expect(solution.conflict.constraints.map(({ origin }) => origin.message)).toEqual([
      "link 2",
      "link 3",
      "pinned to B",
      "pinned to A",
    ]);
    expect(solution.conflict.primary).toEqual([other, pin]);
  });

  test("the witness of each side is what the other side wants", () => {
    const system = new System();
    const x = declare(system, "x", "ABC");
    const wantsA = system.require(
      [x],
      ({ text }) => text === "A" || `${text} is not A`,
      stated("needs A"),
    );
    const wantsB = system.require(
      [x],
      ({ text }) => text === "B" || `${text} is not B`,
      stated("needs B"),
    );
    const solution = solve(system);
    if (solution.status !== "unsatisfiable") throw new Error(solution.status);
    const { witnesses } = solution.conflict;
    expect(witnesses.get(wantsA)?.reason).toBe("B is not A");
    expect(witnesses.get(wantsA)?.assignment.get(x)?.text).toBe("B");
    expect(witnesses.get(wantsB)?.reason).toBe("A is not B");
  });

  test("a constraint that fails alone names the declaration of its variable", () => {
    const system = new System();
    const x = system.variable({ label: "x", location: line(2), candidates: letters("AB") });
    const origin = { location: line(5), message: "needs C" };
    system.require([x], ({ text }) => text === "C" || "not C", origin);
    const solution = solve(system);
    if (solution.status !== "unsatisfiable") throw new Error(solution.status);
    expect(solution.conflict.primary).toEqual([origin, { location: line(2), message: "x" }]);
  });

  test("constants that differ conflict alone", () => {
    const system = new System();
    const origin = stated("A is B");
    system.equal(constant(letter("A")), constant(letter("B")), origin);
    const solution = solve(system);
    if (solution.status !== "unsatisfiable") throw new Error(solution.status);
    expect(solution.conflict.primary).toEqual([origin, origin]);
  });

  test("two lines are named rather than two statements of one line", () => {
    const system = new System();
    const x = declare(system, "x", "ABC");
    const refuse = (text: string, location = line(4)) =>
      system.require([x], (value) => value.text !== text || "refused", {
        location,
        message: `not ${text}`,
      });
    refuse("A");
    refuse("B");
    refuse("C", line(7));
    const solution = solve(system);
    if (solution.status !== "unsatisfiable") throw new Error(solution.status);
    expect(solution.conflict.primary.map(({ message }) => message)).toEqual(["not A", "not C"]);
  });

  test("pins are named rather than what restricts a variable as much", () => {
    const system = new System();
    const [x, y, z] = [
      declare(system, "x", "AB"),
      declare(system, "y", "AB"),
      declare(system, "z", "AB"),
    ];
    const pin = { location: line(3), message: "x is pinned", pinned: true };
    const other = { location: line(9), message: "y is pinned", pinned: true };
    system.require([z], ({ text }) => text === "A" || "not A", stated("z is A"));
    system.require(
      [x, y, z],
      (...values) => values.some(({ text }) => text !== "A") || "all are A",
      stated("some differ"),
    );
    system.equal(x, constant(letter("A")), pin);
    system.equal(y, constant(letter("A")), other);
    const solution = solve(system);
    if (solution.status !== "unsatisfiable") throw new Error(solution.status);
    expect(solution.conflict.constraints).toHaveLength(4);
    expect(solution.conflict.primary).toEqual([pin, other]);
  });

  test("a conflict that only the search sees: three variables, two candidates, all different", () => {
    const system = new System();
    const different = (left: Candidate, right: Candidate) => left.text !== right.text || "same";
    const around = ["x", "y", "z", "u"].map((label) => declare(system, label, "AB"));
    const [x, y, z, u] = around;
    if (!x || !y || !z || !u) throw new Error("four variables");
    system.require([z, u], different, stated("z and u"));
    system.require([x, y], different, stated("x and y"));
    system.require([y, z], different, stated("y and z"));
    system.require([x, z], different, stated("x and z"));
    const solution = solve(system);
    if (solution.status !== "unsatisfiable") throw new Error(solution.status);
    expect(solution.conflict.constraints.map(({ origin }) => origin.message)).toEqual([
      "x and y",
      "y and z",
      "x and z",
    ]);
  });

  test("members of a group whose candidates have nothing in common", () => {
    const system = new System();
    const x = declare(system, "x", "AB");
    const y = declare(system, "y", "BC");
    const z = declare(system, "z", "CD");
    system.equal(x, y, stated("x = y"));
    system.equal(y, z, stated("y = z"));
    const solution = solve(system);
    if (solution.status !== "unsatisfiable") throw new Error(solution.status);
    expect(solution.conflict.constraints).toHaveLength(2);
  });
});
