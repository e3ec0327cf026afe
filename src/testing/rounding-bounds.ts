/**
 * What a program's results are in float64, and how far rounding may take them from that. Every op is computed in float64, and
 * an error of first order goes along with its values:
 *
 *   error of a result   Σ |∂result/∂operand| · error of the operand, and one rounding (or some) of the op's own format
 *   y = x · w           |w| · error(x) + |x| · error(w) + u · |y|
 *   s = Σ x             Σ error(x) + (n - 1) · u · Σ |x|, which holds for every order of adding
 *
 * The partial derivatives are those of the derivative rules, an op at a time.
 */
import { evaluate, isTensorDatum, numbersOf, tensor } from "../graph/evaluate/index.ts";
import type { Tensor } from "../graph/evaluate/index.ts";
import { GraphBuilder } from "../graph/infer/builder.ts";
import { capturesOf } from "../graph/ops/captures.ts";
import { isFloatElement } from "../graph/ops/elements.ts";
import type { ElementType } from "../graph/ops/elements.ts";
import { kernelCallOf } from "../graph/ops/kernel-calls.ts";
import { graphRegion, graphValue, moduleOf } from "../graph/ops/node.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../graph/ops/node.ts";
import type { Substitution } from "../graph/ops/rebuild.ts";
import type { GraphOpKind } from "../graph/ops/table.ts";
import { operandsOf, regionsOf } from "../graph/ops/traverse.ts";
import { isTensor, sizeOf, tensorType } from "../graph/ops/types.ts";
import type { GraphType, TensorType } from "../graph/ops/types.ts";
import { jvp } from "../graph/transform/jvp.ts";

/** A value in float64, or as it is where it is no float, and how far rounding may take it. */
export interface Bounded {
  readonly value: Tensor;
  /** Absent where it is exact. */
  readonly error?: Float64Array | undefined;
}

export interface RoundingOptions {
  /** The least unit roundoff that is reckoned with: of a kernel that computes in tf32, 2⁻¹¹. */
  readonly roundoff: number;
  /** Whether errors are wanted; values alone take less time. */
  readonly errors: boolean;
}

/** Half a unit in the last place of 1. */
const roundoffs: { readonly [E in ElementType]?: number } = {
  f64: 2 ** -53,
  f32: 2 ** -24,
  f16: 2 ** -11,
  bf16: 2 ** -8,
  f8E4M3FN: 2 ** -4,
  f8E5M2: 2 ** -3,
};

export function roundoffOf(element: ElementType): number {
  return roundoffs[element] ?? 0;
}

/** Ops whose results are elements of their operands, or follow from them without rounding. */
const exactOps: ReadonlySet<string> = new Set(
  "broadcast_in_dim broadcast reshape transpose slice concatenate pad reverse gather dynamic_slice dynamic_update_slice select clamp maximum minimum negate abs sign floor ceil round_nearest_even round_nearest_afz compare iota sort real optimization_barrier"
    .split(" ")
    .map((name) => `stablehlo.${name}`),
);

/** Ops that are rounded once; all others, functions such as exp, are given four roundings. */
const roundedOnce: ReadonlySet<string> = new Set(
  "add subtract multiply divide sqrt convert constant reduce reduce_window scatter select_and_scatter dot_general dot convolution"
    .split(" ")
    .map((name) => `stablehlo.${name}`),
);

function roundingsOf(kind: GraphOpKind): number {
  if (exactOps.has(kind)) return 0;
  return roundedOnce.has(kind) ? 1 : 4;
}

const bilinear: ReadonlySet<GraphOpKind> = new Set<GraphOpKind>([
  "stablehlo.dot_general",
  "stablehlo.dot",
  "stablehlo.einsum",
  "stablehlo.convolution",
]);

/** Ops that add what falls on one place, as many as their operands have elements at most. */
const adding: ReadonlySet<string> = new Set(
  "scatter select_and_scatter dot einsum convolution".split(" ").map((name) => `stablehlo.${name}`),
);

