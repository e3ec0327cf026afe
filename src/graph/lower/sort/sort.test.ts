/** Sorts that the library makes, against JavaScript's stable sort of the same elements. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../../../device/device.ts";
import { open } from "../../../runtime/open.ts";
import { Random } from "../../../support/random.ts";
import { tensor } from "../../evaluate/index.ts";
import type { Tensor } from "../../evaluate/index.ts";
import type { GraphModule } from "../../ops/node.ts";
import { compilePlan } from "../../plan/compile.ts";
import { Program } from "../../plan/program.ts";
import { planText } from "../../plan/text.ts";
import { parseGraph } from "../../text/index.ts";
import { verifyGraph } from "../../verify/index.ts";

const seed = 17;
const length = 130;

let device: Device;
beforeAll(async () => {
  device = await open("simulator");
});
afterAll(() => {
  device.dispose();
});

function moduleOf(text: string): GraphModule {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("no program");
  verifyGraph(module);
  return module;
}

/** A sort of operands by the lines of a comparator, which gives %before. */
function sortText(
  types: readonly string[],
  comparator: string,
  shape: readonly number[] = [length],
  dimension = 0,
): string {
  const array = (type: string): string => `tensor<${shape.join("x")}x${type}>`;
  const arrays = types.map(array).join(", ");
  const names = types.map((_, i) => `%x${i}`);
  const scalars = types.map((type, i) => `%l${i}: tensor<${type}>, %r${i}: tensor<${type}>`);
  const count = types.length > 1 ? `:${types.length}` : "";
  const results = types.map((_, i) => (types.length > 1 ? `%0#${i}` : "%0"));
  return `func.func @main(${types.map((type, i) => `%x${i}: ${array(type)}`).join(", ")}) -> (${arrays}) {
    %0${count} = "stablehlo.sort"(${names.join(", ")}) <{dimension = ${dimension} : i64, is_stable = true}> ({
    ^bb0(${scalars.join(", ")}):
      ${comparator}
      stablehlo.return %before : tensor<i1>
    }) : (${arrays}) -> (${arrays})
    return ${results.join(", ")} : ${arrays} }`;
}

function comparison(name: string, direction: string, side: string, type: string): string {
  const [left, right] = side.split(" ");
  const scalar = `tensor<${type}>`;
  const kind = /^(f|b)/.test(type) ? "TOTALORDER" : "SIGNED";
  return `${name} = stablehlo.compare ${direction}, ${left}, ${right}, ${kind} : (${scalar}, ${scalar}) -> tensor<i1>`;
}

/** The key that JAX sorts floats by: zeros are equal, and so are NaNs. */
function jaxKey(side: "l" | "r"): string {
  const x = `%${side}0`;
  return `
    %zero_${side} = stablehlo.constant dense<0.0> : tensor<f32>
    %is_zero_${side} = stablehlo.compare EQ, ${x}, %zero_${side}, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %unsigned_${side} = stablehlo.select %is_zero_${side}, %zero_${side}, ${x} : tensor<i1>, tensor<f32>
    %is_nan_${side} = stablehlo.compare NE, ${x}, ${x}, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %nan_${side} = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %key_${side} = stablehlo.select %is_nan_${side}, %nan_${side}, %unsigned_${side} : tensor<i1>, tensor<f32>`;
}

async function sorted(
  text: string,
  inputs: readonly Tensor[],
): Promise<{ readonly plan: string; readonly results: readonly (readonly number[])[] }> {
  const plan = compilePlan(moduleOf(text), "main");
  const program = await Program.load(device, plan);
  const found = await program.run(inputs);
  program.dispose();
  return { plan: planText(plan), results: found.map(({ data }) => Array.from(data, Number)) };
}

const numbers = (below: number, from = 0): readonly number[] => {
  const random = new Random(seed);
  return Array.from({ length }, () => random.below(below) + from);
};

const places = Array.from({ length }, (_, place) => place);

/** The places of elements in the order of a comparison. */
function order(compare: (left: number, right: number) => number): readonly number[] {
  return places.toSorted(compare);
}

