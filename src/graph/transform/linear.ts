/**
 * Linear maps of tangents. A derivative is a sequence of such maps, each known in both directions: forward
 * mode applies them in order, reverse mode runs through them backwards by their transposes.
 *
 *   y = a · x      apply: t -> a · t       transpose: c -> a · c
 *   y = sum(x)     apply: t -> sum(t)      transpose: c -> broadcast(c)
 *   y = x[1:3]     apply: t -> t[1:3]      transpose: c -> pad(c, 1, 1)
 *
 * Values such as `a` are ordinary values of the graph; only tangents and cotangents go through the maps.
 */
import type { GraphBuilder, Origin } from "../infer/builder.ts";
import { graphValue } from "../ops/node.ts";
import type { GraphValue } from "../ops/node.ts";
import type { TensorType } from "../ops/types.ts";
import { addValues } from "./arithmetic.ts";

/** A cotangent that may be zero. */
export type Cotangent = GraphValue | undefined;

/** A map of which reverse mode needs to know how it goes back. */
export interface BackwardMap {
  readonly outputs: readonly TensorType[];
  /** The cotangents of the inputs, one each; not called where all outputs' are zero. */
  transpose(builder: GraphBuilder, cotangents: readonly Cotangent[]): readonly Cotangent[];
}

export interface LinearMap extends BackwardMap {
  apply(builder: GraphBuilder, inputs: readonly GraphValue[]): readonly GraphValue[];
}

interface Step {
  readonly map: BackwardMap;
  readonly inputs: readonly GraphValue[];
  readonly outputs: readonly GraphValue[];
  /** The op that it belongs to, which its transpose is named after. */
  readonly origin: Origin;
}

/** What becomes of a linear map: forward mode applies it, reverse mode keeps it. */
export interface LinearMode {
  readonly kind: "forward" | "reverse";
  linear(map: LinearMap, inputs: readonly GraphValue[]): readonly GraphValue[];
}

export class ForwardMode implements LinearMode {
  readonly kind = "forward";
  readonly #builder: GraphBuilder;

  constructor(builder: GraphBuilder) {
    this.#builder = builder;
  }

  linear(map: LinearMap, inputs: readonly GraphValue[]): readonly GraphValue[] {
    return map.apply(this.#builder, inputs);
  }
}

/** Keeps the maps. Tangents are names here: no op defines them. */
export class ReverseMode implements LinearMode {
  readonly kind = "reverse";
  readonly #steps: Step[] = [];
  readonly #builder: GraphBuilder;

  constructor(builder: GraphBuilder) {
    this.#builder = builder;
  }

  linear(map: BackwardMap, inputs: readonly GraphValue[]): readonly GraphValue[] {
    const outputs = map.outputs.map((type) => graphValue(type));
    this.#steps.push({ map, inputs, outputs, origin: this.#builder.origin });
    return outputs;
  }

  /** The kept maps one after another, as a map from `inputs` to `outputs`. */
  toMap(inputs: readonly GraphValue[], outputs: readonly (GraphValue | undefined)[]): BackwardMap {
    const steps = [...this.#steps];
    return {
      outputs: outputs.flatMap((value) => (value === undefined ? [] : [value.type as TensorType])),
      transpose: (builder, cotangents) => {
        const present = outputs.filter((value) => value !== undefined);
        return transposeSteps(builder, steps, inputs, present, cotangents);
      },
    };
  }
}

/** Runs through the steps backwards; cotangents that meet at a value are added. */
function transposeSteps(
  builder: GraphBuilder,
  steps: readonly Step[],
  inputs: readonly GraphValue[],
  outputs: readonly GraphValue[],
  cotangents: readonly Cotangent[],
): readonly Cotangent[] {
  const found = new Map<GraphValue, GraphValue>();
  const accumulate = (value: GraphValue, cotangent: Cotangent): void => {
    if (cotangent === undefined) return;
    const before = found.get(value);
    found.set(value, before === undefined ? cotangent : addValues(builder, before, cotangent));
  };
  for (const [i, output] of outputs.entries()) accumulate(output, cotangents[i]);
  for (const step of [...steps].reverse()) {
    const own = step.outputs.map((output) => found.get(output));
    if (own.every((cotangent) => cotangent === undefined)) continue;
    builder.within(step.origin, () => {
      const given = step.map.transpose(builder, own);
      for (const [i, input] of step.inputs.entries()) accumulate(input, given[i]);
    });
  }
  return inputs.map((input) => found.get(input));
}