/** How many numbers are added for one of an op's results, at most; 1 of ops that add none. */
function addendsOf(op: AnyGraphOp): number {
  const sizes = operandsOf(op).map(({ type }) => (isTensor(type) ? sizeOf(type.shape) : 1));
  if (op.kind === "stablehlo.reduce") {
    const [input] = op.operands.inputs;
    const shape = input !== undefined && isTensor(input.type) ? input.type.shape : [];
    return Math.max(1, sizeOf(op.attributes.dimensions.map((axis) => shape[axis] ?? 1)));
  }
  if (op.kind === "stablehlo.reduce_window") return sizeOf(op.attributes.window_dimensions);
  if (op.kind === "stablehlo.dot_general") {
    const { shape } = op.operands.lhs.type as TensorType;
    const axes = op.attributes.dot_dimension_numbers.lhs_contracting_dimensions;
    return Math.max(1, sizeOf(axes.map((axis) => shape[axis] ?? 1)));
  }
  return adding.has(op.kind) ? Math.max(1, ...sizes) : 1;
}

function widened(type: GraphType): GraphType {
  return isTensor(type) && isFloatElement(type.element) ? tensorType("f64", type.shape) : type;
}

/** Adds an op with floats of float64 in it, in its regions too. */
function widen(op: AnyGraphOp, builder: GraphBuilder, known: Substitution): void {
  const map = (value: GraphValue): GraphValue => known.get(value) ?? value;
  let results: readonly GraphValue[];
  if (op.kind === "stablehlo.constant") {
    const [constant] = builder.add(op.kind, {}, op.attributes);
    if (constant === undefined) throw new Error("a constant has a value");
    const type = widened(constant.type);
    results =
      type === constant.type
        ? [constant]
        : [builder.one("stablehlo.convert", { operand: constant }, {}, { types: [type] })];
  } else {
    const slots = (parts: object, each: (part: never) => unknown): object =>
      Object.fromEntries(
        Object.entries(parts).map(([name, slot]: [string, unknown]) => [
          name,
          slot === undefined
            ? undefined
            : Array.isArray(slot)
              ? slot.map((part) => each(part as never))
              : each(slot as never),
        ]),
      );
    const region = (inner: GraphRegion): GraphRegion => widenRegion(inner, known);
    results = builder.add<GraphOpKind>(op.kind, slots(op.operands, map), op.attributes, {
      regions: slots(op.regions, region),
      types: op.results.map(({ type }) => widened(type)),
      extra: op.extra,
    });
  }
  for (const [i, value] of op.results.entries()) known.set(value, results[i] ?? value);
}

function widenRegion(region: GraphRegion, outer: Substitution): GraphRegion {
  const known = new Map(outer);
  const parameters = region.parameters.map((value) => {
    const copy = graphValue(widened(value.type));
    known.set(value, copy);
    return copy;
  });
  const builder = new GraphBuilder();
  for (const op of region.ops) widen(op, builder, known);
  return graphRegion(
    parameters,
    builder.ops,
    region.results.map((value) => known.get(value) ?? value),
  );
}

function run(graph: GraphRegion, inputs: readonly Tensor[]): readonly Tensor[] {
  return evaluate(moduleOf(graph), "main", inputs).filter(isTensorDatum);
}

/** A tensor in float64. */
export function wide(value: Tensor): Tensor {
  if (!isFloatElement(value.element)) return value;
  return tensor("f64", value.shape, numbersOf(value));
}

function mapped({ shape }: Tensor, numbers: Float64Array): Tensor {
  return tensor("f64", shape, numbers);
}

function absolute(value: Tensor): Tensor {
  return isFloatElement(value.element) ? mapped(value, numbersOf(value).map(Math.abs)) : value;
}

class Bounds {
  readonly #options: RoundingOptions;
  readonly #known = new Map<GraphValue, Bounded>();

  constructor(options: RoundingOptions) {
    this.#options = options;
  }

  region(region: GraphRegion, inputs: readonly Bounded[]): readonly Bounded[] {
    for (const [i, value] of region.parameters.entries())
      this.#known.set(value, inputs[i] as Bounded);
    for (const op of region.ops) {
      const results = this.#op(op);
      for (const [i, value] of op.results.entries())
        if (results[i] !== undefined) this.#known.set(value, results[i]);
    }
    return region.results.map((value) => this.#get(value));
  }

  #get(value: GraphValue): Bounded {
    const found = this.#known.get(value);
    if (found === undefined) throw new Error("values are known before they are used");
    return found;
  }

