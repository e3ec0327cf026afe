/**
 * What a function says of its own derivative.
 *
 *   const clipped = customVjp((x) => x, (x) => [x, null], (_, c) => [clip(c)]);     a derivative of its own
 *   const block = checkpoint(layer, { policy: "dots" });                            computed again on the way back
 *   stopGradient(x)                                                                 a constant to derivatives
 */
import { TilewrightError } from "../support/diagnostics.ts";
import type { DTypeName } from "../formats/dtype.ts";
import type { CheckpointPolicy } from "../graph/ops/derivatives.ts";
import { isFloatElement } from "../graph/ops/elements.ts";
import { graphRegion } from "../graph/ops/node.ts";
import type { GraphRegion, GraphValue } from "../graph/ops/node.ts";
import { typeText } from "../graph/ops/types.ts";
import { NDArray, recordAll, typeOfArray } from "./array.ts";
import { regionOf, requireSame, valuesOf } from "./control.ts";
import { arraysOf, recordFunction } from "./trace-function.ts";
import type { Recording } from "./trace-function.ts";
import { zeros } from "./shapes.ts";
import { flatten, rebuild } from "./tree.ts";

function isFloat({ value }: NDArray): boolean {
  return isFloatElement(typeOfArray(value).element);
}

function mismatch(message: string, expected: string, found: string): TilewrightError {
  return new TilewrightError({ code: "TW9316", message, expected, found });
}

function typesText(leaves: readonly NDArray[]): string {
  return leaves.map(({ value }) => typeText(value.type)).join(", ") || "no arrays";
}

/** The cotangents of arguments that are floats, from a list with a tree for each argument. */
function cotangentsOf(args: readonly unknown[], given: unknown): readonly GraphValue[] {
  if (!Array.isArray(given) || given.length !== args.length)
    throw mismatch(
      "the backward function does not return a list with an entry for each argument",
      `${args.length} entries`,
      Array.isArray(given) ? `${given.length} entries` : typeof given,
    );
  return args.flatMap((arg, i) => {
    const own = flatten(arg).leaves;
    // What has no derivative needs none: anything may stand in its place.
    if (!own.some(isFloat)) return [];
    const { leaves } = flatten(given[i]);
    if (typesText(leaves) !== typesText(own))
      throw mismatch(
        `the backward function gives other arrays for argument ${i} than it has`,
        typesText(own),
        typesText(leaves),
      );
    return leaves.filter((_, at) => isFloat(own[at] as NDArray)).map(({ value }) => value);
  });
}

/** The backward function over residuals and cotangents; integers among the results have zeros. */
function recordBackward<A extends readonly unknown[], R, S>(
  backward: (residuals: S, cotangents: R) => A,
  args: A,
  result: R,
  residuals: S,
): { readonly recording: Recording<A>; readonly region: GraphRegion } {
  const floats = flatten(result).leaves.filter(isFloat);
  const call = (kept: S, ...cotangents: readonly NDArray[]): A => {
    const next = cotangents[Symbol.iterator]();
    const filled = flatten(result).leaves.map((leaf) =>
      isFloat(leaf) ? next.next().value : zeros(leaf.shape, leaf.dtype),
    );
    return backward(kept, rebuild(result, filled));
  };
  const recording = recordFunction("backward", call, [residuals, ...floats] as const);
  // The region gives cotangents of floats alone, in the order of the arguments.
  const wanted = cotangentsOf(args, recording.result);
  const all = flatten(recording.result).leaves.map(({ value }) => value);
  const { parameters, ops, results } = recording.graph;
  const chosen = wanted.map((value) => results[all.indexOf(value)] ?? value);
  const own = parameters.slice(0, parameters.length - recording.captures.length);
  return { recording, region: graphRegion(own, ops, chosen) };
}

/**
 * A function with a derivative of its own in reverse mode. `forward` gives the result and what `backward` needs;
 * `backward` gives a cotangent for each argument.
 */
export function customVjp<A extends readonly unknown[], R, S>(
  f: (...args: A) => R,
  forward: (...args: A) => readonly [R, S],
  backward: (residuals: S, cotangents: R) => { readonly [K in keyof A]: unknown },
): (...args: A) => R {
  return (...args) => {
    const body = recordFunction("customVjp", f, args);
    const ahead = recordFunction("forward", forward, args);
    const pair: unknown = ahead.result;
    if (!Array.isArray(pair) || pair.length !== 2)
      throw mismatch(
        "the forward function does not return a pair",
        "[result, residuals]",
        Array.isArray(pair) ? `a list of ${pair.length}` : typeof pair,
      );
    const [result, residuals] = ahead.result;
    requireSame("the forward function", body.result, result);
    const { region } = recordBackward(backward, args, result, residuals);
    const regions = { body: regionOf(body), forward: regionOf(ahead), backward: region };
    const results = recordAll("tilewright.custom_vjp", { inputs: valuesOf(args) }, {}, { regions });
    return rebuild(body.result, arraysOf(results));
  };
}

/** What `checkpoint` keeps for the derivative. */
export interface CheckpointOptions {
  /** What is kept for the way back: nothing, products of matrices, or those without a batch. */
  readonly policy?: Exclude<CheckpointPolicy, "names"> | undefined;
  /** What is kept are the values that `checkpointName` gave one of these names. */
  readonly names?: readonly string[] | undefined;
}

/** The function, of which derivatives keep the arguments and compute the rest again. */
export function checkpoint<A extends readonly unknown[], R>(
  f: (...args: A) => R,
  options: CheckpointOptions = {},
): (...args: A) => R {
  return (...args) => {
    const { graph, captures, result } = recordFunction("checkpoint", f, args);
    const attributes =
      options.names === undefined
        ? { policy: options.policy ?? "nothing", names: [] }
        : { policy: "names", names: options.names };
    const inputs = [...valuesOf(args), ...captures];
    const regions = { body: graph };
    const results = recordAll("tilewright.checkpoint", { inputs }, attributes, { regions });
    return rebuild(result, arraysOf(results));
  };
}

/** The array under a name, by which a checkpoint can keep it. */
export function checkpointName<D extends DTypeName>(x: NDArray<D>, name: string): NDArray<D> {
  const [value] = recordAll("tilewright.name", { operand: x.value }, { name });
  return new NDArray(value as GraphValue);
}

/** The array as a constant: derivatives do not go through it. */
export function stopGradient<T>(tree: T): T {
  const values = valuesOf(tree).map(
    (operand) => recordAll("tilewright.stop_gradient", { operand }, {})[0] as GraphValue,
  );
  return rebuild(tree, arraysOf(values));
}
