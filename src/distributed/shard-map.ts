/**
 * `shardMap`: a function of parts as a function of whole arrays. Each rank of a mesh runs it on its part of the arguments, and its results are
 * the parts of the whole ones.
 *
 *   const loss = shardMap((w, x) => pmean(lossOf(w, x), "d"), { mesh, inSpecs: [P(), P("d")], outSpecs: P() });
 *   const step = jit((w, x) => sub(w, mul(grad(loss)(w, x), 0.1)));
 */
import { dialectAttribute } from "../graph/ops/attribute.ts";
import { graphValue } from "../graph/ops/node.ts";
import { alongAxes, partShape, shardingText } from "../graph/ops/sharding.ts";
import type { TensorSharding } from "../graph/ops/sharding.ts";
import { tensorType } from "../graph/ops/types.ts";
import { NDArray, recordAll, typeOfArray } from "../arrays/array.ts";
import { arraysOf, recordFunction } from "../arrays/trace-function.ts";
import { flatten, rebuild } from "../arrays/tree.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { optionText } from "../support/options.ts";
import { withAxes } from "./collectives.ts";
import { PartitionSpec, shardingOf } from "./mesh.ts";
import type { Mesh } from "./mesh.ts";

/** A spec for all arrays of an argument, or a tree of specs in the form of the argument. */
export type Specs = PartitionSpec | readonly Specs[] | { readonly [name: string]: Specs };

/** Options of `shardMap`. */
export interface ShardMapOptions {
  /** The ranks that it runs on. */
  readonly mesh: Mesh;
  /** How each argument is cut. */
  readonly inSpecs: readonly Specs[];
  /** How the results are put together; what is whole must be the same on all ranks. */
  readonly outSpecs: Specs;
  /** The axes that the function may name; all unless given. Along the others each rank computes the same. */
  readonly axisNames?: readonly string[] | undefined;
}

/** The specs of a tree's arrays, in their order. */
function specsFor(specs: unknown, tree: unknown, location: Location): readonly PartitionSpec[] {
  const { leaves } = flatten(tree);
  if (specs instanceof PartitionSpec) return leaves.map(() => specs);
  if (tree instanceof NDArray || typeof specs !== "object" || specs === null) {
    if (leaves.length === 0) return [];
    throw new TilewrightError({
      code: "TW9708",
      message: "specs have another form than the arrays that they are for",
      location,
      expected: "P(…) for all arrays of an argument, or a tree of them in its form",
      found: optionText(specs),
    });
  }
  if (typeof tree !== "object" || tree === null) return [];
  const members = Object.entries(tree);
  const ordered = Array.isArray(tree)
    ? members
    : members.sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0));
  const own = new Map(Object.entries(specs));
  return ordered.flatMap(([name, member]) => specsFor(own.get(name), member, location));
}

/** A function of whole arrays that runs `f` on parts of them, on every rank of the mesh. */
export function shardMap<A extends readonly unknown[], R>(
  f: (...args: A) => R,
  { mesh, inSpecs, outSpecs, axisNames = mesh.axisNames }: ShardMapOptions,
): (...args: A) => R {
  const axes = dialectAttribute("sdy.manual_axes", axisNames.map((name) => `"${name}"`).join(", "));
  return (...args) => {
    const location = captureLocation();
    const { leaves } = flatten(args);
    const inputs = specsFor([...inSpecs], args, location).map((spec, i) =>
      alongAxes(shardingOf(mesh, spec, leaves[i]?.shape.length, location), axisNames),
    );
    const parts = leaves.map(({ value }, i) => {
      const { element, shape } = typeOfArray(value);
      const sharding = inputs[i];
      const local = sharding === undefined ? shape : partShape(shape, sharding, location);
      return new NDArray(graphValue(tensorType(element, local)));
    });
    const recording = recordFunction(
      "shardMap",
      (...given: A) => withAxes(mesh, axisNames, () => f(...given)),
      rebuild(args, parts),
    );
    const { graph, captures, result } = recording;
    // What the function uses from around it every rank has whole.
    const around = captures.map(({ type }) =>
      shardingOf(mesh, new PartitionSpec([]), "shape" in type ? type.shape.length : 0, location),
    );
    const outputs = specsFor(outSpecs, result, location).map((spec, i) => {
      const value = graph.results[i];
      const rank = value === undefined ? undefined : typeOfArray(value).shape.length;
      return alongAxes(shardingOf(mesh, spec, rank, location), axisNames);
    });
    const texts = (shardings: readonly TensorSharding[]): string =>
      shardings.map(shardingText).join(", ");
    const values = recordAll(
      "sdy.manual_computation",
      { tensors: [...leaves.map(({ value }) => value), ...captures] },
      {
        in_shardings: dialectAttribute("sdy.in_shardings", texts([...inputs, ...around])),
        out_shardings: dialectAttribute("sdy.out_shardings", texts(outputs)),
        manual_axes: axes,
      },
      {
        regions: { body: graph },
        types: graph.results.map((value, i) => {
          const { element, shape } = typeOfArray(value);
          const dimensions = outputs[i]?.dimensions ?? [];
          const whole = shape.map((extent, axis) =>
            (dimensions[axis] ?? []).reduce((all, { size }) => all * size, extent),
          );
          return tensorType(element, whole);
        }),
      },
    );
    return rebuild(result, arraysOf(values));
  };
}