  #op(op: AnyGraphOp): readonly Bounded[] {
    const operands = operandsOf(op).map((value) => this.#get(value));
    if (op.kind === "tilewright.custom_vjp" || op.kind === "tilewright.checkpoint")
      return this.region(op.regions.body, operands);
    if (op.kind === "tilewright.name" || op.kind === "tilewright.stop_gradient") return operands;
    if (op.kind === "stablehlo.custom_call") {
      const own = kernelCallOf(op.attributes.call_target_name);
      return own === undefined ? this.#single(op) : this.region(own.meaning, operands);
    }
    if (op.kind === "stablehlo.while") {
      let state: readonly Bounded[] = operands;
      while (this.#truth(this.region(op.regions.cond, state)[0]) !== 0)
        state = this.region(op.regions.body, state);
      return state;
    }
    const [chosen] = operands;
    if (op.kind === "stablehlo.if")
      return this.region(
        this.#truth(chosen) === 0 ? op.regions.false_branch : op.regions.true_branch,
        [],
      );
    if (op.kind === "stablehlo.case") {
      const { branches } = op.regions;
      const branch = branches[this.#truth(chosen)] ?? branches.at(-1);
      return branch === undefined ? [] : this.region(branch, []);
    }
    return this.#single(op);
  }

  #truth(predicate: Bounded | undefined): number {
    return predicate === undefined ? 0 : (numbersOf(predicate.value)[0] ?? 0);
  }

  /** An op by itself, over what it uses, from around its regions too. */
  #single(op: AnyGraphOp): readonly Bounded[] {
    const used = [...new Set([...operandsOf(op), ...regionsOf(op).flatMap(capturesOf)])];
    const given = used.map((value) => this.#get(value));
    const parameters = used.map(({ type }) => graphValue(widened(type)));
    const known: Substitution = new Map(
      used.map((value, i) => [value, parameters[i] as GraphValue]),
    );
    const builder = new GraphBuilder();
    widen(op, builder, known);
    const results = op.results.map((value) => known.get(value) ?? value);
    const alone = graphRegion(parameters, builder.ops, results);
    const values = run(
      alone,
      given.map(({ value }) => value),
    );
    if (!this.#options.errors) return values.map((value) => ({ value }));
    const carried = this.#carried(op, alone, given, values);
    return values.map((value, i) =>
      this.#rounded(op, op.results[i] as GraphValue, value, carried[i]),
    );
  }

  /** What the errors of the operands, and of adding them up, become. */
  #carried(
    op: AnyGraphOp,
    alone: GraphRegion,
    given: readonly Bounded[],
    values: readonly Tensor[],
  ): readonly (Float64Array | undefined)[] {
    const totals = values.map((): Float64Array | undefined => undefined);
    const places = values.flatMap((value, i) => (isFloatElement(value.element) ? [i] : []));
    if (places.length === 0) return totals;
    const addends = addendsOf(op);
    const { element } = (op.results[0] as GraphValue).type as TensorType;
    // Sums of narrow formats are kept in f32, and rounded once.
    const roundoff = Math.max(this.#options.roundoff, Math.min(roundoffOf(element), 2 ** -24));
    const points = given.map(({ value }) => (bilinear.has(op.kind) ? absolute(value) : value));
    for (const [place, { value, error }] of given.entries()) {
      if (!isFloatElement(value.element)) continue;
      const numbers = numbersOf(value);
      const added = (addends - 1) * roundoff;
      const own = numbers.map((number, i) => (error?.[i] ?? 0) + added * Math.abs(number));
      if (own.every((each) => each === 0)) continue;
      const tangents = run(jvp(alone, [place]), [...points, mapped(value, own)]).slice(
        values.length,
      );
      for (const [at, i] of places.entries()) {
        const tangent = tangents[at];
        if (tangent === undefined) continue;
        const before = totals[i];
        const moved = numbersOf(tangent).map(Math.abs);
        totals[i] = before === undefined ? moved : moved.map((each, k) => each + (before[k] ?? 0));
      }
    }
    return totals;
  }

  #rounded(
    op: AnyGraphOp,
    result: GraphValue,
    value: Tensor,
    carried: Float64Array | undefined,
  ): Bounded {
    const { element } = result.type as TensorType;
    if (!isFloatElement(element)) return { value };
    const roundings = roundingsOf(op.kind);
    const own =
      roundings * Math.max(roundoffOf(element), roundings === 0 ? 0 : this.#options.roundoff);
    const numbers = numbersOf(value);
    return {
      value,
      error: numbers.map((number, i) => (carried?.[i] ?? 0) + own * Math.abs(number)),
    };
  }
}

/** The results of a graph for exact inputs, with bounds of first order on what rounding does to them. */
export function withBounds(
  graph: GraphRegion,
  inputs: readonly Tensor[],
  options: RoundingOptions,
): readonly Bounded[] {
  const exact = inputs.map((value): Bounded => ({ value: wide(value) }));
  return new Bounds(options).region(graph, exact);
}
