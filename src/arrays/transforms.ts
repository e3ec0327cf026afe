/**
 * Derivatives of functions of arrays. The function is recorded, its graph transformed, and the result put where
 * it was called, so transforms nest in any order.
 *
 *   const dLoss = grad((params, x) => loss(params, x));     the gradient of the first argument, in its structure
 *   const [value, pullback] = vjp(f, x);                    pullback(cotangents) -> cotangents of x
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { isFloatElement } from "../graph/ops/elements.ts";
import { graphValue } from "../graph/ops/node.ts";
import type { GraphValue } from "../graph/ops/node.ts";
import { tensorType, typeText } from "../graph/ops/types.ts";
import { differentiablePlaces, jvp as jvpGraph, vjp as vjpGraph } from "../graph/transform/jvp.ts";
import { vmap as vmapGraph } from "../graph/transform/vmap.ts";
import { NDArray, typeOfArray } from "./array.ts";
import { zeros } from "./shapes.ts";
import { full } from "./functions.ts";
import { arraysOf, inlineGraph, recordFunction } from "./trace-function.ts";
import type { Recording } from "./trace-function.ts";
import { flatten, rebuild } from "./tree.ts";

/** The places of one argument's arrays among all of them; those that are floats. */
function placesOf(args: readonly unknown[], argument: number): readonly number[] {
  const before = flatten(args.slice(0, argument)).leaves.length;
  const own = flatten(args[argument]).leaves;
  return own.flatMap(({ value }, i) =>
    isFloatElement(typeOfArray(value).element) ? [before + i] : [],
  );
}

function requireScalar(recording: Recording<unknown>): void {
  const { results } = recording.graph;
  const [only] = results;
  const scalar =
    results.length === 1 &&
    only !== undefined &&
    typeOfArray(only).shape.length === 0 &&
    isFloatElement(typeOfArray(only).element);
  if (scalar) return;
  throw new TilewrightError({
    code: "TW9310",
    message: "grad is of functions with one float as their result",
    expected: "an array of shape []",
    found: arraysOf(results).map(String).join(", ") || "no array",
  });
}

/** Fails unless each of the chosen arrays is given one of its own type. */
function requireLike(
  what: string,
  values: readonly GraphValue[],
  given: readonly GraphValue[],
  chosen: readonly number[],
): void {
  const text = (value: GraphValue | undefined): string =>
    value === undefined ? "nothing" : typeText(value.type);
  const other = chosen.find((place) => text(values[place]) !== text(given[place]));
  if (other === undefined && values.length === given.length) return;
  throw new TilewrightError({
    code: "TW9324",
    message: `${what} are not like the arrays they belong to`,
    expected: other === undefined ? `${values.length} arrays` : text(values[other]),
    found: other === undefined ? `${given.length}` : text(given[other]),
  });
}

function leavesOf(args: readonly unknown[]): readonly GraphValue[] {
  return flatten(args).leaves.map(({ value }) => value);
}

/** The value of a function and the gradient of one of its arguments. */
export function valueAndGrad<A extends readonly unknown[], N extends number = 0>(
  f: (...args: A) => NDArray,
  options: { readonly argument?: N } = {},
): (...args: A) => readonly [NDArray, A[N]] {
  const argument = options.argument ?? 0;
  return (...args) => {
    if (argument >= args.length)
      throw new TilewrightError({
        code: "TW9310",
        message: `grad of argument ${argument}, which was not given`,
        expected: `an argument below ${args.length}`,
        found: `{ argument: ${argument} }`,
        remedy: "count arguments from 0",
      });
    const recording = recordFunction("grad", f, args);
    requireScalar(recording);
    const active = placesOf(args, argument);
    const graph = vjpGraph(recording.graph, active);
    const [result] = recording.graph.results;
    const one = full([], 1, new NDArray(result as GraphValue).dtype);
    const inputs = [...leavesOf(args), ...recording.captures, one.value];
    const [value, ...gradients] = inlineGraph(graph, inputs);
    const before = flatten(args.slice(0, argument)).leaves.length;
    const tree = args[argument];
    // Integers have no derivative; their place in the structure is a zero of their own dtype.
    const filled = flatten(tree).leaves.map((leaf, i) => {
      const place = active.indexOf(before + i);
      const gradient = gradients[place];
      return gradient === undefined ? zeros(leaf.shape, leaf.dtype) : new NDArray(gradient);
    });
    return [new NDArray(value as GraphValue), rebuild(tree, filled)];
  };
}

