/** Facts of what loops carry, held against loops that are run here. */
import { describe, expect, test } from "vitest";
import { kernelWith } from "../../../test/support/ir-text.ts";
import { Random } from "../../support/random.ts";
import type { Value } from "../node.ts";
import { walkOps } from "../traverse.ts";
import { allows } from "./fact.ts";
import { factsOf } from "./index.ts";
import type { Fact } from "./index.ts";

const number = (id: string, value: number): string =>
  `%${id} = constant {value = ${value}, dtype = i32, shape = []} : i32`;

/** The facts of what loops carry, the outermost first, and of what they give. */
function carriedFacts(text: string): {
  readonly inside: readonly Fact[];
  readonly after: readonly Fact[];
} {
  const kernel = kernelWith(text);
  const facts = factsOf(kernel);
  const inside: Fact[] = [];
  const after: Fact[] = [];
  const all = (values: readonly Value[]): Fact[] => values.map((value) => facts.of(value));
  walkOps(kernel.body, (op) => {
    if (op.kind !== "loop") return;
    inside.push(...all(op.regions.body.parameters.slice(1)));
    after.push(...all(op.results));
  });
  return { inside, after };
}

const constants = [number("0", 0), number("1", 1), number("4", 4), number("100", 100)].join("\n");

/** The next slot of a ring of four. */
const ringStep = (slot: string, next: string): string => `
  %${next}_sum = binary %${slot}, %1 {fn = add} : i32
  %${next}_wraps = compare %${next}_sum, %4 {predicate = eq} : bool
  %${next} = select %${next}_wraps, %0, %${next}_sum : i32`;

const interval = ({ least, greatest }: Fact): readonly [bigint, bigint] => [least, greatest];

describe("rings", () => {
  test("a slot some steps back stays within its ring where it goes around", () => {
    const kernel = kernelWith(`${constants}
      %r = loop %0, %100, %1 initial(%0) body(%i: i32, %slot: i32) {
        loop %0, %4, %1 body(%back: i32) {
          %d = binary %slot, %back {fn = sub} : i32
          %below = compare %d, %0 {predicate = lt} : bool
          %around = binary %d, %4 {fn = add} : i32
          %before = select %below, %around, %d : i32
          yield
        }
        ${ringStep("slot", "next")}
        yield %next
      } : i32`);
    const facts = factsOf(kernel);
    const found: Fact[] = [];
    walkOps(kernel.body, (op) => {
      if (op.kind === "select") found.push(...op.results.map((value) => facts.of(value)));
    });
    expect(found.map(interval)).toEqual(Array(2).fill([0n, 3n]));
  });

  test("a slot stays within its ring, and so does the one before it", () => {
    const { inside, after } = carriedFacts(`${constants}
      %r, %r2 = loop %0, %100, %1 initial(%0, %0) body(%i: i32, %slot: i32, %last: i32) {
        ${ringStep("slot", "next")}
        yield %next, %slot
      } : i32, i32`);
    expect([...inside, ...after].map(interval)).toEqual(Array(4).fill([0n, 3n]));
  });

  test("through a loop within a loop", () => {
    const { inside, after } = carriedFacts(`${constants}
      %r = loop %0, %100, %1 initial(%0) body(%i: i32, %before: i32) {
        %s = loop %0, %i, %1 initial(%before) body(%k: i32, %slot: i32) {
          ${ringStep("slot", "next")}
          yield %next
        } : i32
        yield %s
      } : i32`);
    expect([...inside, ...after].map(interval)).toEqual(Array(4).fill([0n, 3n]));
  });

  test("a phase is 0 or 1, and what only grows may be anything", () => {
    const { inside } = carriedFacts(`${constants}
      %r, %r2 = loop %0, %100, %1 initial(%0, %0) body(%i: i32, %phase: i32, %count: i32) {
        %turned = binary %phase, %1 {fn = xor} : i32
        %more = binary %count, %1 {fn = add} : i32
        yield %turned, %more
      } : i32, i32`);
    expect(interval(inside[0] ?? expect.fail())).toEqual([0n, 1n]);
    expect(interval(inside[1] ?? expect.fail())).toEqual([-(2n ** 31n), 2n ** 31n - 1n]);
  });

  test("what follows from a guess that fails is forgotten with it, also of a loop within", () => {
    const { inside, after } = carriedFacts(`${constants}
      %r = loop %0, %100, %1 initial(%0) body(%i: i32, %count: i32) {
        %s = loop %0, %4, %1 initial(%count) body(%k: i32, %same: i32) { yield %same } : i32
        %more = binary %s, %1 {fn = add} : i32
        yield %more
      } : i32`);
    const anything = [-(2n ** 31n), 2n ** 31n - 1n];
    expect([...inside, ...after].map(interval)).toEqual(Array(4).fill(anything));
  });

  test("what is handed on unchanged is what it was", () => {
    const { inside } = carriedFacts(`${constants}
      %r = loop %0, %100, %1 initial(%4) body(%i: i32, %same: i32) { yield %same } : i32`);
    expect(interval(inside[0] ?? expect.fail())).toEqual([4n, 4n]);
  });
});

const comparisons: { readonly [predicate: string]: (left: number, right: number) => boolean } = {
  eq: (left, right) => left === right,
  ne: (left, right) => left !== right,
  lt: (left, right) => left < right,
  le: (left, right) => left <= right,
  gt: (left, right) => left > right,
  ge: (left, right) => left >= right,
};