describe("comparators that order by keys", () => {
  test("floats as JAX compares them: zeros are equal, NaNs are last, equal ones keep their order", async () => {
    const special = [0, -0, NaN, 1, -1, Infinity, -Infinity, 2 ** -140];
    const x = Float32Array.from(numbers(special.length), (pick) => special[pick] as number);
    // A NaN whose sign is set is no less than others.
    new Uint32Array(x.buffer)[x.findIndex(Number.isNaN)] = 0xffc00000;
    const text = sortText(
      ["f32", "i32"],
      `${jaxKey("l")} ${jaxKey("r")} ${comparison("%before", "LT", "%key_l %key_r", "f32")}`,
    );
    const inputs = [tensor("f32", [length], x), tensor("i32", [length], Int32Array.from(places))];
    const { plan, results } = await sorted(text, inputs);
    const last = (place: number): number => (Number.isNaN(x[place]) ? 1 : 0);
    const expected = order((left, right) => {
      const difference = last(left) - last(right);
      if (difference !== 0 || last(left) === 1) return difference;
      const [a, b] = [x[left] as number, x[right] as number];
      if (a === b) return 0;
      return a < b ? -1 : 1;
    });
    expect(plan).toContain("operation sort");
    expect(results[1]).toEqual(expected);
    expect(results[0]).toEqual(expected.map((place) => x[place]));
  });

  test("several keys, of which one descends, are one word", async () => {
    const [first, second] = [numbers(5, -2), numbers(7, -3).toReversed()];
    const text = sortText(
      ["i8", "i32", "ui16"],
      `${comparison("%less", "LT", "%l0 %r0", "i8")}
       ${comparison("%same", "EQ", "%l0 %r0", "i8")}
       ${comparison("%more", "GT", "%l1 %r1", "i32")}
       %then = stablehlo.and %same, %more : tensor<i1>
       %before = stablehlo.or %less, %then : tensor<i1>`,
    );
    const { plan, results } = await sorted(text, [
      tensor("i8", [length], Int8Array.from(first)),
      tensor("i32", [length], Int32Array.from(second)),
      tensor("ui16", [length], Uint16Array.from(places)),
    ]);
    const expected = order(
      (left, right) =>
        (first[left] as number) - (first[right] as number) ||
        (second[right] as number) - (second[left] as number),
    );
    expect(plan.match(/operation sort/g)).toHaveLength(1);
    expect(results).toEqual([
      expected.map((place) => first[place]),
      expected.map((place) => second[place]),
      expected,
    ]);
  });

  test("keys of more than 64 bits take a sort each", async () => {
    const [first, second] = [numbers(4), numbers(9, -4).toReversed()];
    const text = sortText(
      ["i64", "f32", "i32"],
      `${comparison("%less", "LT", "%l0 %r0", "i64")}
       ${comparison("%same", "EQ", "%r0 %l0", "i64")}
       ${comparison("%later", "LT", "%l1 %r1", "f32")}
       %before = stablehlo.select %same, %later, %less : tensor<i1>, tensor<i1>`,
    );
    const { plan, results } = await sorted(text, [
      tensor("i64", [length], BigInt64Array.from(first, BigInt)),
      tensor("f32", [length], Float32Array.from(second)),
      tensor("i32", [length], Int32Array.from(places)),
    ]);
    const expected = order(
      (left, right) =>
        (first[left] as number) - (first[right] as number) ||
        (second[left] as number) - (second[right] as number),
    );
    expect(plan.match(/operation sort/g)).toHaveLength(2);
    expect(results[2]).toEqual(expected);
  });

  test("an expression of an element, greatest first, along an axis that is not the last", async () => {
    const x = numbers(30, -15);
    const text = sortText(
      ["i32"],
      `%size_l = stablehlo.abs %l0 : tensor<i32>
       %size_r = stablehlo.abs %r0 : tensor<i32>
       ${comparison("%before", "LT", "%size_r %size_l", "i32")}`,
      [length, 2],
    );
    const both = x.flatMap((value) => [value, -value - 1]);
    const { plan, results } = await sorted(text, [
      tensor("i32", [length, 2], Int32Array.from(both)),
    ]);
    const column = (which: number): readonly number[] =>
      places
        .map((place) => both[2 * place + which] as number)
        .toSorted((left, right) => Math.abs(right) - Math.abs(left));
    const [even, odd] = [column(0), column(1)];
    expect(plan).toContain("operation sort");
    expect(results[0]).toEqual(places.flatMap((place) => [even[place], odd[place]]));
  });
});

