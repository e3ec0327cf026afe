/**
 * Loops and branches as ops of a program.
 *
 *   scan((sum, x) => [sum.add(x), sum], zero, xs)     [last sum, all sums]; of known length, so it has gradients
 *   whileLoop(state => less(state.error, 1), step, start)
 *   cond(less(x, 0), () => neg(x), () => x)
 *   switchCase(kind, [() => x, () => neg(x), () => exp(x)])
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { optionText } from "../support/options.ts";
import { GraphBuilder } from "../graph/infer/builder.ts";
import { graphRegion } from "../graph/ops/node.ts";
import type { GraphRegion, GraphValue } from "../graph/ops/node.ts";
import { inlineRegion } from "../graph/ops/rebuild.ts";
import { tensorType, typeText } from "../graph/ops/types.ts";
import type { TensorType } from "../graph/ops/types.ts";
import { addValues, compare, reshape, splatOf, zerosOf } from "../graph/transform/arithmetic.ts";
import { keep, named, originOf, recordAll, typeOfArray } from "./array.ts";
import type { NDArray } from "./array.ts";
import { arraysOf, recordFunction } from "./trace-function.ts";
import type { Recording } from "./trace-function.ts";
import { flatten, rebuild } from "./tree.ts";

/** The recording as a region that sees what is around it. */
export function regionOf({ graph, captures }: Recording<unknown>): GraphRegion {
  const own = graph.parameters.slice(0, graph.parameters.length - captures.length);
  return graphRegion(own, graph.ops, graph.results);
}

export function valuesOf(tree: unknown): readonly GraphValue[] {
  return flatten(tree).leaves.map(({ value }) => value);
}

/** Fails unless a loop's body returns what it was given. */
export function requireSame(what: string, before: unknown, after: unknown): void {
  const text = (tree: unknown): string => {
    const { leaves, structure } = flatten(tree);
    return `${structure} of ${leaves.map(({ value }) => typeText(value.type)).join(", ")}`;
  };
  if (text(before) === text(after)) return;
  throw new TilewrightError({
    code: "TW9311",
    message: `${what} returns other arrays than it was given`,
    expected: text(before),
    found: text(after),
  });
}

/** Repeats `body` while `condition` holds. */
export function whileLoop<S>(
  condition: (state: S) => NDArray<"bool">,
  body: (state: S) => S,
  start: S,
): S {
  const [test, step] = named("while", () => [
    recordFunction("cond", condition, [start] as const),
    recordFunction("body", body, [start] as const),
  ]);
  requireSame("the body of whileLoop", start, step.result);
  const regions = { cond: regionOf(test), body: regionOf(step) };
  const results = recordAll("stablehlo.while", { operand: valuesOf(start) }, {}, { regions });
  return rebuild(start, arraysOf(results));
}

/** One of two functions by a predicate of shape []. */
export function cond<R>(pred: NDArray<"bool">, onTrue: () => R, onFalse: () => R): R {
  const [taken, other] = named("if", () => [
    recordFunction("true", onTrue, []),
    recordFunction("false", onFalse, []),
  ]);
  requireSame("the second function of cond", taken.result, other.result);
  const regions = { true_branch: regionOf(taken), false_branch: regionOf(other) };
  const results = recordAll("stablehlo.if", { pred: pred.value }, {}, { regions });
  return rebuild(taken.result, arraysOf(results));
}

/** One of several functions by an index of shape []; the nearest where the index is none of theirs. */
export function switchCase<R>(index: NDArray<"i32">, branches: readonly (() => R)[]): R {
  const recordings = named("case", () =>
    branches.map((each, i) => recordFunction(`branch${i}`, each, [])),
  );
  const [first] = recordings;
  if (first === undefined) throw new Error("checked before: there is a branch");
  for (const { result } of recordings)
    requireSame("a later function of switchCase", first.result, result);
  const builder = new GraphBuilder(originOf("case"));
  const bounded = builder.one(
    "stablehlo.clamp",
    {
      min: splatOf(builder, counter, 0),
      operand: index.value,
      max: splatOf(builder, counter, branches.length - 1),
    },
    {},
  );
  keep(builder.ops);
  const regions = { branches: recordings.map(regionOf) };
  const results = recordAll("stablehlo.case", { index: bounded }, {}, { regions });
  return rebuild(first.result, arraysOf(results));
}

const counter = tensorType("i32", []);

function placeOf(builder: GraphBuilder, index: GraphValue, rank: number): readonly GraphValue[] {
  const zero = splatOf(builder, counter, 0);
  return [index, ...Array.from({ length: rank }, () => zero)];
}