describe("a choice by a comparison with a constant", () => {
  const values = [-2, -1, 0, 1, 2];

  /** What is known of a number from -2 to 2 where it is chosen, and of another where it is not. */
  function chosen(predicate: string, bound: number, inOrder: boolean, other: number): Fact {
    const operands = inOrder ? "%own, %other" : "%other, %own";
    const kernel = kernelWith(`${number("least", -2)}\n${number("most", 2)}
      ${number("bound", bound)}\n${number("other", other)}
      %low = binary %b, %least {fn = max} : i32
      %own = binary %low, %most {fn = min} : i32
      %holds = compare %own, %bound {predicate = ${predicate}} : bool
      %r = select %holds, ${operands} : i32`);
    const facts = factsOf(kernel);
    const found: Fact[] = [];
    walkOps(kernel.body, (op) => {
      if (op.kind === "select") found.push(...op.results.map((value) => facts.of(value)));
    });
    return found[0] ?? expect.fail();
  }

  test.each(Object.entries(comparisons))("%s says what is left of it", (predicate, holds) => {
    for (const bound of [-3, ...values, 3])
      for (const inOrder of [true, false]) {
        const left = values.filter((value) => holds(value, bound) === inOrder);
        // What cannot be is left as it was.
        const [least, greatest] = interval(chosen(predicate, bound, inOrder, 50));
        const [, most] = interval(chosen(predicate, bound, inOrder, -50));
        const known = left.length === 0 ? values : left;
        const expected = [Math.min(...known), 50, Math.max(...known)].map(BigInt);
        const message = `${predicate} ${bound}, ${inOrder ? "then" : "otherwise"}`;
        expect([least, greatest, most], message).toEqual(expected);
      }
  });
});

/** A step of random arithmetic: its text, and what it does to the numbers by name. */
interface Step {
  readonly text: string;
  readonly run: (values: Map<string, number>) => void;
}

const arithmetic: { readonly [fn: string]: (left: number, right: number) => number } = {
  add: (left, right) => (left + right) | 0,
  sub: (left, right) => (left - right) | 0,
  mul: (left, right) => Math.imul(left, right),
  and: (left, right) => left & right,
  or: (left, right) => left | right,
  xor: (left, right) => left ^ right,
  min: Math.min,
  max: Math.max,
};

function randomStep(random: Random, known: readonly string[], id: string): Step {
  const [a, b, c, d] = [known, known, known, known].map((names) => random.pick(names));
  const get = (values: Map<string, number>, name = ""): number => values.get(name) ?? 0;
  if (random.below(3) === 0) {
    const predicate = random.pick(Object.keys(comparisons));
    // Often the value that was compared is the one that is chosen.
    const [first, second] = [random.below(2) === 0 ? a : c, random.below(2) === 0 ? a : d];
    return {
      text: `%${id}_c = compare %${a}, %${b} {predicate = ${predicate}} : bool
        %${id} = select %${id}_c, %${first}, %${second} : i32`,
      run: (values) => {
        const holds = comparisons[predicate]?.(get(values, a), get(values, b)) ?? false;
        values.set(id, get(values, holds ? first : second));
      },
    };
  }
  const fn = random.pick(Object.keys(arithmetic));
  return {
    text: `%${id} = binary %${a}, %${b} {fn = ${fn}} : i32`,
    run: (values) => {
      values.set(id, arithmetic[fn]?.(get(values, a), get(values, b)) ?? 0);
    },
  };
}

test("random loops: every value that they carry is one that its fact allows", () => {
  const seed = 20;
  const random = new Random(seed);
  let bounded = 0;
  for (let trial = 0; trial < 200; trial += 1) {
    const fixed = new Map(["0", "1", "2", "3", "7"].map((name) => [name, Number(name)]));
    const carries = ["p", "q", "r"];
    const steps: Step[] = [];
    const names = [...fixed.keys(), ...carries];
    for (let index = 0; index < 5; index += 1) {
      steps.push(randomStep(random, names, `v${index}`));
      names.push(`v${index}`);
    }
    const initial = carries.map(() => random.pick([...fixed.keys()]));
    const yielded = carries.map(() => random.pick(names));
    const { inside } =
      carriedFacts(`${[...fixed].map(([id, value]) => number(id, value)).join("\n")}
      %o, %o2, %o3 = loop %0, %7, %1 initial(${initial.map((name) => `%${name}`).join(", ")}) body(%i: i32, ${carries.map((name) => `%${name}: i32`).join(", ")}) {
        ${steps.map(({ text }) => text).join("\n")}
        yield ${yielded.map((name) => `%${name}`).join(", ")}
      } : i32, i32, i32`);
    bounded += inside.filter(({ greatest }) => greatest < 2n ** 30n).length;
    const values = new Map(fixed);
    carries.forEach((name, position) => values.set(name, fixed.get(initial[position] ?? "") ?? 0));
    for (let turn = 0; turn < 50; turn += 1) {
      const refused = carries.filter((name, position) => {
        const fact = inside[position];
        return fact === undefined || !allows(fact, BigInt(values.get(name) ?? 0), Number);
      });
      if (refused.length > 0)
        expect.fail(
          `seed ${seed}, trial ${trial}, step ${turn}: facts refuse ${refused.join(", ")}`,
        );
      for (const step of steps) step.run(values);
      const next = yielded.map((name) => values.get(name) ?? 0);
      carries.forEach((name, position) => values.set(name, next[position] ?? 0));
    }
  }
  // Facts that say nothing would pass all of this.
  expect(bounded).toBeGreaterThan(150);
});