test("a comparator that mixes elements of both sides, and short rows, are sorted by ranks", () => {
  const mixed = sortText(
    ["i32", "i32"],
    `%one = stablehlo.add %l0, %r1 : tensor<i32>
     %other = stablehlo.add %r0, %l1 : tensor<i32>
     ${comparison("%before", "LT", "%one %other", "i32")}`,
  );
  const constant = sortText(
    ["i32", "i32"],
    `${comparison("%first", "LT", "%l0 %r0", "i32")}
     ${comparison("%always", "EQ", "%l0 %l0", "i32")}
     ${comparison("%second", "LT", "%l1 %r1", "i32")}
     %before = stablehlo.select %always, %second, %first : tensor<i1>, tensor<i1>`,
  );
  const short = sortText(["i32"], comparison("%before", "LT", "%l0 %r0", "i32"), [100]);
  for (const text of [mixed, constant, short]) {
    const plan = planText(compilePlan(moduleOf(text), "main"));
    expect(plan).toContain("sort_ranks");
    expect(plan).not.toContain("operation");
  }
});

test("many short rows are the library's, few are not", () => {
  const text = (rows: number): string =>
    sortText(["f32", "i32"], comparison("%before", "LT", "%l0 %r0", "f32"), [rows, 64], 1);
  expect(planText(compilePlan(moduleOf(text(65_536)), "main"))).toContain("operation sort(");
  expect(planText(compilePlan(moduleOf(text(8)), "main"))).toContain("launch sort_ranks(");
});

test("the largest elements, in the total order, with the bits that they had", async () => {
  const special = [NaN, 3, -0, 0, -5, Infinity, -Infinity];
  const x = Float32Array.from(numbers(special.length), (pick) => special[pick] as number);
  const text = `func.func @main(%x: tensor<${length}xf32>) -> (tensor<40xf32>, tensor<40xi32>) {
    %0:2 = chlo.top_k(%x, k = 40) : tensor<${length}xf32> -> (tensor<40xf32>, tensor<40xi32>)
    return %0#0, %0#1 : tensor<40xf32>, tensor<40xi32> }`;
  const { plan, results } = await sorted(text, [tensor("f32", [length], x)]);
  const rank = (place: number): number =>
    [-Infinity, -5, -0, 0, 3, Infinity, NaN].findIndex((each) => Object.is(each, x[place]));
  const expected = order((left, right) => rank(right) - rank(left)).slice(0, 40);
  expect(plan).toContain("operation top_k");
  expect(results[1]).toEqual(expected);
  expect(results[0]).toEqual(expected.map((place) => x[place]));
});

test.each(["i32", "ui8"] as const)("the largest of few whole numbers: %s", async (element) => {
  const text = `func.func @main(%x: tensor<5x${element}>) -> (tensor<2x${element}>, tensor<2xi32>) {
    %0:2 = chlo.top_k(%x, k = 2) : tensor<5x${element}> -> (tensor<2x${element}>, tensor<2xi32>)
    return %0#0, %0#1 : tensor<2x${element}>, tensor<2xi32> }`;
  const data = element === "i32" ? Int32Array.of(3, 9, 1, 9, 4) : Uint8Array.of(3, 200, 1, 200, 4);
  const { results } = await sorted(text, [tensor(element, [5], data)]);
  expect(results).toEqual([[...data].filter((each) => each > 4), [1, 3]]);
});