export function grad<A extends readonly unknown[], N extends number = 0>(
  f: (...args: A) => NDArray,
  options: { readonly argument?: N } = {},
): (...args: A) => A[N] {
  const both = valueAndGrad<A, N>(f, options);
  return (...args) => both(...args)[1];
}

/** The function's result, and the function from cotangents of it to cotangents of the arguments. */
export function vjp<A extends readonly unknown[], R>(
  f: (...args: A) => R,
  ...args: A
): readonly [R, (cotangents: R) => A] {
  const recording = recordFunction("vjp", f, args);
  const inputs = [...leavesOf(args), ...recording.captures];
  const values = inlineGraph(recording.graph, inputs);
  const leaves = flatten(args).leaves;
  const active = differentiablePlaces(leaves.map(({ value }) => value));
  const outputs = differentiablePlaces(recording.graph.results);
  const pullback = (cotangents: R): A => {
    const given = flatten(cotangents).leaves.map(({ value }) => value);
    requireLike("cotangents", recording.graph.results, given, outputs);
    const chosen = outputs.map((i) => given[i] as GraphValue);
    const all = inlineGraph(vjpGraph(recording.graph, active), [...inputs, ...chosen]);
    const found = all.slice(recording.graph.results.length);
    const filled = leaves.map((leaf, i) => {
      const gradient = found[active.indexOf(i)];
      return gradient === undefined ? zeros(leaf.shape, leaf.dtype) : new NDArray(gradient);
    });
    return rebuild(args, filled);
  };
  return [rebuild(recording.result, arraysOf(values)), pullback];
}

/** The function's result and its tangent along tangents of the arguments. */
export function jvp<A extends readonly unknown[], R>(
  f: (...args: A) => R,
  primals: A,
  tangents: A,
): readonly [R, R] {
  const recording = recordFunction("jvp", f, primals);
  const places = leavesOf(primals);
  const active = differentiablePlaces(places);
  const given = leavesOf(tangents);
  requireLike("tangents", places, given, active);
  const inputs = [...places, ...recording.captures, ...active.map((i) => given[i] as GraphValue)];
  const all = inlineGraph(jvpGraph(recording.graph, active), inputs);
  const count = recording.graph.results.length;
  const outputs = differentiablePlaces(recording.graph.results);
  const filled = flatten(recording.result).leaves.map((leaf, i) => {
    const tangent = all[count + outputs.indexOf(i)];
    return outputs.includes(i) && tangent !== undefined
      ? new NDArray(tangent)
      : zeros(leaf.shape, leaf.dtype);
  });
  return [
    rebuild(recording.result, arraysOf(all.slice(0, count))),
    rebuild(recording.result, filled),
  ];
}

/** Options of `vmap`. */
export interface VmapOptions {
  /** Which arguments have the batch as their first axis; all where nothing is said. */
  readonly arguments?: readonly boolean[] | undefined;
}

function batchSize(sizes: readonly (number | undefined)[]): number {
  const [first] = sizes;
  if (first !== undefined && sizes.every((each) => each === first)) return first;
  throw new TilewrightError({
    code: "TW9313",
    message: "the arrays of vmap have different first extents",
    expected: "one number of examples",
    found: sizes.map((each) => each ?? "none").join(", ") || "no arrays",
  });
}

/** The function of a batch of examples, from the function of one. Results have the batch as their first axis. */
export function vmap<A extends readonly unknown[], R>(
  f: (...args: A) => R,
  options: VmapOptions = {},
): (...args: A) => R {
  return (...args) => {
    const chosen = args.map((_, i) => options.arguments?.[i] ?? true);
    const flags = args.flatMap((each, i) => flatten(each).leaves.map(() => chosen[i] === true));
    const leaves = flatten(args).leaves;
    const size = batchSize(leaves.flatMap(({ shape }, i) => (flags[i] === true ? [shape[0]] : [])));
    const examples = leaves.map((leaf, i) => {
      if (flags[i] !== true) return leaf;
      const { element, shape } = typeOfArray(leaf.value);
      return new NDArray(graphValue(tensorType(element, shape.slice(1))));
    });
    const recording = recordFunction("vmap", f, rebuild(args, examples));
    const graph = vmapGraph(recording.graph, size, flags);
    const inputs = [...leavesOf(args), ...recording.captures];
    return rebuild(recording.result, arraysOf(inlineGraph(graph, inputs)));
  };
}