function rowOf(builder: GraphBuilder, operand: GraphValue, index: GraphValue): GraphValue {
  const { shape } = typeOfArray(operand);
  const rest = shape.slice(1);
  const row = builder.one(
    "stablehlo.dynamic_slice",
    { operand, start_indices: placeOf(builder, index, rest.length) },
    { slice_sizes: [1, ...rest] },
  );
  return reshape(builder, row, rest);
}

function withRow(
  builder: GraphBuilder,
  operand: GraphValue,
  index: GraphValue,
  row: GraphValue,
): GraphValue {
  const { shape } = typeOfArray(row);
  const update = reshape(builder, row, [1, ...shape]);
  return builder.one(
    "stablehlo.dynamic_update_slice",
    { operand, update, start_indices: placeOf(builder, index, shape.length) },
    {},
  );
}

function lengthOf(xs: unknown, given: number | undefined): number {
  const lengths = flatten(xs).leaves.map(({ shape }) => shape[0]);
  const length = given ?? lengths[0];
  if (length !== undefined && lengths.every((each) => each === length)) return length;
  throw new TilewrightError({
    code: "TW9312",
    message: "the arrays of scan have different numbers of rows",
    expected: given === undefined ? "one number of rows" : `${given} rows`,
    found: lengths.map((each) => each ?? "none").join(", ") || "no arrays and no length",
  });
}

function rowType({ element, shape }: TensorType): TensorType {
  return tensorType(element, shape.slice(1));
}

function requirePair<C, Y>(result: readonly [C, Y]): readonly [C, Y] {
  const given: unknown = result;
  if (Array.isArray(given) && given.length === 2) return result;
  throw new TilewrightError({
    code: "TW9311",
    message: "the function of scan does not return a pair",
    expected: "[carry, y]",
    found: Array.isArray(given) ? `a list of ${given.length}` : optionText(given),
    remedy: "return the next state and what is stacked: [carry, y]",
  });
}

/** Carries a state through the rows of arrays; gives the last state and the results of all rows, stacked. */
export function scan<C, X, Y>(
  f: (carry: C, x: X) => readonly [C, Y],
  init: C,
  xs: X,
  options: { readonly length?: number } = {},
): readonly [C, Y] {
  const length = lengthOf(xs, options.length);
  const inputs = valuesOf(xs);
  const sample = new GraphBuilder();
  const rows = inputs.map((value) => zerosOf(sample, rowType(typeOfArray(value))));
  keep(sample.ops);
  const recording = recordFunction("scan", f, [init, rebuild(xs, arraysOf(rows))] as const);
  const [carry, outputs] = requirePair(recording.result);
  requireSame("the function of scan", init, carry);
  const carries = valuesOf(init);
  const stacked = valuesOf(outputs).map((value) => {
    const { element, shape } = typeOfArray(value);
    return tensorType(element, [length, ...shape]);
  });
  const builder = new GraphBuilder(originOf("scan"));
  if (length === 0) {
    // There is no row that a body could take.
    const nothing = stacked.map((type) => zerosOf(builder, type));
    keep(builder.ops);
    return [init, rebuild(outputs, arraysOf(nothing))];
  }
  const start = [
    splatOf(builder, counter, 0),
    ...carries,
    ...stacked.map((type) => zerosOf(builder, type)),
  ];
  const types = start.map(({ type }) => type);
  const test = builder.region(types, (inner, [index]) => [
    compare(inner, "LT", index as GraphValue, splatOf(inner, counter, length)),
  ]);
  const body = builder.region(types, (inner, [index, ...rest]) => {
    const place = index as GraphValue;
    const own = inputs.map((value) => rowOf(inner, value, place));
    const given = [...rest.slice(0, carries.length), ...own, ...recording.captures];
    const results = inlineRegion(inner, recording.graph, given);
    const next = addValues(inner, place, splatOf(inner, counter, 1));
    const written = results
      .slice(carries.length)
      .map((row, i) => withRow(inner, rest[carries.length + i] as GraphValue, place, row));
    return [next, ...results.slice(0, carries.length), ...written];
  });
  const all = builder.add(
    "stablehlo.while",
    { operand: start },
    {},
    { regions: { cond: test, body } },
  );
  keep(builder.ops);
  const [, ...found] = all;
  return [
    rebuild(init, arraysOf(found.slice(0, carries.length))),
    rebuild(outputs, arraysOf(found.slice(carries.length))),
  ];
}
