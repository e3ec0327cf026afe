/**
 * Recording functions. A function over trees of arrays is called once with parameters in place of data; its
 * graph is what its results need. Values of an outer recording, and arrays with data, become captures: further
 * inputs, constants to the transform at hand and ordinary values to the outer one.
 */
import type { DTypeName } from "../formats/dtype.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { graphRegion, graphValue } from "../graph/ops/node.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../graph/ops/node.ts";
import { inlineRegion, namedWithin } from "../graph/ops/rebuild.ts";
import { tokenType } from "../graph/ops/types.ts";
import { graphOf, keep, NDArray, named, scopeName, unnamed } from "./array.ts";
import { requireUsable } from "./use-after-dispose.ts";
import { flatten, rebuild } from "./tree.ts";

export interface Recording<R> {
  /** Parameters of the function's arrays, then of its captures. */
  readonly graph: GraphRegion;
  readonly captures: readonly GraphValue[];
  /** The result with arrays of the recording in it; gives the structure. */
  readonly result: R;
}

let depth = 0;

/** Whether a function is being recorded. */
export function isRecording(): boolean {
  return depth > 0;
}

/** Records `body` called with trees of the form of `inputs`. */
export function recordFunction<A extends readonly unknown[], R>(
  name: string,
  body: (...inputs: A) => R,
  inputs: A,
): Recording<R> {
  const { leaves } = flatten(inputs);
  const parameters = leaves.map(({ value }) => graphValue(value.type));
  // Values are numbered as they are made, so those that were there before are captures.
  const since = graphValue(tokenType).id;
  const arrays = parameters.map((value) => new NDArray(value));
  depth++;
  try {
    const result = named(name, () => body(...rebuild(inputs, arrays)));
    if (result instanceof Promise)
      throw new TilewrightError({
        code: "TW9309",
        message: `${name} was given a function that is asynchronous`,
        expected: "a function that returns arrays",
        found: "a promise",
      });
    const results = flatten(result).leaves.map(({ value }) => value);
    for (const value of results) requireUsable(value);
    const { ops, free } = graphOf(results, new Set(parameters), since);
    return { graph: graphRegion([...parameters, ...free], ops, results), captures: free, result };
  } finally {
    depth--;
  }
}

/** Records `body` for every place that calls it: its ops get the names around a call when they are put there. */
export function recordForCalls<A extends readonly unknown[], R>(
  name: string,
  body: (...inputs: A) => R,
  inputs: A,
): Recording<R> {
  return unnamed(() => recordFunction(name, body, inputs));
}

/** Puts a graph's ops, which have their names, where it is called; gives its results. */
export function inlineGraph(
  graph: GraphRegion,
  inputs: readonly GraphValue[],
): readonly GraphValue[] {
  return inlineNamed(graph, inputs, "");
}

/** The same of what was recorded for calls. */
export function inlineCall(
  graph: GraphRegion,
  inputs: readonly GraphValue[],
): readonly GraphValue[] {
  return inlineNamed(graph, inputs, scopeName());
}

function inlineNamed(
  graph: GraphRegion,
  inputs: readonly GraphValue[],
  outer: string,
): readonly GraphValue[] {
  const ops: AnyGraphOp[] = [];
  const into = { append: (op: AnyGraphOp): number => ops.push(op) };
  const results = inlineRegion(into, graph, inputs, namedWithin(outer));
  keep(ops);
  return results;
}

export function arraysOf(values: readonly GraphValue[]): readonly NDArray<DTypeName>[] {
  return values.map((value) => new NDArray(value));
}
